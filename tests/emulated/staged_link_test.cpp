// Links between processes where one side is a CUDA device: its driver and its rings as they are,
// the transport a ring of the host.
#include "net/link/in_process_channel.hpp"
#include "net/link/staged_link.hpp"
#include "tests/emulated/link_talk.hpp"

#include "gpu/host/host_engine.hpp"

using namespace lamella;
using namespace lamella::test;

namespace {

struct staged {
  gpu::host_engine engine{1, gpu::reference_operators()};
  std::unique_ptr<gpu::device> host = engine.make_device("host/links");
  std::shared_ptr<gpu::device> cuda = std::make_shared<emulated_device>();
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
};

} // namespace

TEST_CASE_FIXTURE(staged, "L-M17 frames of a CUDA device go through a host's link both ways") {
  constexpr uint64_t rounds = 11; // more than the rings have slots
  const auto got = cuda->allocate(rounds * frame_bytes);
  auto end = run(*stream, std::make_shared<talk>(near, rounds, got->data()));
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
  auto end = run(*stream, std::make_shared<talk>(near, 1, got->data()));
  REQUIRE(eventually([&] { return forth.from->peek(0) != nullptr; }));
  // The device waits for the answer.
  back.to->end(gpu::channel_state::revoked);
  CHECK(ends(end) == gpu::work_status::cut);
  CHECK(near.from->state() == gpu::channel_state::revoked);
}

TEST_CASE_FIXTURE(staged, "what a device had sent arrives before the end of its link") {
  const auto got = cuda->allocate(3 * frame_bytes);
  run(*stream, std::make_shared<talk>(near, 3, got->data()));
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
