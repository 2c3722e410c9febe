/// Lines of a log that strangers can cause.
#pragma once

#include <chrono>

namespace lamella {

/// Ten lines a second: a scan of ports must not fill the log. Not for several threads at once.
class line_limit {
public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr int per_second = 10;

  struct verdict {
    bool say = true; ///< write this line
    int unsaid = 0;  ///< lines of an earlier second that were not written, to be told before it
  };

  /// For the next line. O(1).
  verdict next(time_point now) {
    verdict x;
    if (now - second_ >= std::chrono::seconds{1}) {
      x.unsaid = unsaid_;
      second_ = now;
      said_ = unsaid_ = 0;
    }
    x.say = said_ < per_second;
    ++(x.say ? said_ : unsaid_);
    return x;
  }

private:
  time_point second_{};
  int said_ = 0, unsaid_ = 0;
};

} // namespace lamella
