/// What a machine is there for (Splitwise IV-A; S-M03, S-M08, S-M09).
#pragma once

#include <cstdint>

namespace lamella::scheduler {

/// Prompts, tokens, or both. A service that runs has prefill workers for prompts, and replicas for
/// tokens until they take prompts, too.
enum class machine_pool : uint8_t { prompt, token, mixed };

/// The pool of a machine now, and its own pool, to which it returns. Times are seconds by the clock
/// of the caller.
class machine_label {
public:
  explicit machine_label(machine_pool home) : home_{home}, now_{home} {}

  machine_pool home() const { return home_; }
  machine_pool now() const { return now_; }

  /// Work of the other kind comes to it, which makes it mixed. False when it was mixed before.
  bool join_mixed(double now_s) {
    if (now_ == machine_pool::mixed) return false;
    now_ = machine_pool::mixed;
    mixed_since_ = now_s;
    return true;
  }

  /// Nothing of the other kind is left: back to its own pool (S-M08).
  void leave_mixed() { now_ = home_; }

  /// Mixed for `after_s`: the other kind of work needs it more than its own, so the other pool is
  /// its own from now on. What it has begun it ends (S-M09). 0: never. True when it has changed.
  bool repurpose(double now_s, double after_s) {
    if (after_s <= 0 || now_ != machine_pool::mixed || home_ == machine_pool::mixed
        || now_s - mixed_since_ < after_s)
      return false;
    now_ = home_ = home_ == machine_pool::prompt ? machine_pool::token : machine_pool::prompt;
    return true;
  }

private:
  machine_pool home_, now_;
  double mixed_since_ = 0;
};

} // namespace lamella::scheduler
