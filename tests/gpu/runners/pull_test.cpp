// Pulls of KV from one cache to another: what is moved, in which order, and when. Steps are taken
// by hand, one at a time.
#include "gpu/host/host_engine.hpp"
#include "gpu/ring/device_ring.hpp"
#include "gpu/runners/attention_runner.hpp"
#include "gpu/runners/kv_transfer.hpp"
#include "tests/gpu/kernels/kernel_support.hpp"
#include "tests/gpu/runners/pull_runs.hpp"

#include <numeric>

namespace lamella::gpu::test {

namespace {

constexpr uint32_t layers = 3, kv_heads = 4, dim = 8, slots = 64;
using progress = work::progress;

/// Windows and gaps as scheduler/pull_plan.hpp has them.
pull_policy policy(uint32_t window = 4) {
  return {[](bool qkv_waits, uint64_t) { return !qkv_waits; },
          [=](uint64_t pieces, uint64_t taken) { return std::min(pieces, taken + window); }};
}

/// One row of a cache as bytes.
std::vector<std::byte> row_of(const kv_cache& cache, uint32_t layer, uint32_t slot) {
  const auto x = cache.layer(layer);
  const auto* from = x.rows + slot * x.row_bytes();
  return {from, from + x.row_bytes()};
}

void fill(const kv_cache& cache, uint64_t seed) {
  randomness random{seed};
  for (uint32_t l = 0; l < layers; ++l) {
    const auto x = cache.layer(l);
    for (size_t i = 0; i < slots * x.row_bytes(); ++i)
      x.rows[i] = static_cast<std::byte>(random.below(256));
  }
}

/// Where a pull begins and ends: two caches and the rings between them.
struct world {
  machine here{1};
  host_engine engine{1, reference_operators()};
  std::unique_ptr<device> prefill = engine.make_device("prefill"), memory = engine.make_device("m");
  std::shared_ptr<kv_cache> source =
      std::make_shared<kv_cache>(*prefill, layers, slots, kv_heads, dim, half_type::f16);
  uint32_t heads;
  std::shared_ptr<kv_cache> target =
      std::make_shared<kv_cache>(*memory, layers, slots, heads, dim, half_type::f16);
  device_ring forth, back;
  std::shared_ptr<kv_hand_over> hand_over = std::make_shared<kv_hand_over>(*prefill, layers, 2);
  std::shared_ptr<qkv_watch> watch = std::make_shared<qkv_watch>();
  arena workspace;

  explicit world(uint32_t shard_heads = kv_heads) : heads{shard_heads} {
    ring_terms terms;
    terms.slot_bytes = 4096;
    forth = make_device_ring(*prefill, *memory, terms);
    back = make_device_ring(*memory, *prefill, terms);
    fill(*source, 1);
    fill(*target, 2);
  }
  kernel_context context() { return {here.workers, here.scratch, &workspace}; }
  progress step(work& x) { return x.advance(context()); }

  transfer_launch launch(uint64_t number, std::vector<slot_run> runs, uint32_t first_head = 0) {
    transfer_launch x;
    x.pull = number;
    // One piece per run: cutting is tested with scheduler/pull_plan.
    for (const auto& run : runs)
      x.pieces.push_back({run.length, static_cast<uint32_t>(x.pieces.size()), 1});
    x.runs = std::move(runs);
    x.first_head = first_head;
    x.head_count = heads;
    return x;
  }
  pull_runner pull(uint64_t number, std::vector<slot_run> runs, pull_policy p = policy()) {
    return {target, memory->ops(), launch(number, std::move(runs)), forth.from, back.to, p, watch};
  }
  offer_runner offer(uint64_t number, std::vector<slot_run> runs, uint32_t first_head = 0,
                     uint64_t iteration = 0) {
    return {source,    prefill->ops(), launch(number, std::move(runs), first_head),
            back.from, forth.to,       {hand_over, 0, iteration}};
  }
};

} // namespace

TEST_CASE("gather_kv and scatter_kv move K and V of any heads of any rows, and count them alike") {
  for (const auto* set : sets(true)) {
    CAPTURE(set->name);
    for (const auto type :
         {half_type::f16, half_type::f32, half_type::bf16, half_type::q8, half_type::q4})
      for (const auto& [first, count] : {std::pair{0u, 4u}, {0u, 1u}, {1u, 2u}, {3u, 1u}}) {
        CAPTURE(first);
        machine here{2};
        host_engine engine{1, *set};
        const auto on = engine.make_device("x");
        kv_cache from{*on, 1, slots, kv_heads, dim, type}, to{*on, 1, slots, count, dim, type};
        randomness random{first + count};
        for (size_t i = 0; i < slots * from.layer(0).row_bytes(); ++i)
          from.layer(0).rows[i] = static_cast<std::byte>(random.below(256));
        const std::vector<slot_run> source{{40, 3}, {2, 5}, {63, 1}}, target{{0, 7}, {20, 2}};
        uint64_t gathered = 0, scattered = 0;
        copy_kv_args x{from.layer(0), first, count, source, nullptr, 11, &gathered};
        std::vector<std::byte> packed(9 * x.packed_row_bytes());
        x.packed = packed.data();
        set->gather_kv(x, here.context());
        set->scatter_kv({to.layer(0), 0, count, target, packed.data(), 11, &scattered},
                        here.context());
        CHECK(gathered == scattered);
        uint64_t defined = 0;
        for (uint64_t word = 0; word < packed.size() / 4; ++word) {
          uint32_t bits = 0;
          std::memcpy(&bits, packed.data() + 4 * word, 4);
          defined += bits * ((11 + word) * digest_factor | 1);
        }
        CHECK(gathered == defined);
        const std::vector<uint32_t> a{40, 41, 42, 2, 3, 4, 5, 6, 63},
            b{0, 1, 2, 3, 4, 5, 6, 20, 21};
        const auto head = head_bytes_of(type, dim);
        for (size_t i = 0; i < a.size(); ++i) {
          const auto whole = row_of(from, 0, a[i]), part = row_of(to, 0, b[i]);
          for (size_t half = 0; half < 2; ++half)
            CHECK(std::memcmp(part.data() + half * count * head,
                              whole.data() + (half * kv_heads + first) * head, count * head)
                  == 0);
        }
        // Any word, and any two rows in each other's place, change the digest.
        const auto before = scattered;
        packed[x.packed_row_bytes() - 1] ^= std::byte{1};
        scattered = 0;
        set->scatter_kv({to.layer(0), 0, count, target, packed.data(), 11, &scattered},
                        here.context());
        CHECK(scattered != before);
        const std::vector<slot_run> swapped{{41, 1}, {40, 1}, {42, 1}, {2, 5}, {63, 1}};
        gathered = 0;
        x.runs = swapped;
        set->gather_kv(x, here.context());
        CHECK(gathered != before);
      }
  }
}

TEST_CASE("L-M27 a pull moves the shard's heads of all rows and layers, and nothing else") {
  world w{2};
  const auto untouched = row_of(*w.target, 1, 30);
  auto pull = w.pull(1, {{10, 3}, {50, 4}});
  auto offer = w.offer(1, {{0, 3}, {20, 4}}, 1);
  auto a = progress::advanced, b = progress::advanced;
  for (int i = 0; i < 200 && (a != progress::done || b != progress::done); ++i) {
    if (a != progress::done) a = w.step(pull);
    if (b != progress::done) b = w.step(offer);
  }
  REQUIRE(a == progress::done);
  REQUIRE(b == progress::done);
  CHECK(pull.digest() == offer.digest());
  CHECK(pull.bytes() == layers * 7 * 2 * 2 * dim * 2);
  const std::vector<uint32_t> from{0, 1, 2, 20, 21, 22, 23}, to{10, 11, 12, 50, 51, 52, 53};
  for (uint32_t l = 0; l < layers; ++l)
    for (size_t i = 0; i < from.size(); ++i) {
      const auto whole = row_of(*w.source, l, from[i]), part = row_of(*w.target, l, to[i]);
      CHECK(std::memcmp(part.data(), whole.data() + 1 * dim * 2, 2 * dim * 2) == 0); // K
      CHECK(std::memcmp(part.data() + 2 * dim * 2, whole.data() + 5 * dim * 2, 2 * dim * 2) == 0);
    }
  CHECK(row_of(*w.target, 1, 30) == untouched);
}

TEST_CASE(
    "Decision 27: nothing is sent without a grant, and no more than the window is under way") {
  world w;
  std::vector<slot_run> rows;
  for (uint32_t i = 0; i < 10; ++i) rows.push_back({i, 1});
  auto offer = w.offer(1, rows);
  CHECK(w.step(offer) == progress::blocked);
  auto pull = w.pull(1, rows, policy(3));
  CHECK(w.step(pull) == progress::advanced); // grants
  CHECK(w.step(pull) == progress::blocked);
  for (int i = 0; i < 3; ++i) CHECK(w.step(offer) == progress::advanced);
  CHECK(w.step(offer) == progress::blocked);
  CHECK(w.step(pull) == progress::advanced); // takes one
  CHECK(w.step(offer) == progress::blocked); // and has not granted another yet
  CHECK(w.step(pull) == progress::advanced); // takes the second, grants a fourth
  CHECK(w.step(offer) == progress::advanced);
  CHECK(w.step(offer) == progress::blocked);
}

TEST_CASE(
    "S-M14 S-M16 a layer is sent when it is written, and its slots are free when it was read") {
  world w;
  auto pull = w.pull(5, {{10, 4}});
  auto offer = w.offer(5, {{0, 4}}, 0, 9);
  CHECK(w.step(pull) == progress::advanced);
  w.hand_over->write(8, layers - 1); // the iteration before
  CHECK(w.step(offer) == progress::blocked);
  for (uint32_t l = 0; l < layers; ++l) {
    CHECK_FALSE(w.hand_over->is_taken(0, 5, l));
    w.hand_over->write(9, l);
    CHECK(w.step(offer) == (l + 1 == layers ? progress::done : progress::advanced));
    CHECK(w.hand_over->is_taken(0, 5, l));
    CHECK_FALSE(w.hand_over->is_taken(1, 5, l)); // another shard's offer
    if (l + 1 < layers) CHECK(w.step(offer) == progress::blocked);
  }
  CHECK_FALSE(w.hand_over->is_taken(0, 6, 0));
  w.hand_over->end_take(0, 6); // given up
  CHECK(w.hand_over->is_taken(0, 6, layers - 1));
}

TEST_CASE("S-M16 slots are written again when the pull before has read them, layer by layer") {
  world w;
  attention_launch x;
  x.tag.iteration = 9;
  x.rows = 1;
  x.spans = {{0, 1, 4, 0, 1}};
  x.runs = {{0, 5}};
  x.hand_over = w.hand_over;
  x.fences = {5, 0};
  attention_runner runs{w.source, w.prefill->ops(), x, {{w.back.from, w.forth.to}}};
  const auto send = [&](uint32_t layer, frame_kind kind) {
    const auto bytes = kv_heads * dim * 2 * (kind == frame_kind::kv ? 2 : 1);
    std::fill_n(w.back.to->reserve(bytes), bytes, std::byte{0});
    w.back.to->commit({0, 9, 0, layer, kind, 0});
  };
  w.hand_over->take(0, 4, layers - 1); // the pull before that one
  for (uint32_t l = 0; l < layers; ++l) {
    CAPTURE(l);
    const auto old = row_of(*w.source, l, 4);
    send(l, frame_kind::q);
    send(l, frame_kind::kv);
    CHECK(w.step(runs) == progress::advanced);
    CHECK(w.step(runs) == progress::blocked);
    CHECK(row_of(*w.source, l, 4) == old);
    CHECK_FALSE(w.hand_over->is_written(9, l));
    w.hand_over->take(0, 5, l);
    CHECK(w.step(runs) == (l + 1 == layers ? progress::done : progress::advanced));
    CHECK(row_of(*w.source, l, 4) != old);
    CHECK(w.hand_over->is_written(9, l));
  }
}

TEST_CASE("L-M27 S-M14 streams of an engine pull from each other") {
  host_engine engine{2, reference_operators()};
  const auto from = engine.make_device("from"), to = engine.make_device("to");
  pull_between(*from, *to);
}

TEST_CASE(
    "an engine that does nothing else goes on with a pull when the pages of its slots are there") {
  world w;
  constexpr uint32_t many = 32'768; // on several huge pages in each layer
  const auto source =
      std::make_shared<kv_cache>(*w.prefill, layers, many, kv_heads, dim, half_type::f16);
  const auto target =
      std::make_shared<kv_cache>(*w.memory, layers, many, kv_heads, dim, half_type::f16);
  const std::vector<slot_run> all{{0, many}};
  auto pages_first = policy();
  pages_first.may_step = [ready = target->prepare(all),
                          before = pages_first.may_step](bool waits, uint64_t receives) {
    return ready->load() && before(waits, receives);
  };
  auto offer =
      std::make_shared<offer_runner>(source, w.prefill->ops(), w.launch(1, {{0, 16}}), w.back.from,
                                     w.forth.to, offer_terms{w.hand_over, 0, 0});
  auto pull = std::make_shared<pull_runner>(target, w.memory->ops(), w.launch(1, {{0, 16}}),
                                            w.forth.from, w.back.to, pages_first, w.watch);
  const auto offers = w.prefill->make_stream("offers"), pulls = w.memory->make_stream("pulls");
  auto offered = start(*offers, offer), pulled = start(*pulls, pull);
  CHECK(pulled.get() == work_status::done); // and not its deadline
  CHECK(offered.get() == work_status::done);
  CHECK(pull->digest() == offer->digest());
}

TEST_CASE("Left-overs of a pull that was given up are dropped by the next one") {
  world w;
  auto old_pull = w.pull(1, {{10, 1}, {11, 1}, {12, 1}});
  auto old_offer = w.offer(1, {{0, 1}, {1, 1}, {2, 1}});
  w.step(old_pull);
  w.step(old_offer);
  w.step(old_offer); // two pieces and two grants lie in the rings
  auto pull = w.pull(2, {{20, 2}});
  auto offer = w.offer(2, {{5, 2}});
  auto a = progress::advanced, b = progress::advanced;
  for (int i = 0; i < 100 && (a != progress::done || b != progress::done); ++i) {
    if (a != progress::done) a = w.step(pull);
    if (b != progress::done) b = w.step(offer);
  }
  REQUIRE(a == progress::done);
  REQUIRE(b == progress::done);
  CHECK(pull.digest() == offer.digest());
  CHECK(row_of(*w.target, 2, 21) == row_of(*w.source, 2, 6));
}

namespace {

/// A replica by hand: sends Q, or K and V, of one layer of iteration `iteration`.
void send(world& w, channel_sender& to, uint64_t iteration, uint32_t layer, frame_kind kind) {
  const auto bytes = kind == frame_kind::q ? w.heads * dim * 2 : w.heads * dim * 2 * 2;
  auto* p = to.reserve(bytes);
  REQUIRE(p != nullptr);
  std::memset(p, 0, bytes);
  to.commit({0, iteration, 0, layer, kind, 0});
}

} // namespace

TEST_CASE("L-M28 between two QKV receives pulls fill the gap; a QKV that has come waits for none") {
  world w;
  ring_terms terms;
  terms.slot_bytes = 4096;
  auto qkv = make_device_ring(*w.prefill, *w.memory, terms);
  auto answers = make_device_ring(*w.memory, *w.prefill, terms);
  std::vector<slot_run> rows;
  for (uint32_t i = 0; i < 30; ++i) rows.push_back({i, 1});
  auto pull = w.pull(1, rows);
  auto offer = w.offer(1, rows);
  uint32_t pieces = 0;
  const auto pulls = [&] { // as many as a gap holds, both sides
    uint32_t taken = 0;
    for (auto before = pull.bytes(); taken < 3; before = pull.bytes()) {
      w.step(offer);
      if (w.step(pull) == progress::blocked) break;
      taken += pull.bytes() != before;
    }
    pieces += taken;
    return taken;
  };
  for (uint64_t iteration = 1; iteration <= 4; ++iteration) {
    attention_launch x;
    x.tag.iteration = iteration;
    x.rows = 1;
    x.spans = {{0, 1, 40, 0, 1}};
    x.runs = {{20, 41}};
    x.watch = w.watch;
    attention_runner attention{w.target, w.memory->ops(), x, {{qkv.from, answers.to}}};
    for (uint32_t l = 0; l < layers; ++l) {
      CAPTURE(iteration);
      CAPTURE(l);
      CHECK(pulls() > 0); // the replica computes: a gap
      send(w, *qkv.to, iteration, l, frame_kind::q);
      CHECK(pulls() == 0);
      CHECK(w.step(attention) == progress::advanced);
      CHECK(pulls() == 0); // Q is being worked on, K and V are to come
      send(w, *qkv.to, iteration, l, frame_kind::kv);
      CHECK(pulls() == 0);
      CHECK(w.step(attention) != progress::blocked);
      CHECK(w.watch->receives() == (iteration - 1) * layers + l + 1);
      REQUIRE(answers.from->peek(0) != nullptr);
      answers.from->release();
    }
  }
  CHECK(pieces >= 4 * layers);
  CHECK(pulls() > 0);
}

} // namespace lamella::gpu::test
