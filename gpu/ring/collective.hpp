/// The port through which the ranks of a tensor-parallel replica meet (L-M03): sums over all ranks.
#pragma once

#include "gpu/kernels/operators.hpp"
#include "gpu/ring/channel.hpp"

namespace lamella::gpu {

/// A matrix of which each rank has a part of the sum; afterwards each has the whole sum.
struct sum_args {
  frame_tag tag; ///< `layer` counts the sums of the launch
  float* x;      ///< [rows, width]
  uint32_t rows, width;
};

/// One rank's end of a group. One stream uses it; the streams of all ranks ask for the same sums in
/// the same order.
///
/// **Row-invariant.** Parts are added in ascending order of the ranks, whatever the number of rows
/// and whoever was there first: all ranks get the same bytes, in every launch.
class collective {
public:
  virtual ~collective() = default;

  /// A step of the rank's stream. False: another rank's part is not there yet; ask again with the
  /// same arguments. The stream's work brings the deadline and the abort. Throws channel_ended when
  /// another rank's part can never come.
  virtual bool all_reduce(const sum_args& args, kernel_context context) = 0;

  /// Bytes of parts that this rank has sent so far.
  virtual uint64_t bytes_sent() const = 0;

  /// Nothing is added up any more: whoever waits, and whoever asks, gets channel_ended.
  /// Thread-safe.
  virtual void end(channel_state why) = 0;
};

} // namespace lamella::gpu
