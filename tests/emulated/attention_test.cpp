// The sources of the CUDA attention kernels, run lane by lane on the CPU: small shapes, every path.
// tests/gpu/cuda/attention_test.cu asks more of them on a device.
#include "tests/emulated/tail.hpp"

#include "gpu/cuda/attention/attention_previous.cu"

#include "gpu/cuda/attention/attention_finish.cu"

#include "gpu/cuda/attention/attention_rows.cu"

#include "tests/gpu/cuda/attention_support.hpp"

using namespace lamella::gpu;
using namespace lamella::gpu::cuda;
using namespace lamella::gpu::cuda::test;
using lamella::tests::splitmix;

namespace {

/// The largest ‖out − exact‖ / ‖exact‖ of a row's queries; infinite when anything is not finite.
double worst_error(const device_call& call, const shape& s, const sequence& x, uint32_t row,
                   uint32_t position) {
  double worst = 0;
  for (uint32_t h = 0; h < s.heads; ++h) {
    const auto out = call.row(h, row);
    for (uint32_t g = 0; g < s.group; ++g) {
      double difference = 0, length = 0;
      const auto exact = x.exact(position, h, g);
      for (size_t j = 0; j < exact.size(); ++j) {
        const double value = s.widen(out[size_t{g} * s.dim + j]);
        if (!std::isfinite(value)) return INFINITY;
        difference += (value - exact[j]) * (value - exact[j]);
        length += exact[j] * exact[j];
      }
      worst = std::max(worst, std::sqrt(difference / length));
    }
  }
  return worst;
}

/// Three layers with one plan, the last of which must write everything itself: the kernels'
/// counters must be back at 0 after each.
void run_layers(const device_call& call, const shape& s) {
  const auto& c = call.args;
  for (int layer = 0; layer < 3; ++layer) {
    check(cudaMemset(c.out, 0xff, size_t{s.heads} * call.rows() * s.group * s.dim * 2));
    check(cudaMemset(c.records, 0xff, attention_record_bytes(c.capacity, s.heads, s.group, s.dim)));
    call.run();
  }
}

} // namespace

TEST_CASE("L-M14 L-M15: emulated, a row of its own equals exact attention") {
  splitmix random{2};
  for (const shape s : {shape{2, 3, 64},
                        {1, 11, 64},
                        {2, 8, 128},
                        {1, 16, 128},
                        {2, 3, 64, half_type::bf16},
                        {1, 9, 128, half_type::bf16},
                        {2, 3, 64, half_type::q8},
                        {2, 8, 128, half_type::q8},
                        {1, 11, 128, half_type::q8},
                        {2, 3, 64, half_type::q8, half_type::bf16},
                        {1, 11, 128, half_type::q8, half_type::bf16}}) {
    std::vector<sequence> sequences;
    for (uint32_t position : {0u, 1u, 16u, 31u, 32u, 33u, 100u, 1025u})
      if (position < 1000 || s.group < 9)
        sequences.emplace_back(s, position + 1, random, position % 2 == 0 ? 1.0f : 8.0f);
    std::vector<piece> pieces;
    uint32_t pool = 0;
    for (const auto& x : sequences) {
      auto runs = scattered(x.length, s.group, x.length * 2 + 64, random);
      for (auto& run : runs) run.first += pool;
      pool += x.length * 2 + 64;
      pieces.push_back({&x, x.length - 1, 1, runs});
    }
    device_call call{s, pieces, pool};
    run_layers(call, s);
    for (uint32_t row = 0; row < pieces.size(); ++row) {
      INFO("D " << s.dim << " G " << s.group << " position " << pieces[row].first);
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

TEST_CASE("S-M16: emulated, nothing is written to the cache behind a wait that failed") {
  splitmix random{5};
  for (const shape s : {shape{2, 3, 64}, {2, 8, 128, half_type::q8}, {1, 3, 64, half_type::bf16}}) {
    sequence x{s, 40, random, 1.0f};
    const std::vector<piece> pieces{{&x, 39, 1, scattered(40, 3, 100, random)}};
    for (const bool joined : {false, true}) {
      CAPTURE(joined);
      device_call call{s, pieces, 100};
      const auto before = call.cache();
      uint32_t failed = 1;
      call.args.failed = &failed;
      joined ? call.run_joined() : call.run();
      CHECK(call.cache() == before);
      failed = 0;
      joined ? call.run_joined() : call.run();
      CHECK(call.cache() == call.expected_cache(pieces));
    }
  }
}

TEST_CASE("L-M14: emulated, many records fold to exact attention") {
  splitmix random{3};
  const shape s{1, 1, 64};
  const uint32_t length = 34 * attention_unit + 2;
  sequence x{s, length, random, 4.0f};
  device_call call{s, {{&x, length - 1, 1, {{5, length}}}}, length + 5};
  call.run();
  CHECK(worst_error(call, s, x, 0, length - 1) < s.tolerance());
}

TEST_CASE("L-M14 L-M15: emulated, rows of longer spans equal exact attention and single rows") {
  splitmix random{4};
  struct range {
    uint32_t first, rows;
  };
  for (const auto& [s, spans] :
       {std::pair{shape{1, 3, 64}, std::vector<range>{{0, 45}, {1010, 17}}},
        std::pair{shape{2, 8, 128}, std::vector<range>{{30, 3}}},
        std::pair{shape{1, 11, 128}, std::vector<range>{{0, 12}}},
        std::pair{shape{1, 3, 64, half_type::bf16}, std::vector<range>{{1010, 17}}},
        std::pair{shape{1, 8, 128, half_type::bf16}, std::vector<range>{{30, 3}}},
        std::pair{shape{2, 3, 64, half_type::q8}, std::vector<range>{{0, 45}, {1010, 17}}},
        std::pair{shape{1, 8, 128, half_type::q8}, std::vector<range>{{30, 3}}},
        std::pair{shape{1, 3, 64, half_type::q8, half_type::bf16}, std::vector<range>{{1010, 17}}},
        std::pair{shape{1, 8, 128, half_type::q8, half_type::bf16}, std::vector<range>{{30, 3}}},
        std::pair{shape{1, 11, 128, half_type::q8}, std::vector<range>{{50, 12}}}})
    for (auto [first, rows] : spans) {
      sequence x{s, first + rows, random, 3.0f};
      const auto runs = scattered(x.length, 16, 4096, random);
      device_call call{s, {{&x, first, rows, runs}}, 4096};
      run_layers(call, s);
      for (uint32_t i = 0; i < rows; ++i) {
        INFO("D " << s.dim << " G " << s.group << " position " << first + i);
        CHECK(worst_error(call, s, x, i, first + i) < s.tolerance());
        if (i % 5 != 0 && first + i != 1024) continue;
        device_call alone{s, {{&x, first + i, 1, scattered(first + i + 1, 3, 8192, random)}}, 8192};
        alone.run();
        for (uint32_t h = 0; h < s.heads; ++h) CHECK(alone.row(h, 0) == call.row(h, i));
      }
    }
}
