/// How floating-point numbers in messages are written: as their bits.
///
/// CAF 0.17 writes them by arithmetic that never ends for infinity, and that changes NaN, subnormal
/// numbers and the sign of 0. A forbidden token's logit edit is -infinity.
#pragma once

#include <caf/detail/stringification_inspector.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace lamella::actors {

template <std::floating_point T>
using bits_of_number = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// A number of a message.
template <std::floating_point T> struct exact { T& number; };

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, exact<T>& x) {
  if constexpr (std::is_same_v<Inspector, caf::detail::stringification_inspector>) {
    return f(x.number);
  } else {
    auto bits = std::bit_cast<bits_of_number<T>>(x.number);
    auto error = f(bits);
    if constexpr (!Inspector::reads_state) x.number = std::bit_cast<T>(bits);
    return error;
  }
}

/// A list of values with a number each.
template <class First, std::floating_point T> struct exact_pairs {
  std::vector<std::pair<First, T>>& pairs;
};

template <class Inspector, class First, class T>
typename Inspector::result_type inspect(Inspector& f, exact_pairs<First, T>& x) {
  if constexpr (std::is_same_v<Inspector, caf::detail::stringification_inspector>) {
    return f(x.pairs);
  } else {
    std::vector<std::pair<First, bits_of_number<T>>> written;
    for (const auto& [first, number] : x.pairs)
      written.emplace_back(first, std::bit_cast<bits_of_number<T>>(number));
    auto error = f(written);
    if constexpr (!Inspector::reads_state) {
      x.pairs.clear();
      for (const auto& [first, bits] : written) x.pairs.emplace_back(first, std::bit_cast<T>(bits));
    }
    return error;
  }
}

/// Whether CAF would find numbers in a value that has no inspect() of its own.
template <class T> inline constexpr bool holds_numbers = std::is_floating_point_v<T>;
template <class T> inline constexpr bool holds_numbers<std::vector<T>> = holds_numbers<T>;
template <class T> inline constexpr bool holds_numbers<std::optional<T>> = holds_numbers<T>;
template <class T, size_t n>
inline constexpr bool holds_numbers<std::array<T, n>> = holds_numbers<T>;
template <class K, class T>
inline constexpr bool holds_numbers<std::map<K, T>> = holds_numbers<K> || holds_numbers<T>;
template <class A, class B>
inline constexpr bool holds_numbers<std::pair<A, B>> = holds_numbers<A> || holds_numbers<B>;

/// A field of a message as an inspector takes it.
template <class T> decltype(auto) as_sent(T& field) {
  if constexpr (std::is_floating_point_v<T>) {
    return exact<T>{field};
  } else {
    static_assert(!holds_numbers<std::remove_const_t<T>>,
                  "CAF would write these numbers by arithmetic: write exact_pairs or its like");
    return (field);
  }
}
template <class First, std::floating_point T>
exact_pairs<First, T> as_sent(std::vector<std::pair<First, T>>& field) {
  return {field};
}

} // namespace lamella::actors
