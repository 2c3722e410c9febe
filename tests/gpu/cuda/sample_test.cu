// Sampling on the device against the CPU sampler: the same token wherever rounding does not decide.
#include "gpu/cuda/rows/sample.hpp"
#include "tests/gpu/cuda/kernel_device.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include "gpu/kernels/philox.hpp"

#include <algorithm>

using namespace lamella::gpu;
using cuda::test::check;
using cuda::test::device_array;
using cuda::test::device_there;
using lamella::gpu::test::randomness;

namespace {

#ifdef LAMELLA_EMULATED_DEVICE // one thread for all of a device's: fewer draws from smaller rows
constexpr uint32_t vocabularies[]{1, 300, 3001}, draws_each = 20, repeated = 3, followed = 30;
#else
constexpr uint32_t vocabularies[]{1, 5, 17, 1000, 49152, 128256, 262144},
    draws_each = 0, repeated = 200, followed = 20000;
#endif

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A batch of records over some rows of logits, drawn by both samplers.
struct trial {
  uint32_t vocabulary;
  std::vector<float> logits;
  std::vector<sample_record> records;
  std::vector<logit_edit> edits;
  std::vector<uint32_t> masks{};

  uint32_t rows() const { return static_cast<uint32_t>(logits.size() / vocabulary); }

  std::vector<sampled_token> on_host() {
    lamella::gpu::test::machine host{2};
    std::vector<sampled_token> out(records.size());
    reference_operators().sample(
        {logits.data(), rows(), vocabulary, records, edits, masks, {}, nullptr, out},
        host.context());
    return out;
  }

  std::vector<cuda::sampled_row> on_device(std::vector<uint32_t>* kept = nullptr) {
    const auto count = static_cast<uint32_t>(records.size());
    device_array<float> x{logits};
    device_array<sample_record> how{records};
    auto some_edits = edits;
    some_edits.resize(edits.size() + 1);
    device_array<logit_edit> changes{some_edits};
    auto some_masks = masks;
    some_masks.resize(masks.size() + 1);
    device_array<uint32_t> allowed{some_masks};
    std::vector<uint32_t> seat(count);
    for (uint32_t i = 0; i < count; ++i) seat[i] = count - 1 - i;
    device_array<uint32_t> seats{seat}, last{size_t{count}};
    device_array<float> scratch{size_t{count} * vocabulary};
    device_array<cuda::sampled_row> out{size_t{count}};
    check(cuda::launch_sample({x.get(), rows(), vocabulary, how.get(), count, changes.get(),
                               allowed.get(), seats.get(), last.get(), scratch.get(), out.get()},
                              nullptr));
    const auto result = out.values();
    if (kept != nullptr) *kept = last.values();
    return result;
  }
};

/// Weight of each token after truncation, in double, in the order in which the CPU draws: is the
/// draw or a border closer than `margin` to an edge of a token's share? Then rounding may decide.
bool rounding_decides(const trial& t, const sample_record& how, double margin) {
  std::vector<double> x(t.logits.begin() + size_t{how.row} * t.vocabulary,
                        t.logits.begin() + size_t{how.row + 1} * t.vocabulary);
  for (const auto& e : std::span{t.edits}.subspan(how.first_edit, how.edit_count)) {
    auto l = static_cast<float>(x[e.token]);
    x[e.token] = (l > 0 ? l / e.scale : l * e.scale) + e.add;
  }
  for (uint32_t i = 0; i < t.vocabulary && how.mask != no_mask; ++i)
    if ((t.masks[how.mask * mask_words(t.vocabulary) + i / 32] >> i % 32 & 1) == 0)
      x[i] = -infinity;
  const auto highest = *std::max_element(x.begin(), x.end());
  struct token {
    double logit, weight;
    uint32_t id;
  };
  std::vector<token> tokens;
  for (uint32_t i = 0; i < t.vocabulary; ++i)
    tokens.push_back({x[i], std::exp((x[i] - highest) / how.temperature), i});
  std::sort(tokens.begin(), tokens.end(), [](const token& a, const token& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  if (how.top_k != 0 && how.top_k < tokens.size()) tokens.resize(how.top_k);
  double total = 0, sum = 0;
  for (const auto& k : tokens) total += k.weight;
  if (how.top_p < 1) {
    size_t enough = 0;
    for (; enough < tokens.size(); ++enough) {
      sum += tokens[enough].weight;
      if (std::fabs(sum - how.top_p * total) < margin * total) return true;
      if (sum >= how.top_p * total) break;
    }
    tokens.resize(std::min(tokens.size(), enough + 1));
  }
  for (const auto& k : tokens)
    if (std::fabs(k.weight - how.min_p) < margin * 10 && how.min_p > 0) return true;
  std::erase_if(tokens, [&](const token& k) { return k.weight < std::min(how.min_p, 1.0f); });
  // The edges of shares: by id, or from the highest downwards; a class border mixes the two, so
  // both orders are looked at, and the class's own begin.
  const auto uniform = philox_uniform(how.seed, how.choice, how.draw);
  total = 0;
  for (const auto& k : tokens) total += k.weight;
  auto near_edge = [&](const std::vector<token>& order) {
    double at = 0;
    for (const auto& k : order) {
      at += k.weight;
      if (at < total * (1 - margin) && std::fabs(at - uniform * total) < margin * total)
        return true;
    }
    return false;
  };
  const bool by_count = how.top_k != 0 && how.top_k < t.vocabulary, by_share = how.top_p < 1;
  auto order = tokens;
  if (!(by_count && by_share)) {
    auto bucket = [](double w) { return std::bit_cast<uint32_t>(static_cast<float>(w)) >> 20; };
    const auto last = by_count || by_share ? bucket(tokens.back().weight) : 0;
    for (const auto& k : tokens) { // classes are cut by the fp32 weight
      const auto low = bucket(k.weight * (1 - 1e-6)), high = bucket(k.weight * (1 + 1e-6));
      if (low != high && (low == last || high == last)) return true;
    }
    std::sort(order.begin(), order.end(), [&](const token& a, const token& b) {
      const bool heavy_a = bucket(a.weight) > last, heavy_b = bucket(b.weight) > last;
      if (heavy_a != heavy_b) return heavy_a;
      if (heavy_a) return a.id < b.id;
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
  }
  return near_edge(order);
}

/// Logits as models make them: most near each other, some far above.
std::vector<float> logits_of(randomness& random, uint32_t vocabulary, float spread) {
  auto x = random.normals(vocabulary);
  for (auto& v : x) v *= spread;
  for (int i = 0; i < 5; ++i) x[random.below(vocabulary)] += 4 * spread;
  return x;
}

} // namespace

TEST_CASE("the device draws the CPU's token for every combination of parameters") {
  if (!device_there()) return;
  const auto seed = cuda::test::fresh_seed("sample");
  randomness random{seed};
  size_t compared = 0, excused = 0;
  for (uint32_t vocabulary : vocabularies) {
    trial t{vocabulary, {}, {}, {}};
    for (float spread : {0.0f, 0.5f, 3.0f}) {
      const auto row = logits_of(random, vocabulary, spread);
      t.logits.insert(t.logits.end(), row.begin(), row.end());
    }
    for (uint32_t row = 0; row < 3; ++row)
      for (float temperature : {0.0f, 0.3f, 1.0f, 1.7f})
        for (uint32_t top_k : {0u, 1u, 40u, 6000u})
          for (float top_p : {1.0f, 0.9f, 0.3f, 0.0f})
            for (float min_p : {0.0f, 0.05f, 1.0f})
              t.records.push_back({row, random.engine()(), random.below(4), random.below(1000),
                                   temperature, top_k, top_p, min_p, 0, 0, 0});
    if (draws_each != 0 || vocabulary > 100000) { // the CPU needs its time
      std::shuffle(t.records.begin(), t.records.end(), random.engine());
      // One truncation alone draws in the most intricate order: these first.
      std::stable_partition(t.records.begin(), t.records.end(), [&](const sample_record& how) {
        const bool by_count = how.top_k != 0 && how.top_k < vocabulary;
        return how.temperature >= 1 && how.min_p < 1 && by_count != (how.top_p < 1) && how.row != 0;
      });
      t.records.resize(std::min<size_t>(draws_each != 0 ? draws_each : 150, t.records.size()));
    }
    const auto host = t.on_host();
    std::vector<uint32_t> kept;
    const auto device = t.on_device(&kept);
    for (size_t i = 0; i < host.size(); ++i) {
      const auto& how = t.records[i];
      CHECK(device[i].finite == 1);
      CHECK(kept[host.size() - 1 - i] == device[i].token);
      REQUIRE(device[i].token < vocabulary);
      ++compared;
      if (device[i].token == host[i].token) continue;
      // The CPU sums in double, the device in units of 2^-44; weights are the same fp32 numbers.
      const bool close = how.temperature > 0 && rounding_decides(t, how, 1e-5);
      excused += close;
      INFO("vocabulary " << vocabulary << " row " << how.row << " temperature " << how.temperature
                         << " top_k " << how.top_k << " top_p " << how.top_p << " min_p "
                         << how.min_p << ": " << device[i].token << " not " << host[i].token);
      CHECK(close);
    }
  }
  MESSAGE(compared << " draws compared, " << excused << " decided by rounding");
  CHECK(excused * 100 < compared);
}

TEST_CASE("edits, ties, broken rows and top logprobs") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("edits")};
  constexpr uint32_t vocabulary = 3001;
  trial t{vocabulary, {}, {}, {}};
  for (int row = 0; row < 6; ++row) {
    const auto x = logits_of(random, vocabulary, 2);
    t.logits.insert(t.logits.end(), x.begin(), x.end());
  }
  auto row = [&](uint32_t r) { return t.logits.data() + size_t{r} * vocabulary; };
  row(1)[700] = row(1)[70] = row(1)[2999] = 50; // a tie: the lowest id
  row(2)[5] = NAN;
  row(3)[3000] = -infinity;
  for (uint32_t i = 0; i < vocabulary; ++i) row(5)[i] = i % 2 == 0 ? 0.0f : -0.0f;
  t.edits = {{70, 1, -infinity}, {700, 2, 0}, {70, 1, 5}, {9, 1, 60}, {9, 3, 0}};
  for (uint32_t i = 0; i < vocabulary; ++i) t.edits.push_back({i, 1, -infinity});
  auto greedy = [&](uint32_t r, uint32_t logprobs, uint32_t first, uint32_t count) {
    t.records.push_back({r, 1, 0, 0, 0, 0, 1, 0, logprobs, first, count});
  };
  greedy(0, 21, 0, 0);
  greedy(1, 1, 0, 0);
  greedy(1, 6, 0, 4);
  greedy(1, 6, 0, 5);
  greedy(2, 1, 0, 0);
  greedy(3, 1, 0, 0);
  greedy(4, 1, 5, vocabulary); // everything forbidden
  greedy(5, 4, 0, 0);
  t.records.push_back({4, 99, 1, 5, 0.8f, 50, 0.95f, 0.01f, 8, 3, 1});
  const auto spare = t.records.size();
  t.records.push_back({cuda::no_row, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0});
  const auto device = t.on_device();
  CHECK(device[spare].token == ~0u); // still poisoned
  t.records.pop_back();
  const auto host = t.on_host();
  CHECK(device[1].token == 70);
  CHECK(device[2].token == 9);
  CHECK(device[4].finite == 0);
  CHECK(device[5].finite == 0);
  CHECK(device[6].finite == 0);
  CHECK(device[7].token == 0);
  for (size_t i = 0; i < host.size(); ++i) {
    CAPTURE(i);
    CHECK((device[i].finite == 1) == host[i].finite);
    if (!host[i].finite) continue;
    CHECK(device[i].token == host[i].token);
    // exp is exact to 4e-7 in fp32, and 3001 sums of it keep that; a logarithm makes it absolute.
    CHECK(std::fabs(device[i].logprob - host[i].logprob)
          < 2e-6f * std::max(1.0f, std::fabs(host[i].logprob)));
    REQUIRE(device[i].top_count == host[i].top.size());
    for (size_t k = 0; k < host[i].top.size(); ++k) {
      CHECK(device[i].top[k].token == host[i].top[k].token);
      CHECK(std::fabs(device[i].top[k].logprob - host[i].top[k].logprob)
            < 2e-6f * std::max(1.0f, std::fabs(host[i].top[k].logprob)));
    }
  }
}

TEST_CASE("masks forbid on the device what they forbid on the host") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("masks")};
  for (const uint32_t vocabulary : {17u, 3001u}) {
    trial t{vocabulary, logits_of(random, vocabulary, 2), {}, {{3, 1, 30}}};
    // Few tokens, nearly all, one, none.
    const auto words = mask_words(vocabulary);
    for (uint32_t w = 0; w < words; ++w) t.masks.push_back(w % 7 == 0 ? 0x10001u : 0);
    for (uint32_t w = 0; w < words; ++w) t.masks.push_back(~(1u << w % 32));
    for (uint32_t w = 0; w < words; ++w) t.masks.push_back(w == words - 1 ? 1 : 0);
    t.masks.resize(4 * words);
    for (uint32_t mask : {0u, 1u, 2u, 3u, no_mask})
      for (uint32_t i = 0; i < 6; ++i) {
        const float temperature = i % 3 == 0 ? 0 : 1.5f;
        t.records.push_back(
            {0, 7, 1, i, temperature, i % 2 == 0 ? 0u : 5u, 1, 0, 3, 0, i % 2, mask});
      }
    const auto device = t.on_device();
    const auto host = t.on_host();
    for (size_t i = 0; i < host.size(); ++i) {
      CAPTURE(i);
      const auto mask = t.records[i].mask;
      CHECK((device[i].finite == 1) == host[i].finite);
      CHECK(host[i].finite == (mask != 3));
      if (!host[i].finite) continue;
      const auto allowed = [&](uint32_t token) {
        return mask == no_mask || (t.masks[mask * words + token / 32] >> token % 32 & 1) != 0;
      };
      CHECK(allowed(device[i].token));
      CHECK(allowed(host[i].token));
      if (!rounding_decides(t, t.records[i], 1e-6) || t.records[i].temperature == 0)
        CHECK(device[i].token == host[i].token);
      CHECK(device[i].top_count == 2);
      CHECK(device[i].top[0].token == host[i].top[0].token);
    }
  }
}

TEST_CASE("a draw has the same bytes whoever else is drawn for, and every time") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("repeat")};
  trial t{32000, logits_of(random, 32000, 2), {}, {}};
  for (uint32_t i = 0; i < repeated; ++i)
    t.records.push_back({0, i, 0, 7, 1.2f, i % 3 == 0 ? 100u : 0u, 0.97f, 0, 6, 0, 0});
  const auto all = t.on_device(), again = t.on_device();
  auto alone = t;
  for (size_t i : {0u, repeated / 2, repeated - 1}) {
    alone.records = {t.records[i]};
    const auto one = alone.on_device();
    CHECK(one[0].token == all[i].token);
    CHECK(std::memcmp(&one[0].logprob, &all[i].logprob, 4) == 0);
  }
  size_t different = 0;
  for (size_t i = 0; i < all.size(); ++i) different += all[i].token != again[i].token;
  CHECK(different == 0);
}

TEST_CASE("draws follow the distribution") {
  if (!device_there()) return;
  trial t{4, {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)}, {}, {}};
  const auto seed = cuda::test::fresh_seed("distribution");
  constexpr uint32_t draws = followed;
  for (uint32_t i = 0; i < draws; ++i) t.records.push_back({0, seed, 0, i, 1, 0, 1, 0, 0, 0, 0});
  uint32_t counts[4] = {};
  for (const auto& row : t.on_device()) ++counts[row.token];
  const double expected[]{0.1, 0.4, 0.2, 0.3};
  for (int i = 0; i < 4; ++i) // five standard deviations
    CHECK(std::fabs(counts[i] - draws * expected[i])
          < 5 * std::sqrt(draws * expected[i] * (1 - expected[i])));
}

TEST_CASE("a given token is scored with the bytes that it has when it is sampled") {
  if (!device_there()) return;
  randomness random{cuda::test::fresh_seed("given")};
  constexpr uint32_t vocabulary = 3001, rows = 4;
  trial t{vocabulary, {}, {}, {{5, 1, -infinity}}};
  for (uint32_t row = 0; row < rows; ++row) {
    const auto x = logits_of(random, vocabulary, 2);
    t.logits.insert(t.logits.end(), x.begin(), x.end());
    t.records.push_back({row, 3, 0, row, 1.5f, 0, 1, 0, 8, 0, 0});
  }
  const auto drawn = t.on_device();
  auto scores = t;
  for (uint32_t row = 0; row < rows; ++row) {
    auto& how = scores.records[row];
    how.given = drawn[row].token;
    how.edit_count = row % 2; // changes nothing
  }
  scores.logits[size_t{3} * vocabulary + 9] = NAN;
  std::vector<uint32_t> kept;
  const auto device = scores.on_device(&kept);
  for (auto token : kept) CHECK(token == ~0u); // still poisoned
  const auto host = scores.on_host();
  for (uint32_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    CHECK((device[row].finite == 1) == (row != 3));
    CHECK(host[row].finite == (row != 3));
    if (row == 3) continue;
    CHECK(device[row].token == drawn[row].token);
    CHECK(std::bit_cast<uint32_t>(device[row].logprob)
          == std::bit_cast<uint32_t>(drawn[row].logprob));
    CHECK(device[row].rank == host[row].rank);
    CHECK(drawn[row].rank == 0);
    REQUIRE(device[row].top_count == 7);
    for (size_t k = 0; k < 7; ++k) {
      CHECK(device[row].top[k].token == drawn[row].top[k].token);
      CHECK(device[row].top[k].logprob == drawn[row].top[k].logprob);
    }
  }
}

TEST_CASE("only records up to the last one that changes logits need room for a row") {
  std::vector<sample_record> records(4);
  for (auto& x : records) x = {0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  CHECK(cuda::edited_records(records) == 0);
  records[1].edit_count = 2;
  CHECK(cuda::edited_records(records) == 2);
  records[3].mask = 0;
  CHECK(cuda::edited_records(records) == 4);
}
