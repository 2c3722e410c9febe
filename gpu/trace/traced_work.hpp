/// What a work says of its steps, for those who record them.
#pragma once

#include <cstdint>
#include <string_view>

namespace lamella::gpu {

/// What a stream does in a span of time.
enum class step_kind : uint8_t {
  compute, ///< a slice of a replica, attention of a shard
  send,    ///< to another device
  wait,    ///< for another device
  sample,
  other, ///< a work that says nothing of its steps
  idle,  ///< nothing is launched
};

std::string_view to_string(step_kind kind);

/// The step that a work takes next, or a whole work. Names have static storage.
struct step_label {
  std::string_view name = "work";
  std::string_view waits = "wait"; ///< what it is called while the step is blocked
  step_kind kind = step_kind::other;
  uint32_t number = 0; ///< of the slice, or the layer
  uint32_t rows = 0;
  uint64_t iteration = 0;
  friend bool operator==(const step_label&, const step_label&) = default;
};

/// Implemented by works that can say what they do. Called by the thread that runs the work.
class traced_work {
public:
  virtual ~traced_work() = default;
  /// The step that advance() takes next.
  virtual step_label next_step() const = 0;
  /// All of its steps together, for devices that are not seen between them.
  virtual step_label whole() const = 0;
};

} // namespace lamella::gpu
