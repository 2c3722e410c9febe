#include "gpu/kernels/operators.hpp"

#include "gpu/kernels/sets.hpp"

#include <string>

namespace lamella::gpu {

namespace {

/// The first instruction-set extension of a set that this CPU lacks; empty when it has all.
std::string_view lacking(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (name == "avx2") {
    if (!__builtin_cpu_supports("avx2")) return "AVX2";
    if (!__builtin_cpu_supports("fma")) return "FMA";
    if (!__builtin_cpu_supports("f16c")) return "F16C";
  } else if (name == "avx512") {
    if (!__builtin_cpu_supports("avx512f")) return "AVX512F";
    if (!__builtin_cpu_supports("avx512bw")) return "AVX512BW";
    if (!__builtin_cpu_supports("avx512vl")) return "AVX512VL";
    if (!__builtin_cpu_supports("avx512dq")) return "AVX512DQ";
    if (!__builtin_cpu_supports("avx512vnni")) return "AVX512VNNI";
    if (!__builtin_cpu_supports("fma")) return "FMA";
    if (!__builtin_cpu_supports("f16c")) return "F16C";
  }
#endif
  return {};
}

const operators* compiled(std::string_view name) {
  if (name == "reference") return &reference_operators();
  if (name == "portable") return portable_operators();
  if (name == "avx2") return avx2_operators();
  if (name == "avx512") return avx512_operators();
  return nullptr;
}

} // namespace

const operators* find_operators(std::string_view name, std::string* reason) {
  auto fail = [&](std::string text) -> const operators* {
    if (reason != nullptr) *reason = std::move(text);
    return nullptr;
  };
  if (name == "auto") {
    for (std::string_view candidate : {"avx512", "avx2", "portable"})
      if (const auto* set = compiled(candidate); set != nullptr && lacking(candidate).empty())
        return set;
    return &reference_operators();
  }
  if (name != "reference" && name != "portable" && name != "avx2" && name != "avx512")
    return fail("unknown kernel set '" + std::string{name}
                + "'; known are auto, reference, portable, avx2 and avx512");
  const auto* set = compiled(name);
  if (set == nullptr)
    return fail("kernel set '" + std::string{name}
                + "' was not compiled for this architecture; use auto");
  if (auto missing = lacking(name); !missing.empty())
    return fail("kernel set '" + std::string{name} + "' needs " + std::string{missing}
                + ", which this CPU lacks; use auto");
  return set;
}

} // namespace lamella::gpu
