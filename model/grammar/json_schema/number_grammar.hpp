/// Numbers in decimal, within bounds.
#pragma once

#include "base/json.hpp"
#include "model/grammar/grammar.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace lamella::model {

/// A decimal number without an exponent.
struct decimal {
  bool negative = false;
  uint64_t whole = 0;   ///< below 10^18
  std::string fraction; ///< digits, without zeros at the end

  /// As JSON has it, in the fewest digits that read back the same. Nothing when it has more than 18
  /// digits before the point.
  static std::optional<decimal> from(const json_value& number);
};

bool operator<(const decimal& a, const decimal& b);

/// `size` times ten to the power of minus `places`: what numbers are multiples of.
struct decimal_step {
  int64_t size = 1;
  uint32_t places = 0;
};

/// The number, which must be above 0, as a step; nothing where that takes more than 15 digits.
std::optional<decimal_step> step_from(const json_value& number);
/// What is a multiple of both; nothing where that takes more than 15 digits.
std::optional<decimal_step> common_multiple(const decimal_step& a, const decimal_step& b);
/// `amount` steps of one in the last place.
decimal decimal_of(int64_t amount, uint32_t places);

/// Both included.
struct number_bounds {
  std::optional<decimal> low, high;
};

/// Whole numbers have up to 18 digits, fractions up to 17. Without bounds an exponent of up to two
/// digits may follow; then all that is written is a finite double. With bounds there is none.
enum class number_form : uint8_t { integer, any };

enum class bound_side : uint8_t { low, high };

/// The bound of a schema, as one that is included. Readers compare doubles: what is written as a
/// number beyond an excluded bound must not be read as that bound, and a bound that is no double is
/// moved inwards to one, where texts may be read as doubles. Nothing when it has more than 18
/// digits before the point.
std::optional<decimal> bound_of(const json_value& number, number_form form, bound_side side,
                                bool excluded);

/// Is there a number within the bounds? Whole numbers are asked for by `integer`.
bool any_within(number_form form, const number_bounds& bounds);

/// A number within the bounds as JSON writes it; no text at all when there is none.
grammar::node_id number_within(grammar& g, number_form form, const number_bounds& bounds,
                               grammar::node_id next);

} // namespace lamella::model
