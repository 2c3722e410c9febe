// A poster may be a GPU, whose stores between two fences become visible in any order. Here every
// store of a post is recorded, those between fences are shuffled, and the adapter looks after each
// single one. Taking the fences away must be noticed, or the test would prove nothing.
#include "tests/net/rdma/mlx5/support.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <utility>

using namespace lamella::net::mlx5;

namespace {

struct store {
  void* to;
  uint64_t value;
  uint32_t bytes;
};

/// Stores are kept instead of done. A fence starts the next group.
class recorded_stores {
public:
  void payload(void* to, uint64_t value) { add(to, value, 8); }
  void store_block(wqe_block* to, const wqe_block& block) { words(to, block); }
  void release() { groups_.emplace_back(); }
  void store_record(uint32_t* to, uint32_t value) { add(to, value, 4); }
  void store_doorbell(uint64_t* to, uint64_t value) { add(to, value, 8); }
  void push_block(uint64_t* to, const wqe_block& block) { words(to, block); }
  uint32_t load_completion(const uint32_t* from) { return *from; }
  post_status over() { return post_status::timeout; } // one look at the completion is enough

  std::vector<std::vector<store>>& groups() { return groups_; }

private:
  void add(void* to, uint64_t value, uint32_t bytes) {
    groups_.back().push_back({to, value, bytes});
  }
  void words(void* to, const wqe_block& block) {
    uint64_t words[8];
    std::memcpy(words, &block, sizeof words);
    for (int i = 0; i < 8; ++i) add(static_cast<uint64_t*>(to) + i, words[i], 8);
  }
  std::vector<std::vector<store>> groups_{1};
};

enum class way { doorbell, push };

/// Sends `messages` messages with stores in a random order. Returns whether the peer saw each of
/// them whole at the moment its seqno changed, without an error.
bool survives(uint64_t seed, way how, bool with_fences, int messages) {
  lamella::tests::splitmix random{seed};
  test_pair p{{}, 8, 1024};
  auto& q = p.a->queue;
  constexpr uint32_t bytes = 32, to = 512;
  const auto* arrived =
      how == way::push ? reinterpret_cast<uint64_t*>(p.b->bytes() + to + bytes) : &p.b->seqno;
  for (int m = 1; m <= messages; ++m) {
    recorded_stores stores;
    const auto seqno = static_cast<uint64_t>(m);
    for (uint32_t i = 0; i < bytes / 8; ++i) stores.payload(p.a->bytes() + 8 * i, seqno << 8 | i);
    post_status status;
    if (how == way::push) {
      auto& staged = p.a->staged[q.produced & q.mask];
      stores.payload(&staged, seqno);
      status =
          post_pushed(q, 0, to, bytes, {test_end::address(&staged), be32(p.a->staged_key)}, stores);
    } else {
      status = post_message(q, 0, to, bytes, seqno, doorbell::store, stores);
    }
    if (status != post_status::ok) return false;
    auto& groups = stores.groups();
    if (!with_fences) {
      for (size_t g = 1; g < groups.size(); ++g)
        groups[0].insert(groups[0].end(), groups[g].begin(), groups[g].end());
      groups.resize(1);
    }
    for (auto& group : groups) {
      for (size_t i = group.size(); i > 1; --i) std::swap(group[i - 1], group[random.below(i)]);
      for (const auto& s : group) {
        std::memcpy(s.to, &s.value, s.bytes);
        p.drain();
        if (p.hca.report(p.a->place).error) return false;
        if (*arrived == seqno)
          for (uint32_t i = 0; i < bytes / 8; ++i)
            if (p.b->arena[to / 8 + i] != (seqno << 8 | i)) return false;
      }
    }
    if (*arrived != seqno) return false;
  }
  return true;
}

} // namespace

TEST_CASE("mlx5: L-M09 every order of stores that the fences allow delivers every message whole") {
  for (const auto how : {way::doorbell, way::push})
    for (uint64_t seed = 1; seed <= 1500; ++seed) {
      CAPTURE(seed);
      CHECK(survives(seed, how, true, 12));
    }
}

TEST_CASE("mlx5: without fences most orders are noticed") {
  for (const auto how : {way::doorbell, way::push}) {
    int noticed = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) noticed += !survives(seed, how, false, 12);
    CHECK(noticed > 100);
  }
}
