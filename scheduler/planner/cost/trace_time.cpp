#include "scheduler/planner/cost/trace_time.hpp"

#include <chrono>
#include <cstddef>

namespace lamella::scheduler {

namespace {

/// Takes a text apart from its beginning; what does not fit is remembered, and gives 0.
class time_reader {
public:
  explicit time_reader(std::string_view text) : rest_(text) {}

  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }
  bool at(char c) const { return !rest_.empty() && rest_.front() == c; }

  /// Exactly `digits` decimal digits, of a number within the bounds.
  int number(size_t digits, int least, int most) {
    int value = 0;
    for (size_t i = 0; i < digits; ++i) value = value * 10 + digit();
    if (value < least || value > most) good_ = false;
    return value;
  }

  /// One of these characters; which one.
  char one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) {
      good_ = false;
      return 0;
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  /// Microseconds of the digits behind a point, if there is one.
  int64_t fraction() {
    if (!at('.')) return 0;
    one_of(".");
    int64_t value = 0;
    bool up = false;
    size_t digits = 0;
    for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; ++digits) {
      const int d = digit();
      if (digits < 6)
        value = value * 10 + d;
      else if (digits == 6)
        up = d >= 5;
    }
    if (digits == 0) good_ = false;
    for (; digits < 6; ++digits) value *= 10;
    return value + (up ? 1 : 0);
  }

private:
  int digit() {
    const char c = one_of("0123456789");
    return good_ ? c - '0' : 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

/// Minutes east of Greenwich.
int zone_of(time_reader& in) {
  if (in.at_end()) return 0;
  const char sign = in.one_of("Z+-");
  if (sign == 'Z' || !in.good()) return 0;
  const int hours = in.number(2, 0, 14);
  in.one_of(":");
  const int minutes = hours * 60 + in.number(2, 0, 59);
  return sign == '+' ? minutes : -minutes;
}

} // namespace

std::optional<int64_t> microseconds_of(std::string_view text) {
  using namespace std::chrono;
  time_reader in{text};
  const int year = in.number(4, 1970, 9999);
  in.one_of("-");
  const int month = in.number(2, 1, 12);
  in.one_of("-");
  const int day = in.number(2, 1, 31);
  in.one_of(" T");
  const int hour = in.number(2, 0, 23);
  in.one_of(":");
  const int minute = in.number(2, 0, 59);
  in.one_of(":");
  const int second = in.number(2, 0, 60);
  const auto fraction = in.fraction();
  const int zone = zone_of(in);
  if (!in.good() || !in.at_end()) return {};
  const year_month_day date{std::chrono::year{year},
                            std::chrono::month(static_cast<unsigned>(month)),
                            std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return {};
  const auto time = sys_days{date}.time_since_epoch() + hours{hour} + minutes{minute - zone}
                    + seconds{second} + microseconds{fraction};
  return duration_cast<microseconds>(time).count();
}

} // namespace lamella::scheduler
