/// A small generator whose numbers are the same everywhere, also in Python.
#pragma once

#include <cmath>
#include <cstdint>

namespace lamella::tests {

/// splitmix64: state += 0x9E3779B97F4A7C15, then two multiply-and-shift rounds.
class splitmix {
public:
  explicit splitmix(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

  /// 0 … bound − 1, by remainder (the slight bias does not matter in tests).
  uint64_t below(uint64_t bound) { return next() % bound; }

  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// Roughly normal with mean 0 and deviation 1: the sum of twelve uniform numbers, less six.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return static_cast<float>(sum);
  }

private:
  uint64_t state_;
};

} // namespace lamella::tests
