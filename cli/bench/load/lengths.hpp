/// Lengths of prompts and answers, in tokens: fixed, or drawn from a distribution.
#pragma once

#include <cstdint>
#include <string>

namespace lamella::cli {

/// Spreads a seed and an index over all bits, so that neighbours share nothing.
uint64_t mixed(uint64_t seed, uint64_t index);

/// Length i depends on the seed and on i only, on every machine.
class length_distribution {
public:
  /// Always `tokens`.
  explicit length_distribution(uint32_t tokens);

  /// Reads N, uniform:LOW,HIGH, normal:MEAN,STD or lognormal:MEAN,STD; mean and standard deviation
  /// are those of the lengths. The last two take LOW,HIGH as well, to which lengths are cut (else
  /// to 1 or more). `flag` is named in errors. Throws command_error (2).
  static length_distribution read(const std::string& text, const char* flag);

  /// At least 1.
  uint32_t draw(uint64_t seed, uint64_t index) const;
  bool is_fixed() const { return kind_ == kind::fixed; }
  /// The middle of the distribution.
  uint32_t typical() const;
  /// As it was written.
  const std::string& text() const { return text_; }

private:
  enum class kind { fixed, uniform, normal, lognormal };
  kind kind_ = kind::fixed;
  double a_ = 1, b_ = 0; ///< low and high, or mean and standard deviation
  double low_ = 1, high_ = 1;
  std::string text_;
};

} // namespace lamella::cli
