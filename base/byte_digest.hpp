/// A digest that covers every byte of a model file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lamella {

/// 64 bits over all bytes, in their order, and their number. Any change within one 8-byte word
/// changes it for certain, any other but for one in 2^64; it is no defence against somebody who
/// forges a file.
///
/// It reads as fast as memory or disk give the bytes: chunks are digested by up to `threads`
/// threads (0: one per processor, 8 at most), and the result does not depend on their number.
uint64_t digest_of(std::span<const std::byte> bytes, unsigned threads = 0);

} // namespace lamella
