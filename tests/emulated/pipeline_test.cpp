// A whole tiny model on emulated CUDA devices: the operators, the driver and the rings as they are,
// the kernels' sources run lane by lane in the order of streams made of threads. What kernels are
// joined, and how many a layer needs, shows here.
#include "gpu/cuda/stream/launch_count.hpp"
#include "tests/emulated/whole_device.hpp"
#include "tests/gpu/fake_cuda/fake_cuda.hpp"
#include "tests/gpu/runners/parity_runs.hpp"

using namespace lamella;
using namespace lamella::test;
using rows = pipeline_rows;

namespace {

constexpr uint32_t length = 19;

std::unique_ptr<gpu::device> emulated_cuda() { return std::make_unique<emulated_device>(); }

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

TEST_CASE_FIXTURE(models,
                  "L-M14 emulated CUDA devices keep KV of bf16 and q8 as the reference does") {
  const auto model = load(shape());
  const auto tokens = random_tokens(length, 4);
  pipeline_options o;
  SUBCASE("bf16") { o.wire = o.kv = gpu::half_type::bf16; }
  SUBCASE("q8") { o.kv = gpu::half_type::q8; }
  SUBCASE("q8 under a wire of bf16") {
    o.wire = gpu::half_type::bf16;
    o.kv = gpu::half_type::q8;
  }
  pipeline reference{model, o};
  const auto expected = run_chunked(reference, tokens, length, whole(length));
  auto cuda = both();
  cuda.wire = o.wire;
  cuda.kv = o.kv;
  pipeline p{model, cuda};
  const auto prefill = run_chunked(p, tokens, 7, whole(length));
  // Probabilities and what goes over the wire, or K and V, are rounded to 8 bits.
  CHECK(difference(prefill, expected) < 3e-2);
  CHECK(same_bytes(run_chunked(p, tokens, 1, scattered(50, length, 4)), prefill));
  cuda.shards = 2;
  pipeline two{model, cuda};
  CHECK(same_bytes(run_chunked(two, tokens, 1, whole(length)), prefill));
  cuda.shard_device = nullptr;
  pipeline mixed{model, cuda};
  CHECK(difference(run_chunked(mixed, tokens, 5, whole(length)), expected) < 3e-2);
}

TEST_CASE_FIXTURE(models, "V-M08 mini-batches on emulated CUDA devices give the same bytes") {
  const auto model = load(shape());
  std::vector<rows> prompts, next;
  for (uint32_t i = 0; i < 5; ++i) {
    prompts.push_back({random_tokens(6 + i, i), 0, whole(16, 16 * i)});
    next.push_back({{7 + i}, 6 + i, whole(16, 16 * i)});
  }
  const auto run = [&](uint32_t parts, uint32_t shards) {
    auto o = both(shards);
    o.mini_batches = parts;
    pipeline p{model, o};
    auto all = p.run(prompts);
    for (auto& row : p.run(next)) all.push_back(std::move(row));
    return all;
  };
  const auto expected = run(1, 1);
  for (uint32_t parts : {2u, 3u, 8u})
    for (uint32_t shards : {1u, 2u}) CHECK(same_bytes(run(parts, shards), expected));
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

// Per layer the replica has a wait, what comes from the wire, out, sum and norm, gate and up, SiLU,
// down, sum and norm, Q, its frame, K, V, their frame; the shard two waits, the attention and its
// end. With rings of four slots a wait for credit comes after two frames: 1.5 per layer. Products
// that are cut along K have one more each, which these small shapes are not.
TEST_CASE_FIXTURE(models, "a decode layer takes 17 kernels and the waits for credit") {
  const auto three = launches(load(shape(3)), 3), seven = launches(load(shape(7)), 3);
  MESSAGE("4 layers: " << seven - three << " launches; beside the layers "
                       << three - (seven - three) * 3 / 4);
  CHECK(seven - three == 4 * 17 + 6);
}

// Beyond 256 rows they are two products.
TEST_CASE_FIXTURE(models, "gate and up in one product have the bytes of two") {
  constexpr uint32_t many = 260;
  const auto model = load(shape(1));
  const auto tokens = random_tokens(many, 7);
  auto o = both();
  o.slots = 3 * many;
  pipeline p{model, o};
  const auto two = run_chunked(p, tokens, many, whole(many));
  CHECK(same_bytes(run_chunked(p, tokens, 256, whole(many, many)), two));
  CHECK(same_bytes(run_chunked(p, tokens, 13, whole(many, 2 * many)), two));
}

TEST_CASE_FIXTURE(models,
                  "L-M26 A6 parity of emulated CUDA devices is sent, stored, checked and brings a "
                  "member back") {
  auto wide = shape();
  wide.heads = 6;
  wide.kv_heads = 3;
  const auto model = load(wide);
  const auto tokens = random_tokens(length, 6);
  auto o = both(3);
  o.slots = 64;
  SUBCASE("f16") {}
  SUBCASE("bf16") { o.wire = o.kv = gpu::half_type::bf16; }
  SUBCASE("q8") { o.kv = gpu::half_type::q8; }
  SUBCASE("q8 under a wire of bf16") {
    o.wire = gpu::half_type::bf16;
    o.kv = gpu::half_type::q8;
  }
  pipeline plain{model, o};
  const auto wanted = run_chunked(plain, tokens, 7, scattered(3, length + 1, 4));
  const auto row = plain.cache(0).layer(0).row_bytes();
  // A layer in a frame; then all of them, of iterations of one row as well.
  for (size_t frame : {8 * row, size_t{1} << 20}) {
    CAPTURE(frame);
    o.parity_frame_bytes = frame;
    pipeline p{model, o};
    CHECK(same_bytes(run_chunked(p, tokens, 7, scattered(3, length + 1, 4)), wanted));
    p.run({rows{{7}, length, scattered(3, length + 1, 4)}});
    CHECK(unprotected(p, 3) == 0);
    CHECK(found_wrong(p, 4, 40).empty());
    const auto spare = emulated_cuda();
    for (uint32_t lost = 0; lost <= 3; ++lost) CHECK(comes_back(p, 4, lost, 40, *spare));
    // The checksums are the host's.
    gpu::host_engine engine{1, gpu::reference_operators()};
    const auto host = engine.make_device("host");
    const auto& cache = p.cache(1);
    CHECK(checksums_of(p.device(1), cache, {{30, 9}, {3, 1}})
          == checksums_of(*host, cache, {{30, 9}, {3, 1}}));
    cache.layer(1).rows[12 * row] ^= std::byte{4};
    CHECK(found_wrong(p, 4, 40) == std::vector<uint32_t>{12});
  }
}

TEST_CASE("L-M27 S-M14 KV is pulled from one emulated CUDA device to another") {
  const auto from = emulated_cuda(), to = emulated_cuda();
  gpu::test::pull_between(*from, *to);
}

TEST_CASE_FIXTURE(models, "families run on emulated CUDA devices as on the reference") {
  constexpr uint32_t few = 9;
  for (const std::string architecture : {"qwen2", "qwen3", "smollm3", "granite", "olmo2", "phi3"}) {
    CAPTURE(architecture);
    auto options = shape(architecture == "smollm3" ? 4 : 2);
    options.rope_long = architecture == "phi3"; // then rotations have a magnitude
    options.architecture = architecture;
    options.feed_forward = 128; // 64 for each of two ranks
    const auto model = load(options);
    const auto tokens = random_tokens(few, 5);
    pipeline reference{model, {}};
    const auto expected = run_chunked(reference, tokens, few, whole(few));
    pipeline p{model, both()};
    const auto prefill = run_chunked(p, tokens, 7, whole(few));
    CHECK(difference(prefill, expected) < 4e-3);
    auto o = both(2);
    pipeline shards{model, o};
    CHECK(same_bytes(run_chunked(shards, tokens, 1, scattered(50, few, 4)), prefill));
    if (architecture == "olmo2") continue; // of one rank
    o.ranks = 2;
    pipeline ranks{model, o};
    const auto found = run_chunked(ranks, tokens, 8, whole(few));
    CHECK(difference(found, expected) < 4e-3);
    CHECK(same_bytes(run_chunked(ranks, tokens, 2, whole(few, 100)), found));
    if (architecture != "qwen2") continue;
    o = both(2);
    o.by_request = true;
    pipeline by_request{model, o};
    CHECK(same_bytes(run_chunked(by_request, tokens, 5, whole(few)), prefill));
  }
}

// Biases of Q, K and V have a kernel each; norms of Q and K too.
TEST_CASE_FIXTURE(models, "a decode layer of Qwen2 takes three more kernels, one of Qwen3 two") {
  const auto per_four_layers = [&](const char* architecture) {
    auto shallow = shape(3), deep = shape(7);
    shallow.architecture = deep.architecture = architecture;
    const auto three = launches(load(shallow), 1);
    return launches(load(deep), 1) - three;
  };
  CHECK(per_four_layers("qwen2") == 4 * (17 + 3) + 6);
  CHECK(per_four_layers("qwen3") == 4 * (17 + 2) + 6);
}

TEST_CASE_FIXTURE(models,
                  "L-M17 L-M21 emulated CUDA devices that run the slices in turn change no byte") {
  auto options = shape(3);
  const auto model = load(options);
  const auto tokens = random_tokens(length, 6);
  pipeline alone{model, both(2)};
  const auto expected = run_chunked(alone, tokens, 8, whole(length));
  auto o = both(2);
  o.replicas = 2;
  pipeline p{model, o};
  CHECK(same_bytes(run_chunked(p, tokens, 8, whole(length)), expected));
  CHECK(same_bytes(run_chunked(p, tokens, 1, whole(length, 100)), expected));
}

TEST_CASE_FIXTURE(models, "L-M03 two ranks on emulated CUDA devices, and no cut changes a byte") {
  auto options = shape();
  options.feed_forward = 128;
  const auto model = load(options);
  const auto tokens = random_tokens(length, 4);
  pipeline_options host;
  host.ranks = 2;
  pipeline reference{model, host};
  auto o = both(2);
  o.ranks = 2;
  pipeline p{model, o};
  const auto found = run_chunked(p, tokens, 8, whole(length));
  CHECK(difference(found, run_chunked(reference, tokens, 8, whole(length))) < 4e-3);
  CHECK(same_bytes(run_chunked(p, tokens, 1, whole(length, 100)), found));
  CHECK(p.sum_bytes_sent(1) == uint64_t{2} * length * 2 * options.layers * options.embedding * 4);
}

TEST_CASE_FIXTURE(models, "L-M03 three ranks on emulated CUDA devices: no cut changes a byte") {
  auto options = shape();
  options.heads = 6;
  options.kv_heads = 3;
  options.feed_forward = 192;
  const auto model = load(options);
  const auto tokens = random_tokens(length, 5);
  auto o = both(1);
  o.ranks = 3;
  pipeline p{model, o};
  const auto found = run_chunked(p, tokens, 8, whole(length));
  CHECK(same_bytes(run_chunked(p, tokens, 1, whole(length, 100)), found));
}
