/// Traces that nobody recorded. Everything is drawn from a seed with arithmetic that is the same
/// everywhere: the library's distributions are not.
#include "scheduler/planner/cost/trace.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace lamella::scheduler {

namespace {

using generator = std::mt19937_64;

/// In (0, 1).
double unit(generator& g) { return (static_cast<double>(g() >> 11) + 0.5) * 0x1p-53; }

uint32_t between(generator& g, uint32_t least, uint32_t most) {
  return least + static_cast<uint32_t>(unit(g) * (static_cast<double>(most) - least + 1));
}

double normal(generator& g) {
  return std::sqrt(-2 * std::log(unit(g))) * std::cos(2 * std::acos(-1.0) * unit(g));
}

/// Gamma with mean 1 (Marsaglia and Tsang's method; shapes below 1 through shape + 1).
double gamma(generator& g, double shape) {
  if (shape == 1) return -std::log(unit(g));
  const bool small = shape < 1;
  const auto d = (small ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const auto x = normal(g), v = std::pow(1 + c * x, 3);
    if (v <= 0 || std::log(unit(g)) > x * x / 2 + d - d * v + d * std::log(v)) continue;
    return d * v * (small ? std::pow(unit(g), 1 / shape) : 1) / shape;
  }
}

} // namespace

request_trace uniform_trace(size_t requests, uint32_t prompt, uint32_t output, uint64_t seed) {
  generator g{seed};
  const auto around = [&](uint32_t l) {
    const auto least = static_cast<uint32_t>(std::ceil(0.9 * l));
    return std::max(1u, between(g, least, std::max(least, static_cast<uint32_t>(1.1 * l))));
  };
  request_trace trace(requests);
  for (auto& x : trace) {
    x.prompt_tokens = around(prompt);
    x.output_tokens = around(output);
  }
  return trace;
}

request_trace with_arrivals(request_trace trace, double rate, uint64_t seed, double shape) {
  if (!(rate > 0) || !(shape > 0)) throw std::invalid_argument{"rate and shape must be positive"};
  generator g{seed};
  double now = 0;
  for (auto& x : trace) {
    x.arrival_s = now;
    now += gamma(g, shape) / rate;
  }
  return trace;
}

request_trace with_shared_prefixes(request_trace trace, double share, uint32_t prefixes,
                                   uint64_t seed) {
  if (!(share >= 0 && share <= 1) || prefixes == 0)
    throw std::invalid_argument{"share must be within 0 to 1, and one prefix must exist"};
  generator g{seed};
  uint32_t next = prefixes << 16; // ids below belong to the common prefixes
  for (auto& x : trace) {
    const auto blocks = x.prompt_tokens / 512;
    const auto common = unit(g) < share ? blocks / 2 : 0;
    const auto which = between(g, 0, prefixes - 1);
    x.prefix_blocks.clear();
    for (uint32_t i = 0; i < blocks; ++i)
      x.prefix_blocks.push_back(i < common && i < 0x10000 ? (which << 16) + i : next++);
  }
  return trace;
}

request_trace shuffled(request_trace trace, uint64_t seed) {
  generator g{seed};
  for (size_t i = trace.size(); i > 1; --i) {
    auto& a = trace[i - 1];
    auto& b = trace[static_cast<size_t>(unit(g) * static_cast<double>(i))];
    std::swap(a, b);
    std::swap(a.arrival_s, b.arrival_s);
  }
  return trace;
}

} // namespace lamella::scheduler
