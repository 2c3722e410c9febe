/// A driver with two lines and a ring between them, over a runtime made of threads.
#pragma once

#include "gpu/cuda/driver/driver.hpp"
#include "gpu/cuda/driver/ring_ends.hpp"
#include "gpu/cuda/stream/words.cuh"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace lamella::test {

using namespace lamella::gpu;
using namespace std::chrono_literals;
namespace fake = lamella::test::fake_cuda;

/// A work of given steps; each puts what it likes into the current queue.
class listed_work final : public work {
public:
  using step = std::function<progress(kernel_context)>;
  explicit listed_work(std::vector<step> steps) : steps_{std::move(steps)} {}
  progress advance(kernel_context context) override {
    const auto outcome = steps_[next_](context);
    if (outcome == progress::blocked) return outcome;
    return ++next_ == steps_.size() ? progress::done : progress::advanced;
  }

private:
  std::vector<step> steps_;
  size_t next_ = 0;
};

inline work::progress on() { return work::progress::advanced; }

inline frame_tag tag(uint64_t iteration, uint32_t layer = 0) {
  return {0, iteration, 0, layer, frame_kind::q, 0};
}

/// A driver with two lines and a ring from the first to the second.
struct bench {
  bench() {
    fake::reset();
    ring_terms terms;
    terms.slots = 4;
    terms.slot_bytes = 64;
    memory.assign(terms.bytes() + 64, std::byte{0});
    auto* base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    make_ring(base, terms);
    const ring_place place{base, nullptr, nullptr, nullptr, terms};
    to = cuda::make_ring_sender(place, {}, true);
    from = cuda::make_ring_receiver(place, true);
    a = d.open();
    b = d.open();
  }
  ~bench() {
    fake::reset();
    d.close(a);
    d.close(b);
  }

  std::future<work_status> run(const std::shared_ptr<cuda::driver::line>& line,
                               std::vector<listed_work::step> steps,
                               std::chrono::milliseconds timeout = 240s) {
    auto end = std::make_shared<std::promise<work_status>>();
    auto result = end->get_future();
    d.launch(line, {std::make_shared<listed_work>(std::move(steps)), gpu::clock::now() + timeout,
                    [end](work_status s) { end->set_value(s); }});
    return result;
  }

  listed_work::step send(uint64_t n) {
    return [this, n](kernel_context) {
      auto* place = reserve(*to, 64);
      auto& q = cuda::queue::current();
      const std::array<uint64_t, 2> payload{n, n * n};
      q.copy(std::as_bytes(std::span{payload}), place);
      to->commit(tag(n));
      return on();
    };
  }
  listed_work::step receive(uint64_t n, uint64_t* seen) {
    return [this, n, seen](kernel_context) {
      const auto* f = from->receive(tag(n), 64);
      // The payload is read by a kernel behind the wait, as everything of a stream is.
      auto& q = cuda::queue::current();
      cuda::launch_fetch(f->payload.data(), 16, reinterpret_cast<std::byte*>(seen),
                         q.stream("test"));
      from->release();
      return on();
    };
  }

  /// A kernel for each word, some in a step.
  static std::vector<listed_work::step> raises(std::vector<uint32_t>& words) {
    constexpr size_t some = 5;
    std::vector<listed_work::step> steps;
    for (size_t at = 0; at < words.size(); at += some)
      steps.emplace_back([&words, at](kernel_context) {
        for (auto i = at; i < std::min(at + some, words.size()); ++i)
          cuda::launch_raise(&words[i], cuda::queue::current().stream("test"));
        return on();
      });
    return steps;
  }

  std::vector<std::byte> memory;
  std::shared_ptr<channel_sender> to;
  std::shared_ptr<channel_receiver> from;
  cuda::driver d{0};
  std::shared_ptr<cuda::driver::line> a, b;
};

inline work_status end_of(std::future<work_status>& x) {
  REQUIRE(x.wait_for(30s) == std::future_status::ready);
  return x.get();
}

} // namespace lamella::test
