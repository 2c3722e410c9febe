/// The lines of a benchmark that say whether a target is met; deploy/gpu-check makes its page of
/// them. Plain C++.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

namespace lamella::gpu::cuda::bench {

/// What a value must reach and what is aimed at; `less_is_better` where they are upper bounds.
struct target {
  const char* name; ///< without blanks
  double must, aim;
  bool less_is_better = false;
};

/// "target NAME VALUE must M aim A VERDICT": aim, must, missed, or - for a value that is not a
/// positive number - not-measured.
inline std::string target_line(const target& x, double value) {
  const auto reaches = [&](double limit) {
    return x.less_is_better ? value <= limit : value >= limit;
  };
  const bool measured = std::isfinite(value) && value > 0;
  const char* verdict = !measured         ? "not-measured"
                        : reaches(x.aim)  ? "aim"
                        : reaches(x.must) ? "must"
                                          : "missed";
  char line[160];
  std::snprintf(line, sizeof line, "target %s %.3g must %s%g aim %s%g %s", x.name,
                measured ? value : 0.0, x.less_is_better ? "<=" : ">=", x.must,
                x.less_is_better ? "<=" : ">=", x.aim, verdict);
  return line;
}

inline void print_target(const target& x, double value) {
  std::puts(target_line(x, value).c_str());
}

} // namespace lamella::gpu::cuda::bench
