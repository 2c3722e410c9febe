#include "scheduler/planner/scaling_replay.hpp"

#include "scheduler/planner/cost/csv.hpp"
#include "scheduler/scaling_text.hpp"

#include <string>

namespace lamella::scheduler {

std::vector<replayed_look> replay_scaling(std::istream& in,
                                          const std::function<void(scaling_settings&)>& change) {
  const auto changed = [&](scaling_settings settings) {
    if (change) change(settings);
    return settings;
  };
  scaling_policy policy{changed({})};
  std::vector<replayed_look> all;
  pass_over_mark(in);
  std::string line;
  for (size_t number = 1; read_table_line(in, line, number); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const auto read = scaling_line_of(line);
      if (const auto* found = std::get_if<scaling_settings>(&read)) {
        policy.set(changed(*found));
        continue;
      }
      const auto& look = std::get<scaling_look>(read);
      if (!all.empty() && look.at < all.back().at)
        throw table_error{number, "at_seconds is earlier than that of the look before"};
      all.push_back({look.at, policy.look(look)});
    } catch (const scaling_text_error& e) {
      throw table_error{number, e.what()};
    }
  }
  return all;
}

} // namespace lamella::scheduler
