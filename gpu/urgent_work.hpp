/// Works whose steps an engine should not put off.
#pragma once

namespace lamella::gpu {

/// Implemented by works that know when another device waits for them. Called by the thread that
/// runs the work.
class urgent_work {
public:
  virtual ~urgent_work() = default;

  /// Whether the next step goes before those of other streams: it is short, and what comes of it is
  /// what another device waits for. Streams that take turns would end their slices together and
  /// then all wait: batches would not stagger (L-M18).
  virtual bool is_urgent() const = 0;
};

} // namespace lamella::gpu
