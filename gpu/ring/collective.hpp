/// All-reduce (sum) over the ranks of a tensor-parallel replica (L-M03).
#pragma once

#include "gpu/kernels/operators.hpp"
#include "gpu/ring/channel.hpp"

namespace lamella::gpu {

/// A matrix of partial sums per rank; after the all-reduce each rank has the total.
struct sum_args {
  frame_tag tag; ///< `layer` counts the sums of the launch
  float* x;      ///< [rows, width]
  uint32_t rows, width;
};

/// One rank's end of a group. Used by one stream; the streams of all ranks request the same sums in
/// the same order.
///
/// **Row-invariant.** Partial sums are added in ascending order of the ranks, whatever the number
/// of rows and the order of arrival: all ranks get the same bytes, in every launch.
class collective {
public:
  virtual ~collective() = default;

  /// A step of the rank's stream. False: another rank's partial sum has not arrived; retry with the
  /// same arguments. Deadline and abort are those of the stream's work. Throws channel_ended when
  /// another rank's partial sum can never arrive.
  virtual bool all_reduce(const sum_args& args, kernel_context context) = 0;

  /// Bytes of partial sums sent by this rank so far.
  virtual uint64_t bytes_sent() const = 0;

  /// Closes the group: current and later calls throw channel_ended. Thread-safe.
  virtual void end(channel_state why) = 0;
};

} // namespace lamella::gpu
