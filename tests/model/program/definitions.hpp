/// Model definitions that no architecture has, for the converter's tests.
#pragma once

#include "model/program/graph.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace lamella::tests {

/// A random decoder: several residual streams of random widths, attention and feed-forward parts
/// side by side or one after the other, products nobody else reads, side branches around attention.
inline model::operator_graph random_definition(uint64_t seed) {
  splitmix random{seed};
  model::tracer t;
  std::vector<std::pair<model::tracer::symbol, uint32_t>> values; // with their widths
  uint32_t names = 0;
  const auto name = [&] { return "w" + std::to_string(names++); };
  const auto width = [&] { return static_cast<uint32_t>(2 * (1 + random.below(9))); };
  const auto any = [&] {
    // Recent values are likelier: deep graphs.
    const auto back = std::min(random.below(values.size()), random.below(values.size()));
    return values[values.size() - 1 - back];
  };
  const auto product = [&](std::pair<model::tracer::symbol, uint32_t> x, uint32_t outputs) {
    return t.matmul(x.first, {name(), outputs, x.second});
  };
  const auto first = width();
  values.emplace_back(t.embed({name(), 17, first}), first);
  const auto layers = static_cast<uint32_t>(1 + random.below(4));
  for (uint32_t layer = 0; layer < layers; ++layer) {
    t.enter_layer(layer);
    const auto extras = random.below(6);
    for (uint64_t i = 0; i < extras; ++i) {
      const auto x = any();
      switch (random.below(7)) {
      case 0: // widths are even
        values.emplace_back(t.rms_norm(x.first, name(), static_cast<uint32_t>(1 + random.below(2))),
                            x.second);
        break;
      case 1:
        values.emplace_back(t.rope(x.first, 1), x.second);
        break;
      case 2: {
        const auto w = width();
        const auto gate = product(x, w);
        const auto up = product(any(), w);
        values.emplace_back(t.silu_mul(gate, up), w);
        break;
      }
      case 3:
        values.emplace_back(t.add_bias(x.first, {name(), 1, x.second}), x.second);
        break;
      case 4:
        values.emplace_back(t.scale(x.first, 1 + static_cast<float>(random.below(9))), x.second);
        break;
      default: {
        const auto w = width();
        values.emplace_back(product(x, w), w);
        break;
      }
      }
    }
    const auto kv = width();
    const auto group = static_cast<uint32_t>(1 + random.below(3));
    const auto source = any();
    const auto other = random.below(2) == 0 ? source : any();
    auto q = product(source, group * kv);
    if (random.below(3) == 0) q = t.add_bias(q, {name(), 1, group * kv});
    if (random.below(3) == 0) q = t.rms_norm(q, name(), group);
    if (random.below(2) == 0) q = t.rope(q, group);
    const auto k = product(other, kv);
    const auto v = random.below(4) == 0 ? k : product(other, kv);
    const auto a = t.attention(q, k, v);
    const auto back = any();
    values.emplace_back(t.add(t.matmul(a, {name(), back.second, group * kv}), back.first),
                        back.second);
  }
  const auto last = any();
  t.sample(product({t.select(last.first), last.second}, 17));
  return t.take();
}

} // namespace lamella::tests
