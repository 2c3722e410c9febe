/// The two ends between which `lamella bench channel` measures.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace lamella::cli {

/// Messages one after the other; a link, or a plain socket. Waits a minute at most, then throws
/// std::runtime_error.
class wire_end {
public:
  virtual ~wire_end() = default;

  /// Copies the message out of `message`.
  virtual void send(std::span<const std::byte> message) = 0;

  /// The next message, of as many bytes as `room`. It lies there, or where it arrived, until the
  /// next call.
  virtual std::span<const std::byte> receive(std::span<std::byte> room) = 0;
};

/// Maximum messages in flight: the frame slots of a link.
constexpr size_t wire_slots = 8;

/// Runs `far` at the other end, in a process of its own (in_process: a thread), and `near` here,
/// each on its own half of the processors where there are two or more.
/// `tier` as in bench_channel_row. Throws std::runtime_error when either fails.
void run_over_wire(const std::string& tier, size_t slot_bytes,
                   const std::function<void(wire_end&)>& near,
                   const std::function<void(wire_end&)>& far);

} // namespace lamella::cli
