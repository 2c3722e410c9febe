/// Pulls between streams of two devices of any kind.
#pragma once

#include "gpu/ring/device_ring.hpp"
#include "gpu/runners/kv_transfer.hpp"

#include <doctest/doctest.h>

#include <future>
#include <random>

namespace lamella::gpu::test {

/// Says of a prefill worker's layers that they are there, one per step.
class layer_writer final : public work {
public:
  layer_writer(std::shared_ptr<kv_hand_over> to, uint64_t iteration, uint32_t layers)
      : to_{std::move(to)}, iteration_{iteration}, layers_{layers} {}
  progress advance(kernel_context) override {
    to_->write(iteration_, layer_++);
    return layer_ == layers_ ? progress::done : progress::advanced;
  }

private:
  std::shared_ptr<kv_hand_over> to_;
  uint64_t iteration_;
  uint32_t layers_, layer_ = 0;
};

inline std::future<work_status> start(stream& on, std::shared_ptr<work> x) {
  auto end = std::make_shared<std::promise<work_status>>();
  on.launch(std::move(x), clock::now() + std::chrono::minutes{1},
            [end](work_status status) { end->set_value(status); });
  return end->get_future();
}

/// Three pulls of two of three heads, the second one layer by layer behind a writer; every row of
/// the target is then the source's, and both sides have counted the same.
inline void pull_between(device& from, device& to) {
  constexpr uint32_t layers = 3, heads = 3, dim = 64, slots = 96, first_head = 1, head_count = 2;
  const auto source = std::make_shared<kv_cache>(from, layers, slots, heads, dim, half_type::f16);
  const auto target =
      std::make_shared<kv_cache>(to, layers, slots, head_count, dim, half_type::f16);
  std::mt19937 random{7};
  std::vector<std::byte> content(source->bytes());
  for (auto& x : content) x = static_cast<std::byte>(random());
  from.write(source->layer(0).rows, content);
  ring_terms terms;
  terms.slot_bytes = 16 << 10;
  const auto forth = make_device_ring(from, to, terms), back = make_device_ring(to, from, terms);
  const auto hand_over = std::make_shared<kv_hand_over>(from, layers, 1);
  const pull_policy policy{
      [](bool, uint64_t) { return true; },
      [](uint64_t pieces, uint64_t taken) { return std::min<uint64_t>(pieces, taken + 4); }};
  const auto offers = from.make_stream("offers"), writes = from.make_stream("writes"),
             pulls = to.make_stream("pulls");
  const auto launch = [&](uint64_t number, std::vector<slot_run> runs, uint32_t first) {
    transfer_launch x;
    x.pull = number;
    x.pieces = {{20, 0, 2}, {5, 2, 1}};
    x.runs = std::move(runs);
    x.first_head = first;
    x.head_count = head_count;
    return x;
  };
  std::vector<std::shared_ptr<kv_transfer>> sides;
  std::vector<std::future<work_status>> ends;
  for (uint32_t n = 1; n <= 3; ++n) {
    const auto base = 30 * (n - 1);
    auto offer = std::make_shared<offer_runner>(
        source, from.ops(), launch(n, {{base + 10, 12}, {base, 8}, {base + 22, 5}}, first_head),
        back.from, forth.to, offer_terms{hand_over, 0, n == 2 ? 9u : 0u});
    auto pull = std::make_shared<pull_runner>(
        target, to.ops(), launch(n, {{base, 5}, {base + 6, 15}, {base + 24, 5}}, 0), forth.from,
        back.to, policy, nullptr);
    ends.push_back(start(*offers, offer));
    ends.push_back(start(*pulls, pull));
    sides.push_back(std::move(offer));
    sides.push_back(std::move(pull));
  }
  ends.push_back(start(*writes, std::make_shared<layer_writer>(hand_over, 9, layers)));
  for (auto& end : ends) REQUIRE(end.get() == work_status::done);
  std::vector<std::byte> arrived(target->bytes());
  to.read(arrived, target->layer(0).rows);
  const auto whole = source->layer(0).row_bytes(), part = target->layer(0).row_bytes();
  size_t wrong = 0;
  for (uint32_t n = 0; n < 3; ++n) {
    CHECK(sides[2 * n]->digest() == sides[2 * n + 1]->digest());
    CHECK(sides[2 * n]->bytes() == layers * 25 * part);
    for (uint32_t l = 0; l < layers; ++l)
      for (uint32_t i = 0; i < 25; ++i) {
        const auto at = 30 * n + (i < 12 ? 10 + i : i < 20 ? i - 12 : i + 2);
        const auto put = 30 * n + (i < 5 ? i : i < 20 ? i + 1 : i + 4);
        for (uint32_t half = 0; half < 2; ++half) {
          const auto* a = content.data() + (size_t{l} * slots + at) * whole
                          + (half * heads + first_head) * dim * 2;
          const auto* b =
              arrived.data() + (size_t{l} * slots + put) * part + half * head_count * dim * 2;
          wrong += std::equal(a, a + head_count * dim * 2, b) ? 0 : 1;
        }
      }
  }
  CHECK(wrong == 0);
}

} // namespace lamella::gpu::test
