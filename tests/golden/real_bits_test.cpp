// Bits on the default model: what a request computes depends on its own tokens alone. Logits are
// compared byte for byte with a run of the request alone, on one shard. A request that was
// preempted and replayed computes the same positions in chunks, so it is covered by "any chunks".
#include "tests/golden/real_model.hpp"

using namespace lamella;
using test::pipeline;
using tests::fed_sequence;

namespace {

constexpr uint32_t pool_slots = 4096;

/// The watched request: long enough for a second chunk of attention (256 positions), then decoded.
constexpr uint32_t prompt_tokens = 300, decoded_tokens = 8;

using all_logits = std::vector<std::vector<float>>;

pipeline::options options(uint32_t shards) {
  pipeline::options o;
  o.ops = gpu::find_operators("auto", nullptr);
  REQUIRE(o.ops != nullptr);
  o.shards = shards;
  o.slots = pool_slots;
  return o;
}

std::vector<uint32_t> watched_tokens(const tests::forced_text& text) {
  return {text.tokens.begin(), text.tokens.begin() + prompt_tokens + decoded_tokens};
}

/// Logits of every position of the watched request: its prompt in chunks, then token by token.
all_logits run_alone(pipeline& on, const std::vector<uint32_t>& tokens, uint32_t chunk,
                     uint64_t slots_seed) {
  tests::scattered_slots slots(pool_slots, slots_seed);
  fed_sequence sequence{tokens};
  all_logits result;
  while (!sequence.finished()) {
    const auto left = prompt_tokens - std::min(sequence.position, prompt_tokens);
    const auto rows = left != 0 ? std::min(chunk, left) : 1;
    for (auto& row : on.run({sequence.next(rows, slots, true)})) result.push_back(std::move(row));
  }
  return result;
}

/// The same with 31 other requests of 3 to 33 tokens in its iterations, 12 before it and 19 after
/// it. The others end at different times and are replaced by new ones; the prompt comes in chunks.
/// Where shards hold sequences, three shards take turns.
all_logits run_among_others(pipeline& on, const tests::forced_text& text,
                            const std::vector<uint32_t>& tokens, uint32_t chunk) {
  constexpr size_t others = 31, place = 12;
  tests::scattered_slots slots(pool_slots, 11);
  tests::splitmix random(12);
  const auto fresh = [&] {
    const auto length = 3 + random.below(31), first = random.below(text.tokens.size() - length);
    const auto begin = text.tokens.begin() + static_cast<std::ptrdiff_t>(first);
    return fed_sequence{{begin, begin + static_cast<std::ptrdiff_t>(length)}};
  };
  std::vector<fed_sequence> all(others);
  for (auto& x : all) x = fresh();
  all.insert(all.begin() + place, fed_sequence{tokens});
  all_logits result;
  while (!all[place].finished()) {
    std::vector<pipeline::rows> batch;
    size_t before = 0, mine = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i != place && all[i].finished()) all[i] = fresh();
      const bool decodes = i == place && all[i].position >= prompt_tokens;
      const auto left = prompt_tokens - std::min(all[i].position, prompt_tokens);
      const auto rows = decodes      ? 1
                        : i == place ? std::min(chunk, left)
                                     : static_cast<uint32_t>(1 + random.below(9));
      batch.push_back(all[i].next(rows, slots, i == place));
      batch.back().member = static_cast<uint32_t>(i % 3);
      if (i < place) ++before; // of the others the last row only is selected
      if (i == place) mine = batch.back().tokens.size();
    }
    auto logits = on.run(batch);
    REQUIRE(logits.size() == others + mine);
    for (size_t i = 0; i < mine; ++i) result.push_back(std::move(logits[before + i]));
  }
  return result;
}

/// Positions whose logits differ in any byte.
std::vector<size_t> different(const all_logits& a, const all_logits& b) {
  REQUIRE(a.size() == b.size());
  std::vector<size_t> positions;
  for (size_t p = 0; p < a.size(); ++p) {
    REQUIRE(a[p].size() == b[p].size());
    if (std::memcmp(a[p].data(), b[p].data(), a[p].size() * sizeof(float)) != 0)
      positions.push_back(p);
  }
  return positions;
}

} // namespace

TEST_CASE("L-M15 a real prompt's logits have the same bytes in any chunks and when decoded") {
  const auto text = tests::read_forced();
  const auto model = tests::oracle_model(text.file_bytes);
  if (!model) return;
  const auto tokens = watched_tokens(text);
  pipeline on(*model, options(1));
  const auto expected = run_alone(on, tokens, prompt_tokens, 1);
  for (const uint32_t chunk : {1u, 7u, 16u, 64u}) {
    CAPTURE(chunk);
    CHECK(different(run_alone(on, tokens, chunk, 1 + chunk), expected).empty());
  }
}

TEST_CASE("L-M14 V-M14 a real request's logits have the same bytes alone and among 31 others") {
  const auto text = tests::read_forced();
  const auto model = tests::oracle_model(text.file_bytes);
  if (!model) return;
  const auto tokens = watched_tokens(text);
  pipeline on(*model, options(1));
  const auto expected = run_alone(on, tokens, prompt_tokens, 1);
  for (const uint32_t chunk : {prompt_tokens, 37u}) {
    CAPTURE(chunk);
    CHECK(different(run_among_others(on, text, tokens, chunk), expected).empty());
  }
}

TEST_CASE("L-M23 a real request's logits have the same bytes with one shard and with three") {
  const auto text = tests::read_forced();
  const auto model = tests::oracle_model(text.file_bytes);
  if (!model) return;
  const auto tokens = watched_tokens(text);
  all_logits expected;
  {
    pipeline one(*model, options(1));
    expected = run_alone(one, tokens, prompt_tokens, 1);
  }
  pipeline three(*model, options(3));
  CHECK(different(run_alone(three, tokens, 64, 5), expected).empty());
  CHECK(different(run_among_others(three, text, tokens, 37), expected).empty());
}

TEST_CASE("V-M07 a real request's logits have the same bytes with shards that hold sequences") {
  const auto text = tests::read_forced();
  const auto model = tests::oracle_model(text.file_bytes);
  if (!model) return;
  const auto tokens = watched_tokens(text);
  all_logits expected;
  {
    pipeline one(*model, options(1));
    expected = run_alone(one, tokens, prompt_tokens, 1);
  }
  auto by_request = options(3);
  by_request.by_request = true;
  pipeline three(*model, by_request);
  CHECK(different(run_among_others(three, text, tokens, 37), expected).empty());
}
