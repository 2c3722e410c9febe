/// exp, log, sine and cosine in double precision without libm, so that bits do not depend on the
/// machine's library. Internal linkage, for the reason given in half.hpp; constexpr, so that device
/// code calls the same lines.
#pragma once

#include <bit>
#include <cstdint>

namespace lamella::gpu {
namespace {

constexpr double round_magic = 0x1.8p52; ///< adding and taking it away rounds to an integer

/// e^x for any finite x <= 700; 0 below -700. Relative error below 1e-15. Without branches, so that
/// loops over it are vectorised.
constexpr double exp_double(double x) {
  double limited = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
  double shifted = limited * 0x1.71547652b82fep+0 + round_magic;
  double n = shifted - round_magic;
  double r = limited - n * 0x1.62e42fefa0000p-1 - n * 0x1.cf79abc9e3b3ap-40;
  double p = 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // The low bits of `shifted` are n in two's complement.
  auto power = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
  double result = p * power;
  return x < -700.0 ? 0.0 : result;
}

/// Natural logarithm of a positive normal number; relative error below 1e-14.
constexpr double log_double(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  auto mantissa = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh((m - 1) / (m + 1)), an odd series with |z| < 0.172.
  double z = (mantissa - 1) / (mantissa + 1);
  double z2 = z * z;
  double p = 0;
  for (int k = 21; k >= 1; k -= 2) p = p * z2 + 1.0 / k;
  return 2 * z * p + exponent * 0x1.62e42fefa39efp-1;
}

/// Sine and cosine of an angle in radians, |angle| < 1e9. Reduced to [-pi/4, pi/4] in double
/// precision; absolute error below 1e-10 for angles up to 1e6. Without branches.
constexpr void sin_cos_double(double angle, double* sine, double* cosine) {
  double shifted = angle * 0x1.45f306dc9c883p-1 + round_magic;
  double n = shifted - round_magic;
  // pi/2 in three parts of at most 33 bits: the products with n are exact.
  double r = angle - n * 0x1.921fb544p+0 - n * 0x1.0b4611a6p-34 - n * 0x1.3198a2e037073p-69;
  double r2 = r * r;
  double s = -1.0 / 1307674368000;
  s = s * r2 + 1.0 / 6227020800;
  s = s * r2 - 1.0 / 39916800;
  s = s * r2 + 1.0 / 362880;
  s = s * r2 - 1.0 / 5040;
  s = s * r2 + 1.0 / 120;
  s = s * r2 - 1.0 / 6;
  s = r + r * (s * r2);
  double c = 1.0 / 20922789888000;
  c = c * r2 - 1.0 / 87178291200;
  c = c * r2 + 1.0 / 479001600;
  c = c * r2 - 1.0 / 3628800;
  c = c * r2 + 1.0 / 40320;
  c = c * r2 - 1.0 / 720;
  c = c * r2 + 1.0 / 24;
  c = c * r2 - 0.5;
  c = c * r2 + 1.0;
  auto quadrant = std::bit_cast<uint64_t>(shifted);
  uint64_t swap = (quadrant & 1) != 0 ? ~uint64_t{0} : 0;
  auto sb = std::bit_cast<uint64_t>(s), cb = std::bit_cast<uint64_t>(c);
  auto sine_bits = (sb & ~swap) | (cb & swap);
  auto cosine_bits = (cb & ~swap) | (sb & swap);
  *sine = std::bit_cast<double>(sine_bits ^ (quadrant & 2) << 62);
  *cosine = std::bit_cast<double>(cosine_bits ^ ((quadrant + 1) & 2) << 62);
}

} // namespace
} // namespace lamella::gpu
