/// The default model for tests, and scattered KV slots for its sequences.
#pragma once

#include "model/program/load.hpp"
#include "tests/golden/oracle_files.hpp"
#include "tests/model_files.hpp"
#include "tests/pipeline.hpp"
#include "tests/random.hpp"

#include <algorithm>

namespace lamella::tests {

/// The default model, if it is there and is the one that the oracle read (`file_bytes` long);
/// otherwise nothing, and a message that says what is missing.
inline std::optional<model::loaded_model> oracle_model(uint64_t file_bytes) {
  const auto path = default_model();
  if (!path) {
    MESSAGE("skipped: no " << model::default_model_path()
                           << " (set LAMELLA_TEST_MODEL or run deploy/quickstart)");
    return {};
  }
  if (std::filesystem::file_size(*path) != file_bytes) {
    MESSAGE("skipped: " << *path << " is not the file of the oracle (" << file_bytes << " bytes)");
    return {};
  }
  return model::load_model(*path);
}

/// Slots of a pool, handed out in runs of 16 that lie scattered over the pool.
class scattered_slots {
public:
  static constexpr uint32_t run_slots = 16;

  scattered_slots(uint32_t slots, uint64_t seed) {
    splitmix random(seed);
    for (uint32_t first = 0; first + run_slots <= slots; first += run_slots) free_.push_back(first);
    for (size_t i = free_.size(); i > 1; --i) std::swap(free_[i - 1], free_[random.below(i)]);
  }

  /// Extends `runs` until they hold `count` slots exactly, as one sequence's `rows` need them.
  /// Slots cut off the last run come back when the sequence grows.
  void extend(std::vector<gpu::slot_run>& runs, uint32_t count) {
    uint32_t held = 0;
    for (auto& run : runs) {
      const bool last = &run == &runs.back();
      if (last) run.length = std::min(run_slots, count - held);
      held += run.length;
    }
    while (held < count) {
      REQUIRE(!free_.empty());
      runs.push_back({free_.back(), std::min(run_slots, count - held)});
      free_.pop_back();
      held += runs.back().length;
    }
  }

private:
  std::vector<uint32_t> free_;
};

/// A sequence that is fed piece by piece.
struct fed_sequence {
  std::vector<uint32_t> tokens;
  std::vector<gpu::slot_run> runs{};
  uint32_t position = 0; ///< tokens fed so far

  /// The next up to `count` tokens as rows of an iteration.
  test::pipeline::rows next(uint32_t count, scattered_slots& slots, bool every_row) {
    count = std::min<uint32_t>(count, static_cast<uint32_t>(tokens.size()) - position);
    slots.extend(runs, position + count);
    test::pipeline::rows rows{
        {tokens.begin() + position, tokens.begin() + position + count}, position, runs, every_row};
    position += count;
    return rows;
  }
  bool finished() const { return position == tokens.size(); }
};

} // namespace lamella::tests
