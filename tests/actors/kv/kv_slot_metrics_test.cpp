// What metrics tell of the slots of an attention pool.
#include "actors/kv/kv_allocator.hpp"
#include "actors/protocol/kv.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

/// An allocator with metrics: two shards by heads, and one with their parity.
struct numbered : stage {
  std::shared_ptr<net::metrics> metrics;
  std::vector<attention_shard_actor> shards;
  kv_allocator_actor allocator;
  uint64_t epoch = 0;

  numbered() {
    net::metrics::settings options;
    for (const char* name : {"attention-0", "attention-1", "attention-2"})
      options.workers.push_back({"attention", name});
    metrics = std::make_shared<net::metrics>(options);
    kv_allocator_config c;
    c.tables = {{{{"attention-0", "attention-1"}, 54, "attention-2", true}}};
    c.metrics = metrics;
    for (int i = 0; i < 3; ++i)
      shards.push_back(spawn(stand_in_shard(std::make_shared<shard_book>())));
    allocator = spawn(kv_allocator, c);
    adopt();
  }
  ~numbered() { end_all(); }

  void adopt(bool parity_is_new = false) {
    caf::anon_send(allocator, kv_adopt{++epoch, shards, {{}, {}, tables_if(parity_is_new)}});
    settle();
  }
  bool reserve(kv_need need) {
    auto answer = ask<kv_grant>(allocator, kv_reserve{{need}, 0, false, epoch});
    settle();
    return answer->came && !answer->error;
  }

  kv_usage usage() {
    auto answer = ask<kv_usage>(allocator, status_atom_v);
    settle();
    return answer->value;
  }
  /// free, used, parity, orphan
  std::vector<int> slots(const std::string& worker) const {
    const auto page = metrics->scrape().body;
    std::vector<int> result;
    for (const std::string state : {"free", "used", "parity", "orphan"}) {
      const auto series =
          "lamella_kv_slots{role=\"attention\",state=\"" + state + "\",worker=\"" + worker + "\"} ";
      const auto at = page.find(series);
      result.push_back(at == std::string::npos ? -1 : std::stoi(page.substr(at + series.size())));
    }
    return result;
  }
};

using slots = std::vector<int>;

} // namespace

TEST_CASE("V-M11 every shard of a pool by heads is told of with the slots of the one table") {
  numbered w;
  REQUIRE(w.reserve({seq(1), 27, {}, 0}));
  CHECK(w.slots("attention-0") == slots{27, 27, 0, 0});
  CHECK(w.slots("attention-1") == slots{27, 27, 0, 0});
  CHECK(w.slots("attention-2") == slots{27, 0, 27, 0}); // their parity
  const auto page = w.metrics->scrape().body;
  for (const std::string worker : {"attention-0", "attention-1", "attention-2"}) {
    CAPTURE(worker);
    CHECK(page.find("lamella_kv_usage_ratio{role=\"attention\",worker=\"" + worker + "\"} 0.5\n")
          != std::string::npos);
  }
  CHECK(page.find("vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"\"} 0.5\n")
        != std::string::npos);
}

TEST_CASE("V-M11 slots are orphans until their holder speaks in the new epoch, or gives them up") {
  numbered w;
  REQUIRE(w.reserve({seq(1), 20, {}, 0}));
  REQUIRE(w.reserve({seq(2), 7, {}, 0}));
  w.adopt(true);
  CHECK(w.slots("attention-0") == slots{27, 0, 0, 27});
  CHECK(w.slots("attention-2") == slots{27, 27, 0, 0}); // all of it is to be made again
  REQUIRE(w.reserve({seq(1), 20, {}, 0, reserve_mode::resume, 20}));
  CHECK(w.slots("attention-0") == slots{27, 20, 0, 7});
  CHECK(w.usage().orphan == 7);
  w.advance(6s, 1s); // nobody wants the others
  CHECK(w.slots("attention-0") == slots{34, 20, 0, 0});
  caf::anon_send(w.allocator, kv_release{{seq(1)}, w.epoch});
  w.settle();
  CHECK(w.slots("attention-1") == slots{54, 0, 0, 0});
}

TEST_CASE("V-M11 parts that a smaller pool does not have tell of no slots any more") {
  numbered w;
  kv_adopt x{++w.epoch, w.shards, {}};
  x.takes.tables = {{{{"attention-0"}, 54, "attention-1", true}}};
  caf::anon_send(w.allocator, x);
  w.settle();
  CHECK(w.slots("attention-0") == slots{54, 0, 0, 0});
  CHECK(w.slots("attention-2") == slots{0, 0, 0, 0});
}

} // namespace lamella::actors::test
