#include "gpu/kernels/operators.hpp"

#include "base/errno_text.hpp"
#include "gpu/kernels/sets.hpp"

#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace lamella::gpu {

namespace {

/// The first instruction-set extension of a set that this CPU, or what the kernel lets programs use
/// of it, lacks; empty when it has all.
std::string_view lacking(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (name == "avx2") {
    if (!__builtin_cpu_supports("avx2")) return "AVX2";
    if (!__builtin_cpu_supports("fma")) return "FMA";
    if (!__builtin_cpu_supports("f16c")) return "F16C";
  } else if (name == "avx512" || name == "amx") {
    if (!__builtin_cpu_supports("avx512f")) return "AVX512F";
    if (!__builtin_cpu_supports("avx512bw")) return "AVX512BW";
    if (!__builtin_cpu_supports("avx512vl")) return "AVX512VL";
    if (!__builtin_cpu_supports("avx512dq")) return "AVX512DQ";
    if (!__builtin_cpu_supports("avx512vnni")) return "AVX512VNNI";
    if (!__builtin_cpu_supports("fma")) return "FMA";
    if (!__builtin_cpu_supports("f16c")) return "F16C";
    if (name == "avx512") return {};
    if (!__builtin_cpu_supports("amx-tile")) return "AMX-TILE";
    if (!__builtin_cpu_supports("amx-int8")) return "AMX-INT8";
    if (!__builtin_cpu_supports("amx-bf16")) return "AMX-BF16";
  }
#endif
  return {};
}

/// Asks the kernel for tile registers, for all threads of the process, once. Without that it has no
/// room for them among what it saves of a thread. Says why not; empty where it grants them.
const std::string& tiles_refused() {
  static const std::string reason = [] {
#if defined(__x86_64__) && defined(__linux__)
    constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM
    return std::string{syscall(SYS_arch_prctl, request_permission, tile_data) == 0 ? ""
                                                                                   : errno_text()};
#else
    return std::string{"unknown to this system"};
#endif
  }();
  return reason;
}

/// Why this machine cannot run a set that is compiled; empty where it can.
std::string refusal(std::string_view name) {
  if (const auto missing = lacking(name); !missing.empty())
    return std::string{missing} + ", which this CPU lacks";
  if (name != "amx") return {};
  if (!tiles_refused().empty())
    return "tile registers, which this kernel refuses (" + tiles_refused() + ")";
  static const bool exact = amx_tiles_are_exact();
  return exact ? "" : "tile registers, whose products are wrong on this machine";
}

/// Null where the set was not compiled. To be called where refusal() is empty: even the functions
/// that return a set are compiled for its instructions.
const operators* compiled(std::string_view name) {
  if (name == "reference") return &reference_operators();
  if (name == "portable") return portable_operators();
  if (name == "avx2")
    return has_avx_vnni() && avxvnni_operators() != nullptr ? avxvnni_operators()
                                                            : avx2_operators();
  if (name == "avx512") return avx512_operators();
  if (name == "amx") return amx_operators();
  return nullptr;
}

} // namespace

bool has_avx_vnni() {
#if defined(__x86_64__)
  static const bool has = [] {
    constexpr unsigned features = 7, more = 1, avx_vnni = 1U << 4; // of EAX
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(features, more, &a, &b, &c, &d) != 0 && (a & avx_vnni) != 0;
  }();
  return has;
#else
  return false;
#endif
}

const operators* find_operators(std::string_view name, std::string* reason) {
  auto fail = [&](std::string text) -> const operators* {
    if (reason != nullptr) *reason = std::move(text);
    return nullptr;
  };
  if (name == "auto") {
    for (std::string_view candidate : {"amx", "avx512", "avx2", "portable"})
      if (refusal(candidate).empty())
        if (const auto* set = compiled(candidate)) return set;
    return &reference_operators();
  }
  if (name != "reference" && name != "portable" && name != "avx2" && name != "avx512"
      && name != "amx")
    return fail("unknown kernel set '" + std::string{name}
                + "'; known are auto, reference, portable, avx2, avx512 and amx");
  if (const auto why = refusal(name); !why.empty())
    return fail("kernel set '" + std::string{name} + "' needs " + why + "; use auto");
  if (const auto* set = compiled(name)) return set;
  return fail("kernel set '" + std::string{name}
              + "' was not compiled for this architecture; use auto");
}

} // namespace lamella::gpu
