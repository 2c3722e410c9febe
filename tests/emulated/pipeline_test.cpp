// A whole tiny model on emulated CUDA devices: the operators, the driver and the rings as they are,
// the kernels' sources run lane by lane in the order of streams made of threads. What kernels are
// joined, and how many a layer needs, shows here.
#include "gpu/cuda/counter.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/launch_count.hpp"
#include "gpu/cuda/operators.hpp"
#include "gpu/cuda/ring_ends.hpp"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"
#include "tests/gpu/pull_runs.hpp"
#include "tests/pipeline_runs.hpp"

#include <cstring>

using namespace lamella;
using namespace lamella::test;
using rows = pipeline_rows;

namespace {

constexpr uint32_t length = 19;

class host_block final : public gpu::memory {
public:
  explicit host_block(size_t bytes) : data_{gpu::cuda::pinned_memory(bytes)}, size_{bytes} {
    trim();
  }
  std::byte* data() override { return data_.get(); }
  size_t size() const override { return size_; }
  void trim() override { std::memset(data_.get(), 0, size_); }

private:
  std::shared_ptr<std::byte> data_;
  size_t size_;
};

class line_stream final : public gpu::stream {
public:
  explicit line_stream(gpu::cuda::driver& on) : driver_{on}, line_{on.open()} {}
  ~line_stream() override { driver_.close(line_); }
  void launch(std::shared_ptr<gpu::work> x, gpu::clock::time_point deadline, mark on_end) override {
    driver_.launch(line_, {std::move(x), deadline, std::move(on_end)});
  }
  void abort() override { driver_.abort(line_); }

private:
  gpu::cuda::driver& driver_;
  std::shared_ptr<gpu::cuda::driver::line> line_;
};

/// All is the host's memory.
class emulated_device final : public gpu::device {
public:
  explicit emulated_device(bool replays) : driver_{0, replays} {}
  std::string name() const override { return "emulated"; }
  const gpu::operators& ops() const override { return gpu::cuda::cuda_operators(); }
  gpu::team& workers() override { return driver_.workers(); }
  std::unique_ptr<gpu::stream> make_stream(std::string) override {
    return std::make_unique<line_stream>(driver_);
  }
  std::unique_ptr<gpu::memory> allocate(size_t bytes) override {
    return std::make_unique<host_block>(bytes);
  }
  uint64_t free_bytes() const override { return 0; }
  void write(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
  void read(std::span<std::byte> to, const std::byte* from) override {
    std::memcpy(to.data(), from, to.size());
  }
  bool on_host() const override { return false; }
  std::shared_ptr<std::byte> ring_memory(size_t bytes, const gpu::device&) override {
    auto memory = gpu::cuda::pinned_memory(bytes);
    std::memset(memory.get(), 0, bytes);
    return memory;
  }
  std::shared_ptr<gpu::channel_sender> make_sender(gpu::ring_place place,
                                                   gpu::ring_identity self) override {
    return gpu::cuda::make_ring_sender(std::move(place), self, true);
  }
  std::shared_ptr<gpu::channel_receiver> make_receiver(gpu::ring_place place) override {
    return gpu::cuda::make_ring_receiver(std::move(place), true);
  }
  std::shared_ptr<gpu::counter> make_counter() override { return gpu::cuda::make_device_counter(); }
  std::shared_ptr<gpu::doorbell> bell() override { return nullptr; }

private:
  gpu::cuda::driver driver_;
};

std::unique_ptr<gpu::device> emulated_cuda() { return std::make_unique<emulated_device>(false); }
std::unique_ptr<gpu::device> replaying_cuda() { return std::make_unique<emulated_device>(true); }

tests::tiny_model_options shape(uint32_t layers = 2) {
  tests::tiny_model_options o;
  o.layers = layers;
  o.embedding = 64;
  o.feed_forward = 96;
  o.head_dim = 64;
  o.heads = 4;
  o.kv_heads = 2;
  o.weights = model::tensor_type::f16;
  return o;
}

pipeline_options both(uint32_t shards = 1) {
  pipeline_options o;
  o.replica_device = o.shard_device = emulated_cuda;
  o.shards = shards;
  o.slots = 256;
  return o;
}

/// Kernels of one decode iteration of `batch` sequences.
uint64_t launches(const model::loaded_model& model, uint32_t batch) {
  pipeline p{model, both()};
  std::vector<rows> prompts, next;
  for (uint32_t i = 0; i < batch; ++i) {
    prompts.push_back({random_tokens(5, i), 0, whole(16, 16 * i)});
    next.push_back({{7 + i}, 5, whole(16, 16 * i)});
  }
  p.run(prompts);
  const auto before = gpu::cuda::kernels_launched.load();
  p.run(next);
  return gpu::cuda::kernels_launched.load() - before;
}

} // namespace

TEST_CASE_FIXTURE(models, "emulated CUDA devices run a model as the reference does") {
  const auto model = load(shape());
  const auto tokens = random_tokens(length, 1);
  pipeline reference{model, {}};
  const auto expected = run_chunked(reference, tokens, length, whole(length));
  pipeline p{model, both()};
  const auto prefill = run_chunked(p, tokens, 7, whole(length));
  // Activations are rounded to f16 before each product.
  CHECK(difference(prefill, expected) < 4e-3);
  CHECK(same_bytes(run_chunked(p, tokens, 1, scattered(50, length, 4)), prefill));
  pipeline two{model, both(2)};
  CHECK(same_bytes(run_chunked(two, tokens, 1, whole(length)), prefill));
}

TEST_CASE_FIXTURE(models, "emulated CUDA devices work with shards or replicas of the host") {
  const auto model = load(shape());
  const auto tokens = random_tokens(length, 2);
  pipeline reference{model, {}};
  const auto expected = run_chunked(reference, tokens, length, whole(length));
  for (bool replica : {true, false}) {
    CAPTURE(replica);
    auto o = both(2);
    (replica ? o.shard_device : o.replica_device) = nullptr;
    pipeline mixed{model, o};
    CHECK(difference(run_chunked(mixed, tokens, 5, whole(length)), expected) < 4e-3);
    CHECK(difference(run_chunked(mixed, tokens, 1, whole(length, 100)), expected) < 4e-3);
  }
}

TEST_CASE_FIXTURE(models, "iterations launched as graphs give the bytes of single kernels") {
  const auto model = load(shape());
  const auto tokens = random_tokens(length, 3);
  pipeline single{model, both()};
  auto o = both();
  o.replica_device = o.shard_device = replaying_cuda;
  fake_cuda::reset();
  pipeline p{model, o};
  for (uint32_t chunk : {1u, 4u}) {
    CAPTURE(chunk);
    CHECK(same_bytes(run_chunked(p, tokens, chunk, scattered(50, length, 4)),
                     run_chunked(single, tokens, chunk, whole(length))));
  }
  // Replica and shard; the first works of a kind are launched as they are. Few graphs for many.
  MESSAGE(fake_cuda::graphs_made() << " graphs, " << fake_cuda::graphs_launched() << " launches");
  CHECK(fake_cuda::graphs_launched() >= length);
  CHECK(fake_cuda::graphs_made() <= fake_cuda::graphs_launched() / 2);
}

// Per layer the replica has a wait, what comes from the wire, out, sum and norm, gate, up, SiLU,
// down, sum and norm, Q, its frame, K, V, their frame; the shard two waits, the attention and its
// end. With rings of four slots a wait for credit comes after two frames: 1.5 per layer. Products
// that are cut along K have one more each, which these small shapes are not.
TEST_CASE_FIXTURE(models, "a decode layer takes 18 kernels and the waits for credit") {
  const auto three = launches(load(shape(3)), 3), seven = launches(load(shape(7)), 3);
  MESSAGE("4 layers: " << seven - three << " launches; beside the layers "
                       << three - (seven - three) * 3 / 4);
  CHECK(seven - three == 4 * 18 + 6);
}

TEST_CASE("L-M27 S-M14 KV is pulled from one emulated CUDA device to another") {
  const auto from = emulated_cuda(), to = emulated_cuda();
  gpu::test::pull_between(*from, *to);
}
