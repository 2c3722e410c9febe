#include "gpu/kernels/philox.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"

#include <algorithm>
#include <set>

using namespace lamella::gpu;
using namespace lamella::gpu::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

sample_record greedy(uint32_t row = 0) { return {row, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}; }

sample_record drawing(uint32_t draw, float temperature = 1) {
  return {0, 42, 0, draw, temperature, 0, 1, 0, 0, 0, 0};
}

std::vector<sampled_token> sample(const std::vector<float>& logits, uint32_t vocabulary,
                                  const std::vector<sample_record>& records,
                                  const std::vector<logit_edit>& edits = {}, unsigned threads = 2,
                                  const std::vector<uint32_t>& masks = {}) {
  machine on{threads};
  std::vector<sampled_token> out(records.size());
  reference_operators().sample({logits.data(),
                                static_cast<uint32_t>(logits.size() / vocabulary),
                                vocabulary,
                                records,
                                edits,
                                masks,
                                {},
                                nullptr,
                                out},
                               on.context());
  return out;
}

/// Tokens drawn by `count` draws of one record.
std::vector<size_t> histogram(const std::vector<float>& logits, sample_record how, uint32_t count,
                              const std::vector<logit_edit>& edits = {}) {
  std::vector<sample_record> records;
  for (how.draw = 0; how.draw < count; ++how.draw) records.push_back(how);
  std::vector<size_t> seen(logits.size());
  for (const auto& s : sample(logits, static_cast<uint32_t>(logits.size()), records, edits))
    ++seen[s.token];
  return seen;
}

} // namespace

TEST_CASE("Philox gives the published values") {
  // Known-answer tests of the paper's reference implementation.
  using words = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t all = 0xffffffff;
  CHECK(philox({all, all, all, all}, {all, all})
        == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})
        == words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("temperature 0 takes the highest logit, the lowest id on ties, in any place") {
  for (uint32_t vocabulary : {1u, 2u, 15u, 16u, 17u, 33u, 1000u})
    for (uint32_t at = 0; at < vocabulary; at += vocabulary / 7 + 1) {
      std::vector<float> logits(vocabulary, -1.5f);
      logits[at] = 2;
      logits[vocabulary - 1] = 2;
      CHECK(sample(logits, vocabulary, {greedy()})[0].token == at);
    }
}

TEST_CASE("draws follow the distribution") {
  // 12 tokens, 40,000 draws that are the same on every machine: chi-square with 11 degrees of
  // freedom exceeds 31.3 by chance once in a thousand seeds; this seed is fixed.
  std::vector<float> logits{0, 1, 2, -1, 0.5f, 1.5f, -2, 0.25f, 0.75f, 1.25f, -0.5f, 0.1f};
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    constexpr uint32_t draws = 40000;
    auto seen = histogram(logits, drawing(0, temperature), draws);
    double total = 0, chi_square = 0;
    for (double l : logits) total += std::exp(l / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      double expected = draws * std::exp(logits[i] / double{temperature}) / total;
      chi_square += std::pow(static_cast<double>(seen[i]) - expected, 2) / expected;
    }
    CAPTURE(temperature);
    CHECK(chi_square < 31.3);
  }
}

TEST_CASE("a draw depends on seed, choice and index alone") {
  randomness random{5};
  constexpr uint32_t vocabulary = 300;
  auto logits = random.normals(vocabulary * 4);
  std::vector<sample_record> records;
  for (uint32_t i = 0; i < 40; ++i) {
    auto how = drawing(i / 4);
    how.row = i % 4;
    how.seed = i % 3;
    how.choice = i % 5;
    how.top_p = i % 2 != 0 ? 0.9f : 1.0f;
    records.push_back(how);
  }
  auto all = sample(logits, vocabulary, records);
  for (size_t i = 0; i < records.size(); ++i)
    CHECK(sample(logits, vocabulary, {records[i]}, {}, 1)[0].token == all[i].token);
  auto distinct = [&](auto change) {
    std::vector<sample_record> many;
    for (uint32_t i = 0; i < 30; ++i) {
      many.push_back(drawing(7));
      change(many.back(), i);
    }
    auto tokens = sample(logits, vocabulary, many);
    return std::any_of(tokens.begin(), tokens.end(),
                       [&](const auto& t) { return t.token != tokens[0].token; });
  };
  CHECK(distinct([](auto& r, uint32_t i) { r.seed = i; }));
  CHECK(distinct([](auto& r, uint32_t i) { r.seed = uint64_t{i} << 32; }));
  CHECK(distinct([](auto& r, uint32_t i) { r.choice = i; }));
  CHECK(distinct([](auto& r, uint32_t i) { r.draw = i; }));
}

TEST_CASE("top_k, top_p and min_p keep exactly the tokens they should") {
  // Probabilities 0.4, 0.3, 0.2, 0.1, not in order of id.
  std::vector<float> logits{std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  auto kept = [&](auto set) {
    auto how = drawing(0);
    set(how);
    std::vector<uint32_t> tokens;
    auto seen = histogram(logits, how, 400);
    for (uint32_t i = 0; i < seen.size(); ++i)
      if (seen[i] != 0) tokens.push_back(i);
    return tokens;
  };
  using list = std::vector<uint32_t>;
  CHECK(kept([](auto&) {}) == list{0, 1, 2, 3});
  CHECK(kept([](auto& h) { h.top_k = 1; }) == list{1});
  CHECK(kept([](auto& h) { h.top_k = 2; }) == list{1, 3});
  CHECK(kept([](auto& h) { h.top_k = 99; }) == list{0, 1, 2, 3});
  CHECK(kept([](auto& h) { h.top_p = 0; }) == list{1});
  CHECK(kept([](auto& h) { h.top_p = 0.39f; }) == list{1});
  CHECK(kept([](auto& h) { h.top_p = 0.41f; }) == list{1, 3});
  CHECK(kept([](auto& h) { h.top_p = 0.69f; }) == list{1, 3});
  CHECK(kept([](auto& h) { h.top_p = 0.71f; }) == list{1, 2, 3});
  CHECK(kept([](auto& h) { h.min_p = 0.26f; }) == list{1, 2, 3});
  CHECK(kept([](auto& h) { h.min_p = 0.74f; }) == list{1, 3});
  CHECK(kept([](auto& h) { h.min_p = 1; }) == list{1});
  // Each over what the one before left: of 0.4 and 0.3, the first is 0.57 of the rest.
  CHECK(kept([](auto& h) { h.top_k = 2, h.top_p = 0.55f; }) == list{1});
  CHECK(kept([](auto& h) { h.top_k = 3, h.min_p = 0.6f; }) == list{1, 3});
}

TEST_CASE("truncation keeps what a full sort would keep") {
  randomness random{8};
  constexpr uint32_t vocabulary = 2000;
  for (float spread : {0.5f, 3.0f, 20.0f})
    for (uint32_t top_k : {0u, 1u, 5u, 40u, 500u})
      for (float top_p : {0.1f, 0.5f, 0.9f, 0.999f, 1.0f})
        for (float min_p : {0.0f, 0.05f}) {
          CAPTURE(spread);
          CAPTURE(top_k);
          CAPTURE(top_p);
          CAPTURE(min_p);
          auto logits = random.normals(vocabulary);
          for (auto& l : logits) l *= spread;
          std::vector<uint32_t> order(vocabulary);
          for (uint32_t i = 0; i < vocabulary; ++i) order[i] = i;
          std::sort(order.begin(), order.end(),
                    [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
          if (top_k != 0) order.resize(top_k);
          auto weight = [&](uint32_t t) { return std::exp(double{logits[t]} - logits[order[0]]); };
          double total = 0, share = 0;
          for (auto t : order) total += weight(t);
          size_t kept = 0;
          // A border within rounding of the weights may fall on either side.
          while (kept < order.size() && share < (top_p + 1e-5) * total)
            share += weight(order[kept++]);
          auto how = drawing(0);
          how.top_k = top_k;
          how.top_p = top_p;
          how.min_p = min_p;
          auto seen = histogram(logits, how, 300);
          std::vector<bool> allowed(vocabulary);
          for (size_t i = 0; i < kept; ++i) allowed[order[i]] = weight(order[i]) >= min_p - 1e-5;
          for (uint32_t t = 0; t < vocabulary; ++t) REQUIRE((seen[t] == 0 || allowed[t]));
        }
}

TEST_CASE("ties at the edge of top_k and top_p go to the lowest ids") {
  std::vector<float> logits(50, 1.0f);
  auto how = drawing(0);
  how.top_k = 3;
  auto seen = histogram(logits, how, 300);
  CHECK(seen[0] + seen[1] + seen[2] == 300);
  how.top_k = 0;
  how.top_p = 0.05f; // 2.5 tokens of 50
  seen = histogram(logits, how, 300);
  CHECK(seen[0] + seen[1] + seen[2] == 300);
  CHECK(seen[2] != 0);
}

TEST_CASE("edits scale, shift and forbid, and logprobs are of the model's own distribution") {
  std::vector<float> logits{3, 2, -1, 0.5f};
  std::vector<logit_edit> edits{{0, 2, 0}, {2, 2, 0}, {1, 1, -infinity}, {3, 1, 1.25f}};
  auto how = greedy();
  how.edit_count = 4;
  how.logprobs = 5;
  auto out = sample(logits, 4, {how}, edits)[0];
  CHECK(out.token == 3); // 1.5, forbidden, -2, 1.75
  double total = std::exp(3.0) + std::exp(2.0) + std::exp(-1.0) + std::exp(0.5);
  CHECK(out.logprob == doctest::Approx(0.5 - std::log(total)).epsilon(1e-6));
  REQUIRE(out.top.size() == 4);
  CHECK(out.top[0].token == 0);
  CHECK(out.top[1].token == 1);
  CHECK(out.top[2].token == 3);
  CHECK(out.top[3].token == 2);
  how.temperature = 1;
  auto seen = histogram(logits, how, 500, edits);
  CHECK(seen[1] == 0);
  CHECK(seen[0] != 0);
  CHECK(seen[2] != 0);
  how.first_edit = 2; // only two of them
  how.edit_count = 1;
  how.temperature = 0;
  CHECK(sample(logits, 4, {how}, edits)[0].token == 0);
}

TEST_CASE("logprobs equal a sum in double, highest first, lowest id on ties") {
  randomness random{6};
  constexpr uint32_t vocabulary = 5001;
  auto logits = random.normals(vocabulary);
  for (auto& l : logits) l *= 10;
  logits[4000] = logits[17] = 60;
  auto how = greedy();
  how.logprobs = 21;
  auto out = sample(logits, vocabulary, {how})[0];
  double total = 0;
  for (double l : logits) total += std::exp(l - 60);
  auto normaliser = 60 + std::log(total);
  CHECK(out.token == 17);
  CHECK(out.logprob == doctest::Approx(60 - normaliser).epsilon(1e-6));
  REQUIRE(out.top.size() == 20);
  CHECK(out.top[0].token == 17);
  CHECK(out.top[1].token == 4000);
  for (size_t i = 0; i < out.top.size(); ++i) {
    CHECK(out.top[i].logprob
          == doctest::Approx(logits[out.top[i].token] - normaliser).epsilon(1e-6));
    if (i > 0) CHECK(out.top[i].logprob <= out.top[i - 1].logprob);
  }
  auto least = out.top.back().logprob + normaliser;
  auto higher =
      std::count_if(logits.begin(), logits.end(), [&](float l) { return l > least + 1e-3; });
  CHECK(higher <= 20);
}

TEST_CASE("a row with a number that is none is reported, whatever is asked of it") {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity})
    for (uint32_t at : {0u, 3u, 31u, 32u}) {
      std::vector<float> logits(33 * 2, 1.0f);
      logits[33 + at] = bad;
      auto how = drawing(0);
      how.row = 1;
      auto out = sample(logits, 33, {greedy(0), greedy(1), how});
      CHECK(out[0].finite);
      CHECK(!out[1].finite);
      CHECK(!out[2].finite);
      CHECK(out[1].token == 0);
    }
}

TEST_CASE("a mask forbids all that is not in it, and edits cannot bring that back") {
  std::vector<float> logits(54);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i) / 10;
  // Tokens 3, 7, 31, 32 and 40; then none; then all.
  const std::vector<uint32_t> masks{1u << 3 | 1u << 7 | 1u << 31, 1u | 1u << 8, 0, 0, ~0u, ~0u};
  const std::vector<logit_edit> edits{{7, 1, 20}, {50, 1, 100}, {40, 1, -infinity}};
  auto masked = [&](sample_record how, uint32_t mask) {
    how.mask = mask;
    return sample(logits, 54, {how}, edits, 1, masks)[0];
  };
  CHECK(masked(greedy(), 0).token == 40);
  CHECK(masked(greedy(), no_mask).token == 53);
  CHECK(masked(greedy(), 2).token == 53);
  CHECK(!masked(greedy(), 1).finite);
  auto edited = greedy();
  edited.edit_count = 3;
  CHECK(masked(edited, 0).token == 7);
  auto how = drawing(0);
  how.logprobs = 4;
  std::set<uint32_t> seen;
  for (how.draw = 0; how.draw < 400; ++how.draw) {
    const auto drawn = masked(how, 0);
    seen.insert(drawn.token);
    // Probabilities are those of the model, to which nothing is forbidden.
    CHECK(drawn.top[0].token == 53);
    CHECK(drawn.logprob < drawn.top[0].logprob);
  }
  CHECK(seen == std::set<uint32_t>{3, 7, 31, 32, 40});
  how.top_k = 2;
  for (how.draw = 0; how.draw < 50; ++how.draw) CHECK(masked(how, 0).token >= 32);
}

TEST_CASE("when edits forbid every token the row is reported, not sampled") {
  std::vector<float> logits{1, 2};
  std::vector<logit_edit> edits{{0, 1, -infinity}, {1, 1, -infinity}};
  auto how = greedy();
  how.edit_count = 2;
  CHECK(!sample(logits, 2, {how}, edits)[0].finite);
}

TEST_CASE("a given token has the log probability that it has when it is sampled, and its rank") {
  randomness random{8};
  constexpr uint32_t vocabulary = 3001, rows = 5;
  std::vector<float> logits;
  std::vector<sample_record> draws;
  for (uint32_t row = 0; row < rows; ++row) {
    for (auto l : random.normals(vocabulary)) logits.push_back(3 * l);
    auto how = drawing(row, 2);
    how.row = row;
    how.logprobs = 6;
    draws.push_back(how);
  }
  const auto drawn = sample(logits, vocabulary, draws);
  std::vector<sample_record> records;
  for (uint32_t row = 0; row < rows; ++row) {
    sample_record how{};
    how.row = row;
    how.logprobs = 6;
    how.given = drawn[row].token;
    how.first_edit = 0, how.edit_count = 1; // what is given is scored whatever may be drawn
    records.push_back(how);
  }
  const auto scored = sample(logits, vocabulary, records, {{drawn[0].token, 1, -infinity}});
  for (uint32_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    const auto* x = logits.data() + size_t{row} * vocabulary;
    CHECK(scored[row].token == drawn[row].token);
    CHECK(std::bit_cast<uint32_t>(scored[row].logprob)
          == std::bit_cast<uint32_t>(drawn[row].logprob));
    CHECK(scored[row].rank == 1 + std::count_if(x, x + vocabulary, [&](float l) {
                                return l > x[drawn[row].token];
                              }));
    REQUIRE(scored[row].top.size() == 5);
    for (size_t i = 0; i < 5; ++i) {
      CHECK(scored[row].top[i].token == drawn[row].top[i].token);
      CHECK(scored[row].top[i].logprob == drawn[row].top[i].logprob);
    }
    CHECK(drawn[row].rank == 0);
  }
  auto best = records.front();
  best.given = scored[0].top[0].token;
  CHECK(sample(logits, vocabulary, {best})[0].rank == 1);
  logits[7] = std::nanf("");
  CHECK_FALSE(sample(logits, vocabulary, {best})[0].finite);
}

TEST_CASE("a given token is not what its seat sampled last") {
  machine on{1};
  const std::vector<float> logits{1, 3, 2};
  sample_record given{};
  given.given = 2;
  const std::vector<sample_record> records{greedy(), given};
  const std::vector<uint32_t> seats{4, 4};
  std::vector<uint32_t> last(8, 99);
  std::vector<sampled_token> out(2);
  reference_operators().sample({logits.data(), 1, 3, records, {}, {}, seats, last.data(), out},
                               on.context());
  CHECK(last[4] == 1);
  CHECK(out[1].token == 2);
}
