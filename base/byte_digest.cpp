#include "base/byte_digest.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace lamella {

namespace {

constexpr size_t chunk_bytes = size_t{1} << 20;
constexpr unsigned threads_max = 8; ///< enough for the memory of one socket
constexpr uint64_t odd_a = 0x9E3779B97F4A7C15u, odd_b = 0xD6E8FEB86659FD93u;

/// One to one in `lane` and in `word`: two states that differ in one of them stay apart.
uint64_t stir(uint64_t lane, uint64_t word) { return std::rotl(lane + word * odd_b, 31) * odd_a; }

/// One to one, and every bit of `x` reaches all of the result.
uint64_t settle(uint64_t x) {
  x = (x ^ (x >> 32)) * odd_b;
  x = (x ^ (x >> 29)) * odd_a;
  return x ^ (x >> 32);
}

uint64_t word_at(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Four lanes, so that multiplications do not wait for each other.
uint64_t digest_chunk(std::span<const std::byte> bytes, uint64_t index) {
  std::array<uint64_t, 4> lanes{odd_a, odd_b, ~odd_a, ~odd_b};
  const auto* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 32; at += 32, left -= 32)
    for (size_t i = 0; i < 4; ++i) lanes[i] = stir(lanes[i], word_at(at + 8 * i));
  for (; left >= 8; at += 8, left -= 8) lanes[0] = stir(lanes[0], word_at(at));
  uint64_t tail = 0;
  std::memcpy(&tail, at, left);
  lanes[1] = stir(lanes[1], tail);
  uint64_t sum = stir(index, bytes.size());
  for (const auto lane : lanes) sum = stir(sum, settle(lane));
  return settle(sum);
}

} // namespace

uint64_t digest_of(std::span<const std::byte> bytes, unsigned threads) {
  const size_t chunks = (bytes.size() + chunk_bytes - 1) / chunk_bytes;
  std::vector<uint64_t> parts(chunks);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < chunks; i = next++) {
      const auto from = i * chunk_bytes;
      parts[i] = digest_chunk(bytes.subspan(from, std::min(chunk_bytes, bytes.size() - from)), i);
    }
  };
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, threads_max);
  std::vector<std::jthread> others;
  try {
    for (size_t i = 1; i < std::min<size_t>(threads, chunks); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // Fewer threads than wished for do the same work.
  }
  work();
  others.clear(); // joins them
  uint64_t sum = bytes.size();
  for (const auto part : parts) sum = stir(sum, part);
  return settle(sum);
}

} // namespace lamella
