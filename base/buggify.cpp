#include "base/buggify.hpp"

#include <array>

namespace lamella {

namespace {

constexpr uint64_t one_in = 10;

uint64_t seed_of_run = 0;
std::array<uint64_t, buggify_points> passes{};
uint64_t odd_passes = 0;

uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

} // namespace

void odd::arm(uint64_t seed) {
  seed_of_run = seed;
  passes = {};
  odd_passes = 0;
  armed =
      static_cast<uint32_t>(mixed(seed + 0x9e3779b97f4a7c15) >> 32) & ((1u << buggify_points) - 1);
}

void odd::disarm() { armed = 0; }

uint64_t odd::fired() { return odd_passes; }

bool odd::draw(buggify_point what) {
  const auto place = static_cast<uint64_t>(what);
  const auto pass = ++passes[place];
  const bool fires =
      mixed(seed_of_run ^ (place + 1) * 0xd1b54a32d192ed03 ^ pass * 0x9e3779b97f4a7c15) % one_in
      == 0;
  odd_passes += fires ? 1 : 0;
  return fires;
}

} // namespace lamella
