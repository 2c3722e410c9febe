#include "cli/bench/load/lengths.hpp"

#include "cli/commands.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

namespace lamella::cli {

namespace {

constexpr double length_max = 10'000'000;

/// Numbers between commas; nothing where one is none.
std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> all;
  const char *at = text.data(), *last = at + text.size();
  for (;;) {
    double x = 0;
    const auto [end, bad] = std::from_chars(at, last, x);
    if (bad != std::errc{} || !std::isfinite(x)) return {};
    all.push_back(x);
    if (end == last) return all;
    if (*end != ',') return {};
    at = end + 1;
  }
}

/// Within [0, 1), from 53 bits.
double share_of(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Of the standard normal distribution (Box and Muller).
double normal_of(uint64_t seed, uint64_t index) {
  const double u = share_of(mixed(seed, index)), v = share_of(mixed(~seed, index));
  return std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
}

} // namespace

uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t x = seed + 0x9e3779b97f4a7c15ULL * (index + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

length_distribution::length_distribution(uint32_t tokens)
    : a_{static_cast<double>(tokens)}, text_{std::to_string(tokens)} {}

length_distribution length_distribution::read(const std::string& text, const char* flag) {
  const auto refuse = [&](const std::string& why) {
    throw command_error{
        exit_usage, std::string{flag} + ": '" + text + "' " + why,
        "write N, uniform:LOW,HIGH, normal:MEAN,STD or lognormal:MEAN,STD, the "
        "last two also with a least and a greatest length: lognormal:200,300,1,2000"};
  };
  length_distribution x{1};
  x.text_ = text;
  const auto colon = text.find(':');
  const auto word = colon == std::string::npos ? std::string{} : text.substr(0, colon);
  const auto numbers = numbers_of(colon == std::string::npos ? text : text.substr(colon + 1));
  const auto count = numbers.size();
  const bool drawn = word == "normal" || word == "lognormal";
  if (colon != std::string::npos && word != "uniform" && !drawn)
    refuse("is no distribution that is known");
  if (word.empty() ? count != 1 : drawn ? count != 2 && count != 4 : count != 2)
    refuse("has not the numbers that it needs");
  x.kind_ = word.empty()        ? kind::fixed
            : word == "uniform" ? kind::uniform
            : word == "normal"  ? kind::normal
                                : kind::lognormal;
  const auto whole = [&](double y) { return y >= 1 && y <= length_max && y == std::floor(y); };
  x.a_ = numbers[0];
  x.high_ = length_max;
  if (!drawn) {
    x.b_ = numbers[count - 1];
    if (!whole(x.a_) || !whole(x.b_)) refuse("has lengths that are not whole, from 1 to 10000000");
    if (x.a_ > x.b_) refuse("has its greatest length before its least");
    return x;
  }
  x.b_ = numbers[1];
  if (!(x.a_ >= 1 && x.a_ <= length_max) || !(x.b_ >= 0 && x.b_ <= length_max))
    refuse("needs a mean from 1 to 10000000 and a standard deviation of at least 0");
  if (count == 2) return x;
  x.low_ = numbers[2];
  x.high_ = numbers[3];
  if (!whole(x.low_) || !whole(x.high_))
    refuse("has lengths that are not whole, from 1 to 10000000");
  if (x.low_ > x.high_) refuse("has its greatest length before its least");
  return x;
}

uint32_t length_distribution::draw(uint64_t seed, uint64_t index) const {
  double x = a_;
  if (kind_ == kind::uniform) {
    x = std::min(b_, a_ + std::floor(share_of(mixed(seed, index)) * (b_ - a_ + 1)));
  } else if (kind_ == kind::normal) {
    x = a_ + b_ * normal_of(seed, index);
  } else if (kind_ == kind::lognormal) {
    const double variance = std::log1p(b_ * b_ / (a_ * a_));
    x = std::exp(std::log(a_) - variance / 2 + std::sqrt(variance) * normal_of(seed, index));
  }
  if (kind_ == kind::normal || kind_ == kind::lognormal) x = std::clamp(x, low_, high_);
  return static_cast<uint32_t>(std::lround(x));
}

uint32_t length_distribution::typical() const {
  const double x = kind_ == kind::uniform                              ? (a_ + b_) / 2
                   : kind_ == kind::normal || kind_ == kind::lognormal ? std::clamp(a_, low_, high_)
                                                                       : a_;
  return static_cast<uint32_t>(std::lround(x));
}

} // namespace lamella::cli
