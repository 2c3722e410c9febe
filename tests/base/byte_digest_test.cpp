#include "base/byte_digest.hpp"

#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <vector>

using namespace lamella;

TEST_CASE("a digest of bytes does not depend on the number of threads") {
  std::vector<std::byte> bytes((size_t{3} << 20) + 12'345);
  tests::splitmix random{7};
  for (auto& b : bytes) b = static_cast<std::byte>(random.below(256));
  const auto one = digest_of(bytes, 1);
  for (unsigned threads : {2u, 3u, 8u}) CHECK(digest_of(bytes, threads) == one);
}

TEST_CASE(
    "a digest of bytes changes with every bit, with the length, and with the order of chunks") {
  const size_t chunk = size_t{1} << 20;
  std::vector<std::byte> bytes(2 * chunk + 77);
  tests::splitmix random{8};
  for (auto& b : bytes) b = static_cast<std::byte>(random.below(256));
  const auto whole = digest_of(bytes);
  for (int i = 0; i < 200; ++i) {
    const auto at = i < 80 ? bytes.size() - 1 - static_cast<size_t>(i) : random.below(bytes.size());
    const auto bit = static_cast<std::byte>(1u << random.below(8));
    bytes[at] ^= bit;
    INFO("byte " << at);
    CHECK(digest_of(bytes) != whole);
    bytes[at] ^= bit;
  }
  CHECK(digest_of(bytes) == whole);
  for (size_t less = 1; less <= 40; ++less)
    CHECK(digest_of(std::span{bytes}.first(bytes.size() - less)) != whole);
  auto swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + chunk, swapped.begin() + chunk);
  CHECK(digest_of(swapped) != whole);
  // Zeros at the end are not nothing, and nothing has a digest too.
  const std::vector<std::byte> zeros(64);
  for (size_t n = 0; n < 64; ++n)
    CHECK(digest_of(std::span{zeros}.first(n)) != digest_of(std::span{zeros}.first(n + 1)));
}
