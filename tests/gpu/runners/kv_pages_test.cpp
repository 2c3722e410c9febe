// Pages that are made resident before KV is moved to them.
#include "gpu/device.hpp"
#include "gpu/kernels/operators.hpp"
#include "gpu/runners/kv_pages.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

namespace lamella::gpu::test {

namespace {

constexpr uint32_t layers = 3;
constexpr size_t row = 4096, layer_bytes = 8 << 20;

struct ring_count final : listener {
  std::atomic<int> rings{0};
  void ring() override { ++rings; }
};

/// Memory as a cache has it.
struct area {
  std::byte* data =
      static_cast<std::byte*>(mmap(nullptr, layers* layer_bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::shared_ptr<ring_count> waiter = std::make_shared<ring_count>();
  std::optional<kv_pages> pages_;
  kv_pages& pages;

  area() : pages{pages_.emplace(data, layers, layer_bytes, row, waiter)} {
    REQUIRE(data != MAP_FAILED);
    // A huge page would lie on two windows where the kernel does not align the area.
    madvise(data, layers * layer_bytes, MADV_NOHUGEPAGE); // fails where there are none
  }
  ~area() {
    pages_.reset();
    munmap(data, layers * layer_bytes);
  }

  /// Whether all pages of some slots of a layer are there.
  bool resident(uint32_t layer, uint32_t first, uint32_t length) const {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> is(length * row / page);
    REQUIRE(mincore(data + layer * layer_bytes + first * row, length * row, is.data()) == 0);
    for (const auto x : is)
      if ((x & 1) == 0) return false;
    return true;
  }
};

void wait_for(const kv_pages::ready_flag& ready) {
  while (!ready->load())
    std::this_thread::yield(); // a page takes a millisecond; the runner a limit
}

} // namespace

TEST_CASE("the pages of a move are resident before anything is written there, in all layers") {
  area a;
  std::memset(a.data + 100 * row, 7, row);
  const auto ready = a.pages.prepare(std::vector<slot_run>{{0, 200}, {1000, 100}});
  wait_for(ready);
  CHECK(a.data[100 * row] == std::byte{7}); // what is there stays
  for (uint32_t layer = 0; layer < layers; ++layer) {
    CAPTURE(layer);
    CHECK(a.resident(layer, 0, 200));
    CHECK(a.resident(layer, 1000, 100));
  }
}

TEST_CASE(
    "pages are made resident once, again after they were given back, and never beyond the end") {
  area a;
  const std::vector<slot_run> last{{layer_bytes / row - 10, 10}};
  wait_for(a.pages.prepare(last));
  CHECK(a.pages.prepare(last)->load()); // at once: nothing is left to do
  CHECK(a.pages.prepare(std::vector<slot_run>{})->load());
  REQUIRE(madvise(a.data, layers * layer_bytes, MADV_DONTNEED) == 0);
  REQUIRE_FALSE(a.resident(0, last[0].first, 10));
  a.pages.forget();
  wait_for(a.pages.prepare(last));
  for (uint32_t layer = 0; layer < layers; ++layer) CHECK(a.resident(layer, last[0].first, 10));
}

TEST_CASE(
    "pages are resident ahead of the slots in use, others stay away, none is beyond the end") {
  area a;
  constexpr uint32_t window = (2 << 20) / row, windows = layer_bytes / row / window;
  REQUIRE(windows == 4);
  const auto ahead_of = [&](uint32_t first, uint32_t length) {
    a.pages.keep_ahead(std::vector<slot_run>{{first, length}});
  };
  const auto are_there = [&] {
    std::vector<bool> result;
    for (uint32_t x = 0; x < windows; ++x) {
      result.push_back(true);
      for (uint32_t layer = 0; layer < layers; ++layer)
        if (!a.resident(layer, x * window, window)) result.back() = false;
    }
    return result;
  };
  const auto wait_until = [&](const std::vector<bool>& expected) {
    const auto end = clock::now() + std::chrono::seconds{20};
    while (are_there() != expected && clock::now() < end) std::this_thread::yield();
    CHECK(are_there() == expected);
  };
  ahead_of(0, 0); // nothing is in use
  wait_until({true, false, false, false});
  ahead_of(3 * window, window); // the last slots
  wait_until({true, false, false, true});
  ahead_of(0, 10);
  wait_until({true, true, false, true});
  REQUIRE(madvise(a.data, layers * layer_bytes, MADV_DONTNEED) == 0);
  a.pages.forget();
  ahead_of(window, 1);
  wait_until({false, true, true, false});
}

TEST_CASE("pages behind those of a move are made too, and who moves to some that are there already "
          "does not wait for them") {
  area a;
  constexpr uint32_t window = (2 << 20) / row;
  const std::vector<slot_run> first{{0, window}}, second{{window, 1}};
  wait_for(a.pages.prepare(first)); // and the second, behind it
  CHECK(a.pages.prepare(first)->load());
  wait_for(a.pages.prepare(second));
  for (uint32_t layer = 0; layer < layers; ++layer) CHECK(a.resident(layer, window, window));
}

TEST_CASE("a move that needs pages which are made without haste gets them first, and the others "
          "follow") {
  area a;
  constexpr uint32_t window = (2 << 20) / row, slots = layer_bytes / row;
  a.pages.keep_ahead(std::vector<slot_run>{{0, slots}});
  wait_for(a.pages.prepare(std::vector<slot_run>{{2 * window, 2 * window}}));
  for (uint32_t layer = 0; layer < layers; ++layer)
    CHECK(a.resident(layer, 2 * window, 2 * window));
  const auto end = clock::now() + std::chrono::seconds{20};
  while (!a.resident(layers - 1, 0, 2 * window) && clock::now() < end) std::this_thread::yield();
  CHECK(a.resident(layers - 1, 0, 2 * window));
}

TEST_CASE("whoever sleeps until the pages of a move are there is rung then") {
  area a;
  wait_for(a.pages.prepare(std::vector<slot_run>{{0, layer_bytes / row}}));
  const auto end = clock::now() + std::chrono::seconds{20};
  while (a.waiter->rings == 0 && clock::now() < end) std::this_thread::yield();
  CHECK(a.waiter->rings == 1);
}

TEST_CASE(
    "pages that were given back while they were made are not made, and whoever waits is told") {
  area a;
  constexpr uint32_t window = (2 << 20) / row, slots = layer_bytes / row;
  const auto stayed_away = [&] {
    for (uint32_t layer = 0; layer < layers; ++layer)
      if (a.resident(layer, slots - 2 * window, window)
          || a.resident(layer, slots - window, window))
        return false;
    return true;
  };
  // The thread may have made all of them first.
  const auto end = clock::now() + std::chrono::seconds{20};
  bool seen = false;
  while (!seen && clock::now() < end) {
    a.pages.forget();
    REQUIRE(madvise(a.data, layers * layer_bytes, MADV_DONTNEED) == 0);
    const auto first = a.pages.prepare(std::vector<slot_run>{{0, slots - window}});
    const auto second = a.pages.prepare(std::vector<slot_run>{{slots - window, window}});
    a.pages.forget();
    wait_for(first);
    wait_for(second);
    seen = stayed_away();
  }
  CHECK(seen);
  wait_for(a.pages.prepare(std::vector<slot_run>{{0, slots}}));
  for (uint32_t layer = 0; layer < layers; ++layer) CHECK(a.resident(layer, 0, slots));
}

TEST_CASE("memory of other devices is left alone") {
  kv_pages pages{nullptr, layers, layer_bytes, row, nullptr};
  CHECK(pages.prepare(std::vector<slot_run>{{0, 1000}})->load());
}

TEST_CASE("whoever writes into pages that are made resident loses nothing") {
  area a;
  const auto ready = a.pages.prepare(std::vector<slot_run>{{0, layer_bytes / row}});
  uint64_t count = 0;
  while (!ready->load()) std::memcpy(a.data, &++count, sizeof count); // at the first page
  uint64_t seen = 0;
  std::memcpy(&seen, a.data, sizeof seen);
  CHECK(seen == count);
}

TEST_CASE("who has asked for pages may end while they are being made") {
  for (int i = 0; i < 20; ++i) {
    area a;
    a.pages.prepare(std::vector<slot_run>{{0, layer_bytes / row}});
  }
}

} // namespace lamella::gpu::test
