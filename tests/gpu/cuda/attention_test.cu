#include "tests/gpu/cuda/attention_support.hpp"

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::test;
using lamella::tests::splitmix;

namespace {

const std::vector<uint32_t> edges{0,    1,    15,   16,   17,   31,   32,  33,  63,
                                  64,   65,   255,  256,  257,  511,  512, 513, 1023,
                                  1024, 1025, 1056, 2047, 2048, 2049, 4097};

/// ‖out − exact‖ / ‖exact‖ of one query; infinite when anything is not finite.
double error_of(const shape& s, const half_bits* out, const std::vector<double>& exact) {
  double difference = 0, length = 0;
  for (size_t j = 0; j < exact.size(); ++j) {
    double x = s.widen(out[j]);
    if (!std::isfinite(x)) return INFINITY;
    difference += (x - exact[j]) * (x - exact[j]);
    length += exact[j] * exact[j];
  }
  return std::sqrt(difference / length);
}

/// The worst error of some rows of a call.
double worst_error(const device_call& call, const shape& s, const sequence& x, uint32_t row,
                   uint32_t position) {
  double worst = 0;
  for (uint32_t h = 0; h < s.heads; ++h) {
    auto out = call.row(h, row);
    for (uint32_t g = 0; g < s.group; ++g)
      worst = std::max(worst, error_of(s, &out[size_t{g} * s.dim], x.exact(position, h, g)));
  }
  return worst;
}

bool same_rows(const device_call& a, uint32_t row_a, const device_call& b, uint32_t row_b,
               uint32_t heads) {
  for (uint32_t h = 0; h < heads; ++h)
    if (a.row(h, row_a) != b.row(h, row_b)) return false;
  return true;
}

std::vector<slot_run> until(std::vector<slot_run> runs, uint32_t count) {
  uint32_t covered = 0;
  size_t kept = 0;
  while (covered < count) {
    runs[kept].length = std::min(runs[kept].length, count - covered);
    covered += runs[kept++].length;
  }
  runs.resize(kept);
  return runs;
}

} // namespace

TEST_CASE("L-M14 L-M15: a row of its own equals exact attention, at all edges, groups and sizes") {
  if (!device_there()) return;
  splitmix random{fresh_seed("attention at all edges")};
  for (uint32_t dim : {64u, 128u})
    for (uint32_t group = 1; group <= 16; ++group) {
      // All types with either number of column tiles.
      const half_type types[] = {half_type::bf16, half_type::q8, half_type::f16};
      const auto type = types[group % 3];
      const auto q8_wire = group % 2 == 0 ? half_type::f16 : half_type::bf16;
      const shape s{group == 8 ? 8u : 2u, group, dim, type, q8_wire};
      std::vector<sequence> sequences;
      std::vector<piece> pieces;
      uint32_t pool = 0;
      for (auto position : edges)
        if (s.heads == 2 || position < 1100)
          sequences.emplace_back(s, position + 1, random, position % 2 == 0 ? 1.0f : 8.0f);
      for (const auto& x : sequences) {
        auto runs = scattered(x.length, 1 + (group * 7) % 32, x.length * 2 + 64, random);
        for (auto& run : runs) run.first += pool;
        pool += x.length * 2 + 64;
        pieces.push_back({&x, x.length - 1, 1, runs});
      }
      device_call call{s, pieces, pool};
      call.run();
      for (uint32_t row = 0; row < pieces.size(); ++row) {
        INFO("D " << dim << " G " << group << " position " << pieces[row].first);
        CHECK(worst_error(call, s, sequences[row], row, pieces[row].first) < s.tolerance());
      }
      CHECK(call.cache() == call.expected_cache(pieces));
      device_call joined{s, pieces, pool};
      joined.run_joined();
      CHECK(joined.cache() == call.cache());
      for (uint32_t row = 0; row < pieces.size(); ++row)
        for (uint32_t h = 0; h < s.heads; ++h) CHECK(joined.row(h, row) == call.row(h, row));
    }
}

TEST_CASE("L-M14: contexts of many records equal exact attention") {
  if (!device_there()) return;
  splitmix random{fresh_seed("contexts of many records")};
  for (uint32_t dim : {64u, 128u}) {
    const shape s{1, 2, dim};
    std::vector<sequence> sequences;
    for (uint32_t records : {16u, 17u, 32u, 33u, 34u, 66u})
      sequences.emplace_back(s, records * attention_unit - 5, random, 4.0f);
    std::vector<piece> pieces;
    uint32_t pool = 0;
    for (const auto& x : sequences) {
      pieces.push_back({&x, x.length - 1, 1, {{pool, x.length}}});
      pool += x.length;
    }
    device_call call{s, pieces, pool};
    call.run();
    for (uint32_t row = 0; row < pieces.size(); ++row) {
      INFO("D " << dim << " position " << pieces[row].first);
      CHECK(worst_error(call, s, sequences[row], row, pieces[row].first) < s.tolerance());
    }
  }
}

TEST_CASE("L-M14 L-M15: rows of longer spans equal exact attention") {
  if (!device_there()) return;
  splitmix random{fresh_seed("rows of longer spans")};
  for (uint32_t dim : {64u, 128u})
    for (uint32_t group : {1u, 3u, 4u, 8u, 11u, 16u}) {
      const half_type types[] = {half_type::f16, half_type::q8, half_type::f16, half_type::bf16};
      const shape s{2, group, dim, group == 8 ? half_type::q8 : types[group % 4],
                    group == 1 ? half_type::bf16 : half_type::f16};
      struct range {
        uint32_t first, rows;
      };
      const std::vector<range> ranges{{0, 2}, {0, 130}, {1000, 60}, {31, 3}, {1024, 2}, {2040, 33}};
      std::vector<sequence> sequences;
      std::vector<piece> pieces;
      uint32_t pool = 0;
      for (auto [first, rows] : ranges) sequences.emplace_back(s, first + rows, random, 3.0f);
      for (size_t i = 0; i < ranges.size(); ++i) {
        auto length = ranges[i].first + ranges[i].rows;
        auto runs = scattered(length, 16, length * 2 + 64, random);
        for (auto& run : runs) run.first += pool;
        pool += length * 2 + 64;
        pieces.push_back({&sequences[i], ranges[i].first, ranges[i].rows, runs});
      }
      device_call call{s, pieces, pool};
      call.run();
      uint32_t row = 0;
      for (size_t i = 0; i < ranges.size(); ++i)
        for (uint32_t k = 0; k < ranges[i].rows; ++k, ++row) {
          if (k > 3 && k + 3 < ranges[i].rows && k % 9 != 0) continue; // the reference is slow
          INFO("D " << dim << " G " << group << " position " << ranges[i].first + k);
          CHECK(worst_error(call, s, sequences[i], row, ranges[i].first + k) < s.tolerance());
        }
      CHECK(call.cache() == call.expected_cache(pieces));
    }
}

TEST_CASE("a row has the same bytes alone, in any batch, in any run of slots and in any prefill") {
  if (!device_there()) return;
  splitmix random{fresh_seed("a row anywhere")};
  for (uint32_t dim : {64u, 128u})
    for (uint32_t group : {1u, 3u, 4u, 8u, 16u}) {
      INFO("D " << dim << " G " << group);
      const shape s{2, group, dim, group % 4 == 3 || group == 16 ? half_type::q8 : half_type::f16,
                    group == 16 ? half_type::bf16 : half_type::f16};
      const uint32_t length = 2100, pool = 8192;
      sequence x{s, length, random, 2.0f};
      const auto runs = scattered(length, 16, pool, random);

      // Every position as a row of its own: spans of one row over the same slots.
      std::vector<piece> rows;
      for (uint32_t i = 0; i < length; ++i) rows.push_back({&x, i, 1, until(runs, i + 1)});
      device_call batch{s, rows, pool};
      batch.run();

      // The same as prefills cut here and there.
      for (const auto& cuts : {std::vector<uint32_t>{0, length},
                               {0, 1, 3, 1000, 1030, 2100},
                               {0, 17, 18, 512, 1024, 1025, 2048, 2100}}) {
        size_t different = 0;
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          device_call part{
              s, {{&x, cuts[i], cuts[i + 1] - cuts[i], until(runs, cuts[i + 1])}}, pool};
          part.run();
          for (auto row = cuts[i]; row < cuts[i + 1]; ++row)
            different += !same_rows(part, row - cuts[i], batch, row, s.heads);
        }
        CHECK(different == 0);
      }

      // Alone, and with slots in other places.
      for (uint32_t row : {0u, 1u, 33u, 1023u, 1024u, 1025u, 2099u})
        for (uint32_t longest : {1u, 5u, 16u, 2100u}) {
          device_call alone{s, {{&x, row, 1, scattered(row + 1, longest, pool, random)}}, pool};
          alone.run();
          INFO("row " << row << ", runs of " << longest);
          CHECK(same_rows(alone, 0, batch, row, s.heads));
        }
    }
}

TEST_CASE("the same call gives the same bytes every time") {
  if (!device_there()) return;
  splitmix random{fresh_seed("the same call")};
  const shape s{8, 8, 128};
  std::vector<sequence> sequences;
  for (uint32_t i = 0; i < 4; ++i) sequences.emplace_back(s, 3000 + i * 701, random);
  std::vector<piece> pieces;
  for (uint32_t i = 0; i < 40; ++i) {
    auto runs = std::vector<slot_run>{{i % 4 * 6000, sequences[i % 4].length}};
    pieces.push_back({&sequences[i % 4], sequences[i % 4].length - 1, 1, runs});
  }
  device_call call{s, pieces, 24000};
  call.run();
  const auto first = call.row(3, 39);
  for (int i = 0; i < 20; ++i) {
    device_call again{s, pieces, 24000};
    again.run();
    for (uint32_t h = 0; h < s.heads; ++h)
      for (uint32_t row = 0; row < call.rows(); ++row)
        REQUIRE(again.row(h, row) == call.row(h, row));
  }
}

TEST_CASE("L-M23: the heads of a shard have the bytes they have in the whole") {
  if (!device_there()) return;
  splitmix random{fresh_seed("heads of a shard")};
  for (auto type : {half_type::f16, half_type::q8}) {
    const shape s{4, 8, 128, type};
    sequence a{s, 1500, random}, b{s, 90, random};
    const std::vector<piece> pieces{{&a, 1499, 1, {{2000, 1500}}}, {&b, 40, 50, {{17, 90}}}};
    device_call whole{s, pieces, 4000};
    whole.run();
    for (size_t shards : {2u, 4u})
      for (size_t i = 0; i < shards; ++i) {
        const auto heads = s.heads / shards;
        device_call part{s, pieces, 4000, i * heads, heads};
        part.run();
        for (size_t h = 0; h < heads; ++h)
          for (uint32_t row = 0; row < whole.rows(); ++row)
            CHECK(part.row(h, row) == whole.row(i * heads + h, row));
      }
  }
}

TEST_CASE("a captured graph replays with other content of the same capacity") {
  if (!device_there()) return;
  splitmix random{fresh_seed("a captured graph")};
  const shape s{2, 4, 128};
  sequence a{s, 3000, random}, b{s, 700, random};
  const std::vector<piece> first{{&a, 2999, 1, {{0, 3000}}}, {&b, 699, 1, {{3000, 700}}}};
  const std::vector<piece> second{{&b, 500, 1, {{10, 501}}}, {&a, 1024, 1, {{1000, 1025}}}};
  device_call one{s, first, 4096}, two{s, second, 4096};
  REQUIRE(one.plan().capacity == two.plan().capacity);
  two.run();
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  one.launch(stream);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphLaunch(exec, stream));
  check(cudaStreamSynchronize(stream));
  device_call check_one{s, first, 4096};
  check_one.run();
  for (uint32_t row = 0; row < 2; ++row) CHECK(same_rows(one, row, check_one, row, s.heads));

  // The content of the other call, at the addresses of the first.
  const auto move = [&](std::byte* to, const std::byte* from, size_t bytes) {
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
  };
  device_call fresh{s, second, 4096};
  move(one.args.cache, fresh.args.cache, size_t{4096} * 2 * s.heads * s.dim * 2);
  move(const_cast<std::byte*>(one.args.q), fresh.args.q, size_t{2} * s.heads * s.group * s.dim * 2);
  move(const_cast<std::byte*>(one.args.k_new), fresh.args.k_new, size_t{2} * s.heads * s.dim * 2);
  move(const_cast<std::byte*>(one.args.v_new), fresh.args.v_new, size_t{2} * s.heads * s.dim * 2);
  move(one.args.plan, fresh.args.plan, one.args.capacity.plan_bytes());
  const auto out_bytes = size_t{2} * s.heads * s.group * s.dim * 2;
  check(cudaMemset(one.args.out, 0xff, out_bytes));
  check(cudaGraphLaunch(exec, stream));
  check(cudaStreamSynchronize(stream));
  std::vector<half_bits> replayed(out_bytes / 2), expected;
  check(cudaMemcpy(replayed.data(), one.args.out, out_bytes, cudaMemcpyDeviceToHost));
  for (uint32_t h = 0; h < s.heads; ++h)
    for (uint32_t row = 0; row < 2; ++row) {
      auto r = two.row(h, row);
      expected.insert(expected.end(), r.begin(), r.end());
    }
  CHECK(replayed == expected);
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
}

TEST_CASE("refuses shapes that there is no kernel for, with the reason") {
  CHECK(attention_unsupported(8, 128, 8, half_type::f16, half_type::f16) == nullptr);
  CHECK(attention_unsupported(3, 64, 3, half_type::f16, half_type::f16) == nullptr);
  CHECK(attention_unsupported(3, 64, 3, half_type::bf16, half_type::bf16) == nullptr);
  CHECK(attention_unsupported(3, 64, 3, half_type::q8, half_type::f16) == nullptr);
  CHECK(attention_unsupported(3, 64, 3, half_type::q8, half_type::bf16) == nullptr);
  for (auto reason : {attention_unsupported(8, 96, 8, half_type::f16, half_type::f16),
                      attention_unsupported(8, 128, 17, half_type::f16, half_type::f16),
                      attention_unsupported(8, 128, 0, half_type::f16, half_type::f16),
                      attention_unsupported(0, 128, 8, half_type::f16, half_type::f16),
                      attention_unsupported(8, 128, 8, half_type::f32, half_type::f16),
                      attention_unsupported(8, 128, 8, half_type::f16, half_type::f32),
                      attention_unsupported(8, 128, 8, half_type::f16, half_type::bf16),
                      attention_unsupported(8, 128, 8, half_type::bf16, half_type::f16),
                      attention_unsupported(8, 128, 8, half_type::q8, half_type::f32),
                      attention_unsupported(8, 128, 8, half_type::q4, half_type::f16),
                      attention_unsupported(8, 128, 8, half_type::q8, half_type::q8)})
    CHECK(reason != nullptr);
}
