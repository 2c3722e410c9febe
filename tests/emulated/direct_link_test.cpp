// Links over adapters that read and write a CUDA device's memory: its driver and its rings as they
// are, the adapter one in software.
#include "tests/emulated/link_talk.hpp"
#include "tests/gpu/runners/post_runs.hpp"
#include "tests/net/data_plane/test_plane.hpp"
#include "tests/net/rdma/soft_adapter.hpp"
#include "tests/net/rdma/soft_mlx5_adapter.hpp"

#include "net/data_plane/peer_address.hpp"

using namespace lamella;
using namespace lamella::test;
using gpu::channel_state;
using tests::soft_adapter, tests::soft_mlx5_adapter, tests::test_plane;
using kind = net::link_event::kind;

namespace {

constexpr uint64_t rounds = 11; // more than the rings have slots
const net::link_key key{epoch, 0, 0, 0};

/// Who posts what streams send: the host, the streams while the host rings the adapter's bell, or
/// the streams alone.
struct host_posts {
  static constexpr auto transport = net::link_transport::verbs_gpudirect;
  using adapter = soft_adapter;
};
struct host_rings {
  static constexpr auto transport = net::link_transport::mlx5_proxy;
  using adapter = soft_mlx5_adapter;
};
struct stream_rings {
  static constexpr auto transport = net::link_transport::fhbn;
  using adapter = soft_mlx5_adapter;
};
#define WAYS host_posts, host_rings, stream_rings

/// Two planes that share an adapter; devices on the near side, and on the far one where asked for.
template <class Way = host_posts> struct direct {
  static constexpr auto transport = Way::transport;
  using shared_adapter = std::shared_ptr<typename Way::adapter>;

  explicit direct(bool both = false, shared_adapter of = {})
      : adapter{of ? std::move(of) : std::make_shared<typename Way::adapter>()} {
    if (both) far_device = std::make_shared<emulated_device>();
  }

  void connect() {
    auto address = net::parse_peer_address(far.plane->address()).value();
    address.host = "elsewhere";
    near_end = near.plane->connect(net::to_string(address), key, terms(), tests::timeout, device);
  }
  void open() {
    far_end = far.plane->accept(key, terms(), tests::timeout, far_device);
    connect();
  }
  static net::link_terms terms() {
    net::link_terms x;
    x.slot_bytes = frame_bytes;
    return x;
  }

  shared_adapter adapter;
  std::function<void(net::data_plane_options&)> change = [this](auto& o) { o.adapter = adapter; };
  std::shared_ptr<gpu::device> device = std::make_shared<emulated_device>(), far_device;
  std::unique_ptr<gpu::stream> stream = device->make_stream("s");
  tests::scratch_folder folder;
  test_plane far{std::string{to_string(transport)}, folder, "far", change};
  test_plane near{std::string{to_string(transport)}, folder, "near", change};
  net::link_end near_end, far_end;
};

/// All frames of `talk`, in order and whole.
void check_answers(const gpu::memory& got_in) {
  auto& got = const_cast<gpu::memory&>(got_in);
  for (uint64_t i = 0; i < rounds; ++i) {
    CAPTURE(i);
    CHECK(std::ranges::equal(std::span{got.data() + i * frame_bytes, frame_bytes}, payload(i)));
  }
}

/// A host's end that sends back what it takes.
bool answer(const net::link_end& x, uint64_t count) {
  uint64_t taken = 0;
  return eventually([&] {
    const auto* frame = x.from->peek(0);
    if (frame == nullptr) return false;
    CHECK(frame->tag == tag_of(taken, gpu::frame_kind::q));
    auto* place = x.to->reserve(frame_bytes);
    if (place == nullptr) return false;
    std::memcpy(place, frame->payload.data(), frame_bytes);
    x.to->commit(tag_of(taken, gpu::frame_kind::attention));
    x.from->release();
    return ++taken == count;
  });
}

} // namespace

TEST_CASE_TEMPLATE("L-M07 L-M11 an adapter carries frames between rings of a device and of a host",
                   way, WAYS) {
  direct<way> x;
  const auto got = x.device->allocate(rounds * frame_bytes);
  x.open();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, rounds, got->data()));
  CHECK(answer(x.far_end, rounds));
  CHECK(ends(end) == gpu::work_status::done);
  check_answers(*got);
  CHECK(x.near_end.sent->load() == rounds * frame_bytes);
  x.near.log->wait_for(kind::up, "frames lie in memory of cuda:0 emulated");
  CHECK(x.near.log->first(kind::up).transport == way::transport);
  x.far.log->wait_for(kind::up, "frames lie in host memory");
  CHECK(x.far.log->first(kind::up).transport == net::link_transport::verbs_staged);
}

TEST_CASE_TEMPLATE("L-M07 L-M11 an adapter carries frames between rings of two devices", way,
                   WAYS) {
  direct<way> x{true};
  const auto got = x.device->allocate(rounds * frame_bytes);
  const auto other = x.far_device->make_stream("s");
  x.open();
  auto there = run(*other, std::make_shared<echo>(x.far_end, rounds));
  auto here = run(*x.stream, std::make_shared<talk>(x.near_end, rounds, got->data()));
  CHECK(ends(here) == gpu::work_status::done);
  CHECK(ends(there) == gpu::work_status::done);
  check_answers(*got);
}

TEST_CASE_TEMPLATE("two devices that are ahead of each other give each other credit", way, WAYS) {
  direct<way> x{true};
  const auto got = x.device->allocate(rounds * frame_bytes);
  const auto there_got = x.far_device->allocate(rounds * frame_bytes);
  const auto other = x.far_device->make_stream("s");
  x.open();
  constexpr auto as_sent = gpu::frame_kind::q;
  auto there = run(*other, std::make_shared<talk>(x.far_end, rounds, there_got->data(), as_sent));
  auto here = run(*x.stream, std::make_shared<talk>(x.near_end, rounds, got->data(), as_sent));
  CHECK(ends(here) == gpu::work_status::done);
  CHECK(ends(there) == gpu::work_status::done);
  check_answers(*got);
  check_answers(*there_got);
}

TEST_CASE_TEMPLATE("what a device sends before the two sides have met is not lost", way, WAYS) {
  direct<way> x;
  const auto got = x.device->allocate(3 * frame_bytes);
  x.connect();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, 3, got->data()));
  x.far_end = x.far.plane->accept(key, x.terms(), tests::timeout);
  CHECK(answer(x.far_end, 3));
  CHECK(ends(end) == gpu::work_status::done);
}

TEST_CASE_TEMPLATE("a device's waits end with a link over an adapter that the other side ends", way,
                   WAYS) {
  direct<way> x;
  const auto got = x.device->allocate(frame_bytes);
  x.open();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, 1, got->data()));
  REQUIRE(eventually([&] { return x.far_end.from->peek(0) != nullptr; }));
  x.far.plane->end_epoch(epoch); // the device waits for the answer
  CHECK(ends(end) == gpu::work_status::cut);
  CHECK(x.near_end.from->state() == channel_state::closed);
}

TEST_CASE_TEMPLATE(
    "a link over an adapter that ends before the two sides meet ends a device's waits", way, WAYS) {
  direct<way> x;
  const auto got = x.device->allocate(frame_bytes);
  x.connect();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, 1, got->data()));
  x.near.plane->end_epoch(epoch);
  CHECK(ends(end) == gpu::work_status::cut);
}

TEST_CASE_TEMPLATE("what a device had sent through an adapter arrives before the end of its link",
                   way, WAYS) {
  direct<way> x;
  const auto got = x.device->allocate(3 * frame_bytes);
  x.open();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, 3, got->data()));
  REQUIRE(eventually([&] { return x.far_end.from->peek(2) != nullptr; }));
  x.near_end.to->end(channel_state::closed);
  REQUIRE(eventually([&] { return x.far_end.from->state() == channel_state::closed; }));
  CHECK(x.far_end.from->peek(2) != nullptr);
  CHECK(ends(end) == gpu::work_status::cut);
}

TEST_CASE_TEMPLATE("a link over an adapter whose device ends are gone ends for the other side", way,
                   WAYS) {
  direct<way> x;
  x.open();
  REQUIRE(eventually([&] { return x.far_end.to->reserve(1) != nullptr; })); // they have met
  x.near_end = {};
  CHECK(eventually([&] { return x.far_end.from->state() == channel_state::closed; }));
}

TEST_CASE("an adapter that does not take a device's memory is told of, and its waits end") {
  direct<> x{false, std::make_shared<soft_adapter>(6)}; // no room for a frame
  const auto got = x.device->allocate(frame_bytes);
  x.open();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, 1, got->data()));
  CHECK(ends(end) == gpu::work_status::cut);
  x.near.log->wait_for(kind::refused, "the adapter's queues are too short");
}

TEST_CASE("a device without memory that adapters reach has no such link") {
  struct closed final : emulated_device {
    using emulated_device::emulated_device;
    gpu::adapter_memory make_adapter_memory(size_t bytes, size_t host_bytes) override {
      return device::make_adapter_memory(bytes, host_bytes);
    }
  };
  direct<> x;
  x.device = std::make_shared<closed>(false);
  CHECK_THROWS_WITH_AS(x.open(), "cuda:0 emulated has no memory that adapters write into",
                       std::runtime_error);
}

TEST_CASE("L-M07 an emulated device polls its own memory for what adapters write there") {
  emulated_device device{false};
  gpu::test::sum_through_adapter(device);
}

TEST_CASE("L-M07 streams post more than an adapter's ring holds") {
  direct<stream_rings> x{true};
  constexpr uint64_t many = 700; // frames of two blocks and more, in a ring of 256
  const auto got = x.device->allocate(many * frame_bytes);
  const auto other = x.far_device->make_stream("s");
  x.open();
  auto there = run(*other, std::make_shared<echo>(x.far_end, many));
  auto here = run(*x.stream, std::make_shared<talk>(x.near_end, many, got->data()));
  CHECK(ends(here) == gpu::work_status::done);
  CHECK(ends(there) == gpu::work_status::done);
  for (uint64_t i = 0; i < many; ++i) {
    CAPTURE(i);
    CHECK(std::ranges::equal(std::span{got->data() + i * frame_bytes, frame_bytes}, payload(i)));
  }
  CHECK(x.near_end.sent->load() == many * frame_bytes);
  CHECK(x.adapter->streams() == 2);
}

TEST_CASE("a frame whose work gave up before the adapter's queue was there ends the link as torn") {
  direct<stream_rings> x;
  const auto got = x.device->allocate(3 * frame_bytes);
  x.connect();
  auto given_up = run(*x.stream, std::make_shared<talk>(x.near_end, 1, got->data()));
  REQUIRE(eventually([&] { return x.near_end.sent->load() == frame_bytes; }));
  x.stream->abort();
  CHECK(ends(given_up) == gpu::work_status::aborted);
  x.far_end = x.far.plane->accept(key, x.terms(), tests::timeout);
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, 1, got->data()));
  CHECK(eventually([&] {
    return x.far_end.from->peek(0) == nullptr && x.far_end.from->state() == channel_state::torn;
  }));
  CHECK(ends(end) == gpu::work_status::cut);
}

TEST_CASE("a device that cannot ring an adapter's bell says what helps") {
  struct no_bell final : emulated_device {
    using emulated_device::emulated_device;
    uint64_t* map_register(std::span<uint64_t> bell) override { return device::map_register(bell); }
  };
  direct<stream_rings> x;
  x.device = std::make_shared<no_bell>(false);
  CHECK_THROWS_WITH_AS(x.open(), "kernels of cuda:0 emulated cannot ring an adapter's bell",
                       std::runtime_error);
}

TEST_CASE("an adapter into whose queues no stream can post is told of") {
  direct<stream_rings> x;
  x.change = [&](auto& o) { o.adapter = std::make_shared<soft_adapter>(); };
  test_plane plane{"fhbn", x.folder, "other", x.change};
  CHECK_THROWS_WITH_AS(
      plane.plane->accept(key, x.terms(), tests::timeout, x.device),
      "an adapter in software is not an mlx5 adapter: devices cannot post into its queues",
      std::runtime_error);
}

TEST_CASE("a write that fails ends a link whose streams post, and their waits") {
  net::mlx5::hca_faults faults;
  faults.fail_after = 4; // a greeting, a frame, and the next one without its seqno
  direct<stream_rings> x{false, std::make_shared<soft_mlx5_adapter>(faults)};
  const auto got = x.device->allocate(rounds * frame_bytes);
  x.open();
  auto end = run(*x.stream, std::make_shared<talk>(x.near_end, rounds, got->data()));
  CHECK(ends(end) == gpu::work_status::cut);
  x.near.log->wait_for(kind::ended, "a write has failed");
}

TEST_CASE("L-M07 L-M10 a stream posts its frames and credits into an adapter's queue") {
  emulated_device device{false};
  for (const bool stream_rings : {true, false}) {
    CAPTURE(stream_rings);
    gpu::test::sum_by_posts(device, stream_rings);
  }
}
