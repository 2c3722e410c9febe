// Sums that NCCL carries, over emulated CUDA devices and an NCCL that tells what it was asked.
#include "gpu/cuda/operators/nccl_collective.hpp"
#include "tests/emulated/fake_nccl.hpp"
#include "tests/emulated/whole_device.hpp"
#include "tests/gpu/ring/sum_runs.hpp"
#include "tests/pipeline_runs.hpp"

#include <algorithm>

using namespace lamella;
using namespace lamella::test;
using gpu::work_status;
using calls = std::vector<std::string>;

namespace {

/// As a real CUDA device, with that NCCL.
class device_with_nccl final : public emulated_device {
public:
  device_with_nccl() : emulated_device{false} {}
  std::vector<std::shared_ptr<gpu::collective>>
  make_sums(std::span<const std::shared_ptr<gpu::device>> ranks, std::string&) override {
    std::vector<int> indices;
    for (size_t r = 0; r < ranks.size(); ++r) indices.push_back(static_cast<int>(r));
    return gpu::cuda::make_nccl_collectives(fake_nccl::library(), indices, ops());
  }
};

struct two_ranks {
  two_ranks() {
    for (int r = 0; r < 2; ++r) devices.push_back(std::make_shared<device_with_nccl>());
    fake_nccl::take_calls();
    ends = gpu::make_rank_groups(devices, 0, 4096);
    for (auto& d : devices) streams.push_back(d->make_stream("batch"));
  }
  std::future<work_status> start(uint32_t rank, std::chrono::milliseconds timeout, float value) {
    works[rank] = std::make_shared<sum_work>(
        ends[rank], std::vector<std::vector<float>>{std::vector<float>(3 * sum_work::width, value)},
        gpu::frame_tag{});
    return run_on(*streams[rank], works[rank], timeout);
  }
  std::vector<std::shared_ptr<gpu::device>> devices;
  std::vector<std::shared_ptr<const gpu::rank_group>> ends;
  std::vector<std::unique_ptr<gpu::stream>> streams;
  std::shared_ptr<sum_work> works[2];
};

constexpr std::chrono::minutes plenty{1};

} // namespace

TEST_CASE("L-M03 NCCL is asked for communicators, connected at once, and given them back") {
  {
    two_ranks g;
    CHECK(fake_nccl::take_calls()
          == calls{"comm_init_all 2", "group_start", "all_gather 0", "all_gather 1", "group_end"});
    auto one = g.start(0, plenty, 1), other = g.start(1, plenty, 2);
    CHECK(one.get() == work_status::done);
    CHECK(other.get() == work_status::done);
    auto made = fake_nccl::take_calls();
    std::sort(made.begin(), made.end());
    CHECK(made == calls{"all_gather 0", "all_gather 1"});
    for (const auto& x : g.works) CHECK(x->sums()[0] == std::vector<float>(3 * sum_work::width, 3));
    CHECK(g.ends[0]->why_rings.empty());
  }
  auto made = fake_nccl::take_calls();
  std::sort(made.begin(), made.end());
  CHECK(made == calls{"comm_destroy 0", "comm_destroy 1"});
}

TEST_CASE("an NCCL that fails is quoted, and a work that needs it fails") {
  fake_nccl::fail_next("comm_init_all");
  try {
    two_ranks g;
    FAIL("it was made");
  } catch (const std::runtime_error& e) {
    CHECK(std::string{e.what()} == "ncclCommInitAll: NCCL: it does not want to");
  }
  two_ranks g;
  fake_nccl::fail_next("all_gather");
  CHECK(g.start(0, plenty, 1).get() == work_status::failed);
}

TEST_CASE("a rank whose others do not come ends at its deadline, and its NCCL with it") {
  two_ranks g;
  fake_nccl::take_calls();
  CHECK(g.start(0, std::chrono::milliseconds{50}, 1).get() == work_status::deadline);
  CHECK(fake_nccl::take_calls() == calls{"all_gather 0", "comm_abort 0"});
  CHECK(g.start(0, plenty, 1).get() == work_status::cut);
  auto waits = g.start(1, plenty, 1);
  g.streams[1]->abort();
  CHECK(waits.get() == work_status::aborted);
}

TEST_CASE_FIXTURE(models, "L-M03 sums through NCCL and through rings have the same bytes") {
  tests::tiny_model_options o;
  o.layers = 2;
  o.embedding = 64;
  o.feed_forward = 192;
  o.head_dim = 64;
  o.heads = o.kv_heads = 3;
  o.weights = model::tensor_type::f16;
  const auto model = load(o);
  const auto tokens = random_tokens(11, 1);
  pipeline_options options;
  options.ranks = 3;
  options.slots = 64;
  options.shard_device = [] { return std::make_unique<emulated_device>(); };
  options.replica_device = options.shard_device;
  pipeline rings{model, options};
  options.replica_device = [] { return std::make_unique<device_with_nccl>(); };
  pipeline nccl{model, options};
  CHECK(same_bytes(run_chunked(nccl, tokens, 4, whole(11)),
                   run_chunked(rings, tokens, 4, whole(11))));
  CHECK(nccl.sum_bytes_sent(2) == rings.sum_bytes_sent(2));
}
