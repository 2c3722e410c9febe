// multipleOf, in decimal: where a number may end is decided by what is left when its digits so far
// are divided by the step.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::model {

using node_id = grammar::node_id;

namespace {

constexpr uint32_t digits_max = 15; ///< all of them are read as they are written

std::string text_of(const decimal& x) {
  return (x.negative ? "-" : "") + std::to_string(x.whole)
         + (x.fraction.empty() ? "" : "." + x.fraction);
}

/// Positive multiples of a step that has a fraction, from their first digit on.
class decimal_multiples {
public:
  decimal_multiples(grammar& g, const decimal_step& step, node_id next)
      : grammar_{g}, step_{step}, next_{next} {}

  node_id made() {
    // Behind the point, by how many digits are there: from the last one on.
    fraction_.assign(remainders(), grammar_.choice());
    node_id zeros = grammar_.choice(); // nothing but zeros so far
    for (auto i = step_.places + 1; i-- > 0;) {
      std::vector<node_id> before;
      for (int64_t left = 0; left < step_.size; ++left) {
        auto ways = i < step_.places ? digits(left, 0, fraction_) : std::vector<node_id>{};
        if (i > 0 && ends(left, step_.places - i)) ways.push_back(next_);
        before.push_back(grammar_.choice(std::move(ways)));
      }
      if (i < step_.places) {
        auto ways = digits(0, 1, fraction_);
        ways.push_back(grammar_.text("0", zeros));
        zeros = grammar_.choice(std::move(ways));
      }
      fraction_ = std::move(before);
    }
    std::vector<node_id> whole;
    for (uint32_t n = 0; n < digits_max - step_.places; ++n) {
      std::vector<node_id> before;
      for (int64_t left = 0; left < step_.size; ++left) {
        auto ways = n == 0 ? std::vector<node_id>{} : digits(left, 0, whole);
        const auto rest = static_cast<size_t>(left);
        ways.push_back(grammar_.text(".", fraction_[rest]));
        if (ends(left, step_.places)) ways.push_back(next_);
        before.push_back(grammar_.choice(std::move(ways)));
      }
      whole = std::move(before);
    }
    auto ways = digits(0, 1, whole);
    ways.push_back(grammar_.text("0.", zeros));
    return grammar_.choice(std::move(ways));
  }

private:
  size_t remainders() const { return static_cast<size_t>(step_.size); }

  /// Is it a multiple when so many zeros follow?
  bool ends(int64_t left, uint32_t zeros) const {
    for (; zeros > 0; --zeros) left = left * 10 % step_.size;
    return left == 0;
  }

  std::vector<node_id> digits(int64_t left, int64_t first, const std::vector<node_id>& behind) {
    std::map<node_id, byte_set> sets;
    for (auto d = first; d < 10; ++d)
      sets[behind[static_cast<size_t>((left * 10 + d) % step_.size)]].set(
          static_cast<size_t>('0' + d));
    std::vector<node_id> ways;
    for (const auto& [to, set] : sets) ways.push_back(grammar_.bytes(set, to));
    return ways;
  }

  grammar& grammar_;
  decimal_step step_;
  node_id next_;
  std::vector<node_id> fraction_;
};

} // namespace

/// What numbers are multiples of, all that is said taken together; nothing: of nothing.
std::optional<decimal_step> json_schema_compiler::step_of(const std::vector<schema_view>& views,
                                                          number_form form) {
  std::optional<decimal_step> all;
  for (const auto& x : views) {
    const auto* value = x.find("multipleOf");
    if (value == nullptr) continue;
    const auto size = number_of(*value);
    if (!size || *size <= 0) x.fail("multipleOf", "must be a number above 0");
    const double inverse = std::round(1 / *size);
    const bool of_all_integers = *size <= 1 && 1 / inverse == *size;
    if (form == number_form::integer && of_all_integers) continue;
    const auto step = step_from(*value);
    if (!step)
      x.fail("multipleOf", "is only supported for numbers of up to 15 digits, 9 of them behind the "
                           "point");
    all = all ? common_multiple(*all, *step) : step;
    if (all && form == number_form::integer) all = common_multiple(*all, {});
    if (!all)
      x.fail("multipleOf",
             "is not supported beside what else numbers must be multiples of: what is "
             "a multiple of all has more than 15 digits");
  }
  return all;
}

/// All of them where there are few between the bounds.
std::optional<node_id> json_schema_compiler::few_multiples(const decimal_step& step,
                                                           const number_bounds& bounds,
                                                           node_id next) {
  constexpr int64_t whole_max = 999'999'999'999'999'999;
  constexpr size_t listed_max = 2'000;
  if (!bounds.low || !bounds.high) return {};
  int64_t scale = 1;
  for (auto i = step.places; i > 0; --i) scale *= 10;
  const auto limit = static_cast<uint64_t>(whole_max / scale);
  if (step.places > 0 && (bounds.low->whole >= limit || bounds.high->whole >= limit)) return {};
  auto fraction = bounds.low->fraction.substr(0, step.places);
  fraction.resize(step.places, '0');
  const auto amount = static_cast<int64_t>(bounds.low->whole) * scale
                      + (fraction.empty() ? 0 : std::stoll(fraction));
  auto n = ((bounds.low->negative ? -amount - 1 : amount) / step.size - 1) * step.size;
  while (decimal_of(n, step.places) < *bounds.low) n += step.size;
  std::vector<std::string> texts;
  for (; n <= whole_max && !(*bounds.high < decimal_of(n, step.places)); n += step.size) {
    if (texts.size() == listed_max) return {};
    texts.push_back(text_of(decimal_of(n, step.places)));
  }
  return grammar_.texts(std::move(texts), next);
}

/// From their first digit on, by what is left when the digits so far are divided by the step.
node_id json_schema_compiler::multiples_from(int64_t step, node_id next) {
  uint32_t zeros = 0;
  for (; step % 10 == 0; step /= 10) ++zeros;
  const auto end = grammar_.text(std::string(zeros, '0'), next);
  std::vector<node_id> behind(static_cast<size_t>(step), grammar_.choice());
  behind[0] = end;
  for (auto digits = zeros; digits < digits_max; ++digits) {
    const bool is_first = digits + 1 == digits_max; // which is not 0
    std::vector<node_id> before;
    for (int64_t left = 0; left < (is_first ? 1 : step); ++left) {
      std::map<node_id, byte_set> sets;
      for (int64_t d = is_first ? 1 : 0; d < 10; ++d)
        sets[behind[static_cast<size_t>((left * 10 + d) % step)]].set(static_cast<size_t>('0' + d));
      std::vector<node_id> ways;
      for (const auto& [to, set] : sets) ways.push_back(grammar_.bytes(set, to));
      if (left == 0 && !is_first) ways.push_back(end);
      before.push_back(grammar_.choice(std::move(ways)));
    }
    behind = std::move(before);
  }
  return behind[0];
}

node_id json_schema_compiler::multiples(const schema_view& x, const decimal_step& step,
                                        const number_bounds& bounds, node_id next) {
  constexpr int64_t remainders_max = 128;
  if (const auto few = few_multiples(step, bounds, next)) return *few;
  auto remainders = step.size;
  while (remainders % 10 == 0) remainders /= 10;
  const bool free =
      !bounds.high
      && (!bounds.low
          || (!bounds.low->negative && !(decimal_of(step.size, step.places) < *bounds.low)));
  if (!free || remainders > remainders_max)
    x.fail("multipleOf", "is only supported between bounds that are not far from each other, or "
                         "up to "
                             + std::to_string(remainders_max)
                             + " times a power of ten, with a minimum of 0 or none");
  const auto key = "multiples of " + text_of(decimal_of(step.size, step.places));
  const auto positive = shared(
      key,
      [&](node_id end) {
        return step.places == 0 ? multiples_from(step.size, end)
                                : decimal_multiples{grammar_, step, end}.made();
      },
      next);
  std::vector<node_id> ways{positive};
  if (!bounds.low || bounds.low->negative) ways.push_back(grammar_.text("-", positive));
  if (!bounds.low || !(decimal{} < *bounds.low)) ways.push_back(grammar_.text("0", next));
  return grammar_.choice(std::move(ways));
}

} // namespace lamella::model
