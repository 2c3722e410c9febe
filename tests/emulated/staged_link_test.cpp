// Links between processes where one side is a CUDA device: its driver and its rings as they are,
// the transport a ring of the host.
#include "gpu/cuda/words.cuh"
#include "net/in_process_channel.hpp"
#include "net/staged_link.hpp"
#include "tests/emulated/whole_device.hpp"

#include "gpu/host_engine.hpp"

#include <doctest/doctest.h>

#include <future>
#include <thread>

using namespace lamella;
using gpu::cuda::queue;

namespace {

constexpr size_t frame_bytes = 192;
constexpr uint64_t epoch = 7;
constexpr std::chrono::seconds limit{60};

gpu::frame_tag tag_of(uint64_t iteration, gpu::frame_kind kind) {
  return {epoch, iteration, 0, 3, kind, 11};
}

std::vector<std::byte> payload(uint64_t seed) {
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

/// On the device: sends `rounds` frames, and takes an answer to each when all are sent.
class talk final : public gpu::work {
public:
  talk(net::link_end link, uint64_t rounds, std::byte* got)
      : link_{std::move(link)}, rounds_{rounds}, got_{got} {}
  progress advance(gpu::kernel_context) override {
    auto& q = queue::current();
    if (sent_ < rounds_) {
      auto* place = gpu::reserve(*link_.to, frame_bytes);
      if (place == nullptr) return progress::blocked;
      const auto bytes = payload(sent_);
      q.copy(bytes, place);
      link_.to->commit(tag_of(sent_++, gpu::frame_kind::q));
      return progress::advanced;
    }
    if (taken_ == rounds_) return progress::done;
    const auto* answer =
        link_.from->receive(tag_of(taken_, gpu::frame_kind::attention), frame_bytes);
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
};

struct staged {
  gpu::host_engine engine{1, gpu::reference_operators()};
  std::unique_ptr<gpu::device> host = engine.make_device("host/links");
  std::shared_ptr<gpu::device> cuda = std::make_shared<test::emulated_device>(false);
  net::channel_ends forth = channel(), back = channel();
  net::link_end near = net::stage(*cuda, *host, epoch, terms(), {forth.to, back.from});
  std::unique_ptr<gpu::stream> stream = cuda->make_stream("s");

  static net::link_terms terms() {
    net::link_terms x;
    x.slot_bytes = frame_bytes;
    return x;
  }
  net::channel_ends channel() {
    gpu::ring_terms x;
    x.slot_bytes = frame_bytes;
    x.epoch = epoch;
    x.crc_every = 1;
    return net::make_in_process_channel(x, {}, engine.bell(), engine.bell());
  }
  std::future<gpu::work_status> run(std::shared_ptr<gpu::work> x) {
    auto told = std::make_shared<std::promise<gpu::work_status>>();
    auto result = told->get_future();
    stream->launch(std::move(x), gpu::clock::now() + limit,
                   [told](gpu::work_status status) { told->set_value(status); });
    return result;
  }
};

gpu::work_status ends(std::future<gpu::work_status>& x) {
  REQUIRE(x.wait_for(limit) == std::future_status::ready);
  return x.get();
}

} // namespace

TEST_CASE_FIXTURE(staged, "L-M17 frames of a CUDA device go through a host's link both ways") {
  constexpr uint64_t rounds = 11; // more than the rings have slots
  const auto got = cuda->allocate(rounds * frame_bytes);
  auto end = run(std::make_shared<talk>(near, rounds, got->data()));
  uint64_t taken = 0, answered = 0;
  CHECK(eventually([&] {
    if (const auto* x = forth.from->peek(0)) {
      CHECK(x->tag == tag_of(taken, gpu::frame_kind::q));
      CHECK(std::ranges::equal(x->payload, payload(taken)));
      forth.from->release();
      ++taken;
    }
    if (answered < taken)
      if (auto* place = back.to->reserve(frame_bytes)) {
        const auto bytes = payload(100 + answered);
        std::memcpy(place, bytes.data(), bytes.size());
        back.to->commit(tag_of(answered++, gpu::frame_kind::attention));
      }
    return answered == rounds;
  }));
  CHECK(ends(end) == gpu::work_status::done);
  for (uint64_t i = 0; i < rounds; ++i)
    CHECK(std::ranges::equal(std::span{got->data() + i * frame_bytes, frame_bytes},
                             payload(100 + i)));
}

TEST_CASE_FIXTURE(staged, "the end of a link ends what waits for it on a CUDA device") {
  const auto got = cuda->allocate(frame_bytes);
  auto end = run(std::make_shared<talk>(near, 1, got->data()));
  REQUIRE(eventually([&] { return forth.from->peek(0) != nullptr; }));
  // The device waits for the answer.
  back.to->end(gpu::channel_state::revoked);
  CHECK(ends(end) == gpu::work_status::cut);
  CHECK(near.from->state() == gpu::channel_state::revoked);
}

TEST_CASE_FIXTURE(staged, "what a device had sent arrives before the end of its link") {
  const auto got = cuda->allocate(3 * frame_bytes);
  run(std::make_shared<talk>(near, 3, got->data()));
  REQUIRE(eventually([&] { return forth.from->peek(2) != nullptr; }));
  near.to->end(gpu::channel_state::closed);
  REQUIRE(eventually([&] { return forth.from->state() == gpu::channel_state::closed; }));
  CHECK(forth.from->peek(2) != nullptr);
  CHECK(eventually([&] { return back.to->state() == gpu::channel_state::closed; }));
}

TEST_CASE_FIXTURE(staged, "a link whose device ends are gone ends for the other side") {
  stream.reset();
  near = {};
  CHECK(forth.from->state() == gpu::channel_state::closed);
  CHECK(back.to->state() == gpu::channel_state::closed);
}
