/// Who sits where: at most one in each seat, and never the same incarnation again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lamella::simulation {

class seat_watch {
public:
  /// A worker has taken its seat, or lost it.
  void note(const std::string& seat, uint32_t incarnation, bool lost) {
    auto& x = seats_[seat];
    if (lost) {
      if (!x.taken || x.incarnation != incarnation)
        errors.push_back(seat + ": lost, but it did not sit there");
      x.taken = false;
    } else {
      if (x.taken) errors.push_back(seat + ": taken twice");
      if (incarnation <= x.incarnation) errors.push_back(seat + ": incarnation again");
      x = {true, incarnation};
    }
  }

  std::vector<std::string> errors;

private:
  struct place {
    bool taken = false;
    uint32_t incarnation = 0;
  };
  std::map<std::string, place> seats_;
};

} // namespace lamella::simulation
