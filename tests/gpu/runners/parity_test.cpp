// The parity of an attention pool: what is sent for it, what is stored, and what comes back of it.
#include "gpu/runners/parity_frames.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"
#include "tests/gpu/runners/parity_runs.hpp"

#include <cstring>

using namespace lamella;
using namespace lamella::test;

TEST_CASE("L-M26 parity on the wire is the XOR of what the shards store") {
  using enum gpu::half_type;
  gpu::test::machine three{3};
  const std::pair<gpu::half_type, gpu::half_type> types[] = {{f32, f32}, {f16, f16}, {bf16, bf16},
                                                             {f32, f16}, {f16, f32}, {f16, q8},
                                                             {f32, q8},  {bf16, q8}};
  for (const auto* set : gpu::test::sets(true))
    for (auto [wire, cache] : types)
      for (uint32_t dim : {7u, 64u}) {
        CAPTURE(set->name);
        CAPTURE(dim);
        gpu::test::randomness random{81};
        constexpr uint32_t shards = 3, heads = 2, all_rows = 20;
        const auto stride = shards * heads * dim + 3;
        const auto x = random.normals(all_rows * stride);
        const std::vector<uint32_t> index{19, 0, 7, 8, 3};
        const auto rows = static_cast<uint32_t>(index.size());
        gpu::kv_layer kv{nullptr, cache, heads, dim};
        std::vector<std::byte> sent(heads * rows * dim * gpu::bytes_of(wire)),
            stored(rows * kv.row_bytes()), sum(stored.size());
        kv.rows = stored.data();
        const std::vector<gpu::attention_span> spans{{0, rows, 0, 0, 1}};
        const std::vector<gpu::slot_run> runs{{0, rows}};
        const auto append = [&](gpu::half_type type, const std::byte* k_and_v) {
          set->append_kv(
              {kv, rows, 1, 1, type, nullptr, k_and_v, k_and_v, spans, runs, nullptr, nullptr},
              three.context());
          for (size_t i = 0; i < sum.size(); ++i) sum[i] ^= stored[i];
        };
        for (uint32_t s = 0; s < shards; ++s) {
          set->to_wire({x.data(), stride, index, s * heads, heads, dim, wire, sent.data()},
                       three.context());
          append(wire, sent.data());
        }
        std::vector<std::byte> parity(heads * rows * kv.head_bytes(), std::byte{0x5a});
        set->parity_to_wire(
            {x.data(), stride, index, shards, heads, dim, wire, cache, parity.data()},
            three.context());
        append(cache, parity.data());
        CHECK(sum == std::vector<std::byte>(sum.size()));
      }
}

TEST_CASE("L-M26 as many layers of parity travel in a frame as fit") {
  const gpu::parity_frames all{1 << 20, 30, 1000}, few{5000, 30, 1000}, tight{10, 3, 1000};
  CHECK(all.last_of(0) == 29);
  CHECK(all.bytes_of_frame(7) == 60'000);
  CHECK(few.last_of(0) == 1); // two layers of two halves
  CHECK(few.first_of(29) == 28);
  CHECK(few.last_of(28) == 29);
  CHECK(few.place(29) == 2000);
  CHECK(few.ends_with(3));
  CHECK_FALSE(few.ends_with(2));
  CHECK(tight.ends_with(0));
  const gpu::parity_frames uneven{6000, 7, 1000};
  CHECK(uneven.last_of(6) == 6);
  CHECK(uneven.bytes_of_frame(6) == 2000);
  CHECK(gpu::parity_frame_bytes(512, 1 << 10) == 512 << 10);
  CHECK(gpu::parity_frame_bytes(1, 256) == 256 << 10);
}

TEST_CASE("L-M26 every row of a shard is the XOR of the others' and the parity, in all frames") {
  models files;
  const auto model = files.load();
  const auto tokens = random_tokens(40, 5);
  const auto runs = scattered(3, 60, 7);
  pipeline_options options;
  options.shards = 3;
  options.slots = 96;
  for (auto type :
       {gpu::half_type::f16, gpu::half_type::f32, gpu::half_type::q8, gpu::half_type::q4}) {
    CAPTURE(static_cast<int>(type));
    options.kv = type;
    options.parity_frame_bytes = 0;
    pipeline plain{model, options};
    const auto wanted = run_chunked(plain, tokens, 8, runs);
    const auto row = plain.cache(0).layer(0).row_bytes(); // K and V of one head
    for (size_t frame : {8 * row, 2 * 8 * row + row, size_t{1} << 20}) {
      CAPTURE(frame);
      options.parity_frame_bytes = frame;
      pipeline p{model, options};
      CHECK(same_bytes(run_chunked(p, tokens, 8, runs), wanted)); // parity changes no token
      CHECK(unprotected(p, 3) == 0);
      // One row alone as well: a decode iteration.
      p.run({pipeline_rows{{7}, 40, runs}});
      CHECK(unprotected(p, 3) == 0);
    }
  }
}

TEST_CASE("L-M26 L-M03 parity of several ranks' heads is right, too") {
  models files;
  tests::tiny_model_options shape;
  shape.feed_forward = 96;
  const auto model = files.load(shape);
  pipeline_options options;
  options.shards = 3;
  options.ranks = 3;
  options.slots = 96;
  options.parity_frame_bytes = 4096;
  pipeline p{model, options};
  run_chunked(p, random_tokens(40, 5), 8, scattered(3, 60, 7));
  CHECK(unprotected(p, 3) == 0);
}

TEST_CASE("L-M26 L-M17 parity of replicas that run the slices in turn is right, too") {
  models files;
  const auto model = files.load();
  pipeline_options options;
  options.shards = 3;
  options.replicas = 2;
  options.slots = 96;
  options.parity_frame_bytes = 1 << 20;
  pipeline p{model, options};
  run_chunked(p, random_tokens(40, 5), 8, scattered(3, 60, 7));
  CHECK(unprotected(p, 3) == 0);
}

TEST_CASE("L-M26 a lost member of a pool is what the others lend it") {
  models files;
  const auto model = files.load();
  pipeline_options options;
  SUBCASE("f16") { options.kv = gpu::half_type::f16; }
  SUBCASE("q8") { options.kv = gpu::half_type::q8; }
  SUBCASE("q4") { options.kv = gpu::half_type::q4; }
  options.shards = 3;
  options.slots = 96;
  options.parity_frame_bytes = 1 << 16;
  pipeline p{model, options};
  const auto runs = scattered(3, 60, 7);
  run_chunked(p, random_tokens(50, 6), 16, runs);
  for (uint32_t lost = 0; lost <= 3; ++lost) { // the parity as well
    CAPTURE(lost);
    CHECK(comes_back(p, 4, lost, 90, p.device(lost)));
  }
}

TEST_CASE("A6 checksums of a slot add up where the parity is right, and only there") {
  models files;
  const auto model = files.load();
  pipeline_options options;
  SUBCASE("f16") { options.kv = gpu::half_type::f16; }
  SUBCASE("q8") { options.kv = gpu::half_type::q8; }
  SUBCASE("q4") { options.kv = gpu::half_type::q4; }
  options.shards = 3;
  options.slots = 96;
  options.parity_frame_bytes = 1 << 16;
  pipeline p{model, options};
  run_chunked(p, random_tokens(50, 6), 16, scattered(3, 60, 7));
  const auto layers = model.program->spec.layers;
  CHECK(found_wrong(p, 4, 82).empty());
  for (uint32_t member = 0; member < 4; ++member)
    for (uint32_t layer = 0; layer < layers; ++layer) {
      auto* byte =
          p.cache(member).layer(layer).rows + 11 * p.cache(member).layer(0).row_bytes() + 3;
      *byte ^= std::byte{0x40};
      CHECK(found_wrong(p, 4, 82) == std::vector<uint32_t>{11});
      *byte ^= std::byte{0x40};
    }
  const auto in_order = checksums_of(p.device(0), p.cache(0), whole(96));
  const auto some = checksums_of(p.device(0), p.cache(0), {{5, 80}, {0, 2}});
  REQUIRE(some.size() == 82);
  CHECK(some[6] == in_order[11]);
  CHECK(some[80] == in_order[0]);
  // Three members: the XOR of the second and the third in place of the first.
  for (uint32_t layer = 0; layer < layers; ++layer)
    for (size_t i = 0; i < 96 * p.cache(0).layer(0).row_bytes(); ++i)
      p.cache(0).layer(layer).rows[i] =
          p.cache(1).layer(layer).rows[i] ^ p.cache(2).layer(layer).rows[i];
  CHECK(found_wrong(p, 3, 82).empty());
  p.cache(0).layer(1).rows[0] ^= std::byte{1};
  CHECK(found_wrong(p, 3, 82) == std::vector<uint32_t>{0});
}
