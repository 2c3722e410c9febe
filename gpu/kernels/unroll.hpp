/// Loops that are gone when the compiler is done: the index is a constant.
///
/// GCC keeps arrays of vectors that are indexed by a loop variable in memory, even in a fully
/// unrolled loop; with constant indices they live in registers, which is worth a factor of two to
/// three.
#pragma once

#include <utility>

namespace lamella::gpu {
namespace {

/// Calls f(0), f(1), ... f(count - 1) with integral constants.
template <int count, class F> [[gnu::always_inline]] inline void unroll(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

/// Gives `f` its number, `least` to `most`, as an integral constant.
template <int least, int most, class F>
[[gnu::always_inline]] inline void with_constant(int number, F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (void)((number == least + i ? (f(std::integral_constant<int, least + i>{}), true) : false)
           || ...);
  }
  (std::make_integer_sequence<int, most - least + 1>{});
}

} // namespace
} // namespace lamella::gpu

/// A lambda that must not become a call: its captures would force registers into memory.
#define LAMELLA_UNROLLED(variable) [&](auto variable) __attribute__((always_inline))
