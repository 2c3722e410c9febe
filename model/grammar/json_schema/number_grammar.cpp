// A number lies between two bounds if its digits do. While a text has the same digits as a bound,
// that bound decides about its next digit; from the first other digit on, it does not matter.
#include "model/grammar/json_schema/number_grammar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace lamella::model {

namespace {

using node_id = grammar::node_id;

constexpr size_t whole_digits = 18, fraction_digits = 17;
constexpr uint64_t whole_max = 999'999'999'999'999'999;

byte_set digits_between(char low, char high) {
  return low <= high ? bytes_between(static_cast<uint8_t>(low), static_cast<uint8_t>(high))
                     : byte_set{};
}

const byte_set any_digit = digits_between('0', '9');

/// Between two bounds of one sign, as amounts.
struct amount_bounds {
  decimal low, high;
  bool above_low = false; ///< `low` itself is not meant
};

class number_builder {
public:
  number_builder(grammar& g, number_form form, node_id next)
      : grammar_{g}, form_{form}, next_{next} {}

  /// Branches for all amounts within the bounds.
  void add(const amount_bounds& x, std::vector<node_id>& branches) {
    bounds_ = &x;
    fractions_.clear();
    const auto a = x.low.whole, b = x.high.whole;
    if (form_ == number_form::integer) {
      const auto low = a + (x.above_low || !x.low.fraction.empty() ? 1 : 0);
      wholes(low, b, next_, branches);
      return;
    }
    if (a > b) return;
    if (a == b) {
      branches.push_back(grammar_.text(std::to_string(a), behind_whole(true, true)));
      return;
    }
    branches.push_back(grammar_.text(std::to_string(a), behind_whole(true, false)));
    const bool largest = b == whole_max && x.high.fraction.size() == fraction_digits;
    const auto last = largest ? b : b - 1; // which any fraction may follow
    if (last > a) wholes(a + 1, last, behind_whole(false, false), branches);
    if (!largest) branches.push_back(grammar_.text(std::to_string(b), behind_whole(false, true)));
  }

private:
  // --- before the point --------------------------------------------------------------------------

  /// Whole numbers from `low` to `high`, by their number of digits. Those of neighbouring lengths
  /// that have all numbers begin with the same digits.
  void wholes(uint64_t low, uint64_t high, node_id next, std::vector<node_id>& branches) {
    if (low > high) return;
    free_digits_ = {next};
    if (low == 0) {
      branches.push_back(digits('0', '0', next));
      if (low++ == high) return;
    }
    size_t shortest = 0, whole_lengths = 0; // of those that have all numbers
    uint64_t power = 1;                     // the least of its length
    for (size_t length = 1; length <= whole_digits; ++length, power *= 10) {
      const auto least = std::max(low, power), most = std::min(high, power * 10 - 1);
      if (least > most) continue;
      if (least == power && most == power * 10 - 1) {
        if (whole_lengths++ == 0) shortest = length;
      } else {
        branches.push_back(between(std::to_string(least), std::to_string(most)));
      }
    }
    if (whole_lengths == 0) return;
    auto at = next;
    for (size_t i = 1; i < whole_lengths; ++i)
      at = grammar_.maybe(grammar_.bytes(any_digit, at), next);
    for (size_t i = 1; i < shortest; ++i) at = grammar_.bytes(any_digit, at);
    branches.push_back(digits('1', '9', at));
  }

  node_id digits(char low, char high, node_id next) {
    return grammar_.bytes(digits_between(low, high), next);
  }

  /// So many digits of any kind.
  node_id free_digits(size_t count) {
    while (free_digits_.size() <= count)
      free_digits_.push_back(grammar_.bytes(any_digit, free_digits_.back()));
    return free_digits_[count];
  }

  /// Texts of equally many digits.
  node_id between(std::string_view low, std::string_view high) {
    const auto all = [](std::string_view text, char digit) {
      return text.find_first_not_of(digit) == text.npos;
    };
    if (all(low, '0') && all(high, '9')) return free_digits(low.size());
    const auto rest = low.size() - 1;
    const char a = low[0], b = high[0];
    if (a == b) return digits(a, a, between(low.substr(1), high.substr(1)));
    std::vector<node_id> branches{digits(a, a, between(low.substr(1), std::string(rest, '9'))),
                                  digits(b, b, between(std::string(rest, '0'), high.substr(1)))};
    if (b - a > 1)
      branches.push_back(
          digits(static_cast<char>(a + 1), static_cast<char>(b - 1), free_digits(rest)));
    return grammar_.choice(std::move(branches));
  }

  // --- behind the point --------------------------------------------------------------------------

  static char digit_of(const decimal& x, size_t i) {
    return i < x.fraction.size() ? x.fraction[i] : '0';
  }

  /// May a number end behind `i` digits of its fraction? `at_low`: all of it so far is as that
  /// bound has it.
  bool may_end(size_t i, bool at_low) const {
    return !at_low || (bounds_->low.fraction.size() <= i && !bounds_->above_low);
  }

  node_id behind_whole(bool at_low, bool at_high) {
    const auto point = grammar_.text(".", fraction(0, at_low, at_high));
    return may_end(0, at_low) ? grammar_.maybe(point, next_) : point;
  }

  node_id fraction(size_t i, bool at_low, bool at_high) {
    const auto key = std::tuple{i, at_low, at_high};
    if (const auto known = fractions_.find(key); known != fractions_.end()) return known->second;
    std::array<byte_set, 4> sets; // by what the bounds still matter
    const auto low = digit_of(bounds_->low, i), high = digit_of(bounds_->high, i);
    for (char d = '0'; d <= '9' && i < fraction_digits; ++d) {
      if ((at_low && d < low) || (at_high && d > high)) continue;
      const bool still_low = at_low && d == low, still_high = at_high && d == high;
      sets[(still_low ? 1 : 0) + (still_high ? 2 : 0)].set(static_cast<unsigned char>(d));
    }
    std::vector<node_id> branches;
    for (size_t s = 0; s < sets.size(); ++s)
      if (sets[s].any())
        branches.push_back(grammar_.bytes(sets[s], fraction(i + 1, (s & 1) != 0, (s & 2) != 0)));
    if (i > 0 && may_end(i, at_low)) branches.push_back(next_);
    return fractions_[key] = grammar_.choice(std::move(branches));
  }

  grammar& grammar_;
  number_form form_;
  node_id next_;
  const amount_bounds* bounds_ = nullptr;
  std::vector<node_id> free_digits_;
  std::map<std::tuple<size_t, bool, bool>, node_id> fractions_;
};

/// One to `count` digits.
node_id some_digits(grammar& g, size_t count, node_id next) {
  auto at = next;
  for (; count > 0; --count) {
    const auto digit = g.bytes(any_digit, at);
    at = count > 1 ? g.maybe(digit, next) : digit;
  }
  return at;
}

node_id exponent(grammar& g, node_id next) {
  const auto digits = some_digits(g, 2, next);
  const auto sign = g.maybe(g.bytes(byte_set{}.set('+').set('-'), digits), digits);
  return g.maybe(g.bytes(byte_set{}.set('e').set('E'), sign), next);
}

bool is_zero(const decimal& x) { return x.whole == 0 && x.fraction.empty(); }

} // namespace

std::optional<decimal> decimal::from(const json_value& number) {
  std::array<char, 400> text;
  auto end = text.data();
  if (const auto* i = number.get_if<int64_t>()) {
    end = std::to_chars(text.data(), text.data() + text.size(), *i).ptr;
  } else if (const auto* d = number.get_if<double>(); d != nullptr && std::abs(*d) < 1e18) {
    end = std::to_chars(text.data(), text.data() + text.size(), *d, std::chars_format::fixed).ptr;
  } else {
    return std::nullopt;
  }
  std::string_view left{text.data(), static_cast<size_t>(end - text.data())};
  decimal result;
  if (left.starts_with('-')) {
    result.negative = true;
    left.remove_prefix(1);
  }
  const auto point = std::min(left.find('.'), left.size());
  if (point > whole_digits) return std::nullopt;
  std::from_chars(left.data(), left.data() + point, result.whole);
  if (point < left.size()) result.fraction = left.substr(point + 1);
  while (result.fraction.ends_with('0')) result.fraction.pop_back();
  if (is_zero(result)) result.negative = false;
  return result;
}

namespace {

constexpr int64_t step_max = 1'000'000'000'000'000;
constexpr uint32_t step_places_max = 9;

int64_t power_of_ten(uint32_t exponent) {
  int64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

} // namespace

std::optional<decimal_step> step_from(const json_value& number) {
  const auto read = decimal::from(number);
  if (!read || read->negative || is_zero(*read) || read->fraction.size() > step_places_max)
    return {};
  const auto places = static_cast<uint32_t>(read->fraction.size());
  const auto power = power_of_ten(places);
  if (read->whole > static_cast<uint64_t>(step_max / power)) return {};
  const auto fraction = places > 0 ? std::stoll(read->fraction) : 0;
  return decimal_step{static_cast<int64_t>(read->whole) * power + fraction, places};
}

std::optional<decimal_step> common_multiple(const decimal_step& a, const decimal_step& b) {
  decimal_step out{0, std::max(a.places, b.places)};
  const auto scaled = [&](const decimal_step& x) -> std::optional<int64_t> {
    const auto power = power_of_ten(out.places - x.places);
    if (x.size > step_max / power) return {};
    return x.size * power;
  };
  const auto first = scaled(a), second = scaled(b);
  if (!first || !second) return {};
  const auto rest = *second / std::gcd(*first, *second);
  if (*first > step_max / rest) return {};
  out.size = *first * rest;
  for (; out.places > 0 && out.size % 10 == 0; out.size /= 10) --out.places;
  return out;
}

decimal decimal_of(int64_t amount, uint32_t places) {
  const auto power = static_cast<uint64_t>(power_of_ten(places));
  const auto size = static_cast<uint64_t>(amount < 0 ? -amount : amount);
  decimal out{amount < 0, size / power, ""};
  auto fraction = std::to_string(size % power);
  if (places > 0) out.fraction = std::string(places - fraction.size(), '0') + fraction;
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  return out;
}

bool operator<(const decimal& a, const decimal& b) {
  if (a.negative != b.negative) return a.negative;
  // Fractions have no zeros at their end, so that their digits compare as texts do.
  const auto amount = [](const decimal& x) { return std::tie(x.whole, x.fraction); };
  return a.negative ? amount(b) < amount(a) : amount(a) < amount(b);
}

std::optional<decimal> bound_of(const json_value& number, number_form form, bound_side side,
                                bool excluded) {
  auto given = decimal::from(number);
  if (!given) return {};
  const auto* whole = number.get_if<int64_t>();
  const double nearest = whole != nullptr ? static_cast<double>(*whole) : *number.get_if<double>();
  const double inwards = side == bound_side::low ? std::numeric_limits<double>::infinity()
                                                 : -std::numeric_limits<double>::infinity();
  if (excluded) return decimal::from(json_value(std::nextafter(nearest, inwards)));
  // 18 digits: the nearest double is one of 64 bits as well.
  const auto read = static_cast<int64_t>(nearest);
  if (form == number_form::integer || whole == nullptr || read == *whole) return given;
  const bool outside = side == bound_side::low ? read < *whole : read > *whole;
  return decimal::from(json_value(outside ? std::nextafter(nearest, inwards) : nearest));
}

bool any_within(number_form form, const number_bounds& bounds) {
  if (!bounds.low || !bounds.high) return true;
  const auto& low = *bounds.low;
  const auto& high = *bounds.high;
  if (form == number_form::integer) { // below 10^18 before the point
    const auto whole = [](const decimal& x) {
      return x.negative ? -static_cast<int64_t>(x.whole) : static_cast<int64_t>(x.whole);
    };
    const auto first = whole(low) + (!low.negative && !low.fraction.empty() ? 1 : 0);
    const auto last = whole(high) - (high.negative && !high.fraction.empty() ? 1 : 0);
    return first <= last;
  }
  return !(high < low);
}

node_id number_within(grammar& g, number_form form, const number_bounds& bounds, node_id next) {
  const bool bounded = bounds.low || bounds.high;
  auto end = next;
  if (form == number_form::any && !bounded) end = exponent(g, next);
  const decimal largest{false, whole_max, std::string(fraction_digits, '9')}, zero;
  number_builder builder{g, form, end};
  std::vector<node_id> branches, negative;
  if (!bounds.high || !bounds.high->negative) {
    amount_bounds x{zero, bounds.high.value_or(largest), false};
    if (bounds.low && !bounds.low->negative) x.low = *bounds.low;
    builder.add(x, branches);
  }
  if (!bounds.low || bounds.low->negative) {
    // Amounts below zero, from the bounds the other way round. Zero has a sign only where there are
    // no bounds.
    const bool unsigned_zero = bounded || form == number_form::integer;
    amount_bounds x{zero, bounds.low.value_or(largest), unsigned_zero};
    if (bounds.high && bounds.high->negative) {
      x.low = *bounds.high;
      x.above_low = false;
    }
    builder.add(x, negative);
    if (!negative.empty()) branches.push_back(g.text("-", g.choice(std::move(negative))));
  }
  return g.choice(std::move(branches));
}

} // namespace lamella::model
