/// The guard of the native stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lamella::model::jinja {

/// Room for calls within calls, from where it was made. Whoever calls itself asks it, so that a
/// template of long chains or deep calls ends with an error long before the thread's stack does:
/// a stack of 256 KiB is enough, beside what values of the deepest nesting take.
class stack_room {
public:
  stack_room() : base_{here()} {}

  bool is_used_up() const {
    const auto now = here();
    return (now < base_ ? base_ - now : now - base_) > bytes_max;
  }

private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t bytes_max = 512 << 10; // every call takes several times the room
#else
  static constexpr size_t bytes_max = 128 << 10;
#endif

  static uintptr_t here() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

  uintptr_t base_;
};

} // namespace lamella::model::jinja
