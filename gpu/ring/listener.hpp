/// Who is rung when something has changed.
#pragma once

namespace lamella::gpu {

/// Rung when something changed that it may wait for.
class listener {
public:
  virtual ~listener() = default;
  virtual void ring() = 0; ///< thread-safe, cheap, never blocks
};

} // namespace lamella::gpu
