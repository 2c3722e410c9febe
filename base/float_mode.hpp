/// How a thread computes with floats: as C++ says, in every thread, or tokens would depend on where
/// a row was computed.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace lamella {

/// While it lives, its thread rounds to nearest, keeps denormal numbers (no flush to zero) and
/// traps nothing; afterwards the thread is as before. Threads inherit the mode of the one that
/// starts them, and libraries built with -ffast-math change that of the one that loads them: so
/// the main thread and each thread of an engine hold one, and libraries are loaded inside one.
/// Costs some ten cycles.
class plain_floats {
public:
  plain_floats() : before_{get()} { set(plain); }
  plain_floats(const plain_floats&) = delete;
  plain_floats& operator=(const plain_floats&) = delete;
  ~plain_floats() { set(before_); }

private:
#if defined(__x86_64__)
  using word = uint32_t;
  static constexpr word plain = 0x1f80; ///< of MXCSR: all exceptions masked, nothing else
  static word get() { return _mm_getcsr(); }
  static void set(word x) { _mm_setcsr(x); }
#elif defined(__aarch64__)
  using word = uint64_t;
  static constexpr word plain = 0; ///< of FPCR
  static word get() {
    word x;
    asm volatile("mrs %0, fpcr" : "=r"(x));
    return x;
  }
  static void set(word x) { asm volatile("msr fpcr, %0" : : "r"(x)); }
#else
#error "say how this processor keeps denormal numbers"
#endif

  word before_;
};

} // namespace lamella
