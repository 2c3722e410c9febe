/// Frames to and from streams of an emulated CUDA device, for tests of its links.
#pragma once

#include "gpu/cuda/stream/words.cuh"
#include "net/link/link.hpp"
#include "tests/emulated/whole_device.hpp"

#include <doctest/doctest.h>

#include <future>
#include <thread>

namespace lamella::test {

constexpr size_t frame_bytes = 192;
constexpr uint64_t epoch = 7;
constexpr std::chrono::seconds limit{60};

inline gpu::frame_tag tag_of(uint64_t iteration, gpu::frame_kind kind) {
  return {epoch, iteration, 0, 3, kind, 11};
}

inline std::vector<std::byte> payload(uint64_t seed) {
  std::vector<std::byte> x(frame_bytes);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i * 31 + seed);
  return x;
}

/// Waits for what other threads do.
template <class F> bool eventually(F&& f) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!f())
    if (std::chrono::steady_clock::now() > until)
      return false;
    else
      std::this_thread::yield();
  return true;
}

/// On the device: sends `rounds` frames, three ahead of their answers, and takes an answer to each,
/// which is a frame of that kind.
class talk final : public gpu::work {
public:
  talk(net::link_end link, uint64_t rounds, std::byte* got,
       gpu::frame_kind answers = gpu::frame_kind::attention)
      : link_{std::move(link)}, rounds_{rounds}, got_{got}, answers_{answers} {}
  progress advance(gpu::kernel_context) override {
    auto& q = gpu::cuda::queue::current();
    if (sent_ < rounds_ && sent_ < taken_ + 3) {
      auto* place = gpu::reserve(*link_.to, frame_bytes);
      if (place == nullptr) return progress::blocked;
      const auto bytes = payload(sent_);
      q.copy(bytes, place);
      link_.to->commit(tag_of(sent_++, gpu::frame_kind::q));
      return progress::advanced;
    }
    if (taken_ == rounds_) return progress::done;
    const auto* answer = link_.from->receive(tag_of(taken_, answers_), frame_bytes);
    if (answer == nullptr) return progress::blocked;
    gpu::cuda::launch_fetch(answer->payload.data(), frame_bytes, got_ + taken_ * frame_bytes,
                            q.stream("copy"));
    link_.from->release();
    ++taken_;
    return progress::advanced;
  }

private:
  net::link_end link_;
  uint64_t rounds_, sent_ = 0, taken_ = 0;
  std::byte* got_;
  gpu::frame_kind answers_;
};

/// On the device: sends back every frame it takes.
class echo final : public gpu::work {
public:
  echo(net::link_end link, uint64_t rounds) : link_{std::move(link)}, rounds_{rounds} {}
  progress advance(gpu::kernel_context) override {
    if (done_ == rounds_) return progress::done;
    const auto* frame = link_.from->receive(tag_of(done_, gpu::frame_kind::q), frame_bytes);
    if (frame == nullptr) return progress::blocked;
    auto* place = gpu::reserve(*link_.to, frame_bytes);
    if (place == nullptr) return progress::blocked;
    gpu::cuda::launch_fetch(frame->payload.data(), frame_bytes, place,
                            gpu::cuda::queue::current().stream("copy"));
    link_.to->commit(tag_of(done_++, gpu::frame_kind::attention));
    link_.from->release();
    return progress::advanced;
  }

private:
  net::link_end link_;
  uint64_t rounds_, done_ = 0;
};

inline std::future<gpu::work_status> run(gpu::stream& stream, std::shared_ptr<gpu::work> x) {
  auto told = std::make_shared<std::promise<gpu::work_status>>();
  auto result = told->get_future();
  stream.launch(std::move(x), gpu::clock::now() + limit,
                [told](gpu::work_status status) { told->set_value(status); });
  return result;
}

inline gpu::work_status ends(std::future<gpu::work_status>& x) {
  REQUIRE(x.wait_for(limit) == std::future_status::ready);
  return x.get();
}

} // namespace lamella::test
