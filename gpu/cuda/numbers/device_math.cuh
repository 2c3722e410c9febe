/// exp in fp32 for device code; the double functions of gpu/kernels/scalar_math.hpp are constexpr
/// and serve device code too.
#pragma once

namespace lamella::gpu::cuda {

/// e^x for x <= 88, relative error below 4e-7; exactly 1 at 0; 0 below -87; NaN stays NaN. The same
/// steps as exp_lanes of the CPU kernels, so that both sample alike.
__device__ inline float exp_float(float x) {
  const float limited = fminf(88.0f, fmaxf(-87.0f, x));
  const float n = rintf(__fmul_rn(limited, 0x1.715476p+0f));
  float r = fmaf(n, -0x1.62ep-1f, limited);
  r = fmaf(n, -0x1.0bfbe8p-15f, r);
  float p = 1.0f / 720;
  p = fmaf(p, r, 1.0f / 120);
  p = fmaf(p, r, 1.0f / 24);
  p = fmaf(p, r, 1.0f / 6);
  p = fmaf(p, r, 0.5f);
  p = fmaf(p, r, 1.0f);
  p = fmaf(p, r, 1.0f);
  const float power = __int_as_float((static_cast<int>(n) + 127) << 23);
  if (x != x) return x;
  return x < -87.0f ? 0.0f : __fmul_rn(p, power);
}

} // namespace lamella::gpu::cuda
