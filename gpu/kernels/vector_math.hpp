/// exp on lanes. Included after `lanes`.
#pragma once

namespace lamella::gpu {
namespace {

/// e^x for x <= 88, relative error below 4e-7; exactly 1 at 0; 0 below -87; NaN stays NaN.
[[gnu::always_inline]] inline lanes::vec exp_lanes(lanes::vec x) {
  auto limited = lanes::min(lanes::set(88.0f), lanes::max(lanes::set(-87.0f), x));
  auto n = lanes::round(lanes::mul(limited, lanes::set(0x1.715476p+0f)));
  // ln 2 in two parts, the first of few bits: its product with n is exact.
  auto r = lanes::fma(n, lanes::set(-0x1.62ep-1f), limited);
  r = lanes::fma(n, lanes::set(-0x1.0bfbe8p-15f), r);
  // Taylor to the sixth power: |r| <= 0.347, the rest is below 1.3e-7.
  auto p = lanes::set(1.0f / 720);
  p = lanes::fma(p, r, lanes::set(1.0f / 120));
  p = lanes::fma(p, r, lanes::set(1.0f / 24));
  p = lanes::fma(p, r, lanes::set(1.0f / 6));
  p = lanes::fma(p, r, lanes::set(0.5f));
  p = lanes::fma(p, r, lanes::set(1.0f));
  p = lanes::fma(p, r, lanes::set(1.0f));
  return lanes::zero_below(lanes::times_power_of_two(p, n), x, -87.0f);
}

inline float exp_one(float x) {
  return x == 0.0f ? 1.0f : lanes::maximum(exp_lanes(lanes::set(x)));
}

} // namespace
} // namespace lamella::gpu
