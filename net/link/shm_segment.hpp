/// The memory of a link between two processes of one host.
#pragma once

#include "gpu/ring/ring_end.hpp"

#include <memory>
#include <span>
#include <vector>

namespace lamella::net {

/// A descriptor that is closed at the end of its scope.
class owned_descriptor {
public:
  explicit owned_descriptor(int number = -1) : number_{number} {}
  ~owned_descriptor();
  owned_descriptor(owned_descriptor&& other) noexcept : number_{other.release()} {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept;
  int get() const { return number_; }
  int release();

private:
  int number_;
};

/// Two rings, one per direction, in a new sealed memfd (no shrinking, no growing). A segment
/// belongs to one link of one epoch between two incarnations, and is never reused (reliability A3).
class shm_segment {
public:
  /// Creates a segment. Pages become resident when first written. Throws std::system_error.
  explicit shm_segment(const gpu::ring_terms& terms);

  /// Maps the segment of the peer. Throws std::runtime_error when it is not sealed, has another
  /// size than the terms, or holds other rings.
  shm_segment(owned_descriptor descriptor, const gpu::ring_terms& terms);

  ~shm_segment();
  shm_segment(const shm_segment&) = delete;
  shm_segment& operator=(const shm_segment&) = delete;

  int descriptor() const { return descriptor_.get(); }
  std::byte* forth() const { return base_; } ///< from the side that connected
  std::byte* back() const { return base_ + terms_.bytes(); }

private:
  void map();

  gpu::ring_terms terms_;
  owned_descriptor descriptor_;
  std::byte* base_ = nullptr;
};

/// Sends bytes and descriptors in one message over a unix socket that is ready for it. Throws
/// std::system_error.
void send_descriptors(int socket, std::span<const std::byte> bytes,
                      std::span<const int> descriptors);

/// Receives exactly `bytes.size()` bytes and up to three descriptors in one message from a socket
/// that is readable; descriptors beyond are closed. Throws std::system_error, std::runtime_error
/// when fewer bytes came.
std::vector<owned_descriptor> receive_descriptors(int socket, std::span<std::byte> bytes);

/// Whether the peer process runs as our user. Throws std::system_error.
bool same_user(int socket);

} // namespace lamella::net
