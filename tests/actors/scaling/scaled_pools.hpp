/// AUTOSCALER on virtual time, between stand-ins that say what a test wants.
#pragma once

#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/scaling/autoscaler.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/membership/stand_in.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

/// A MEMBERSHIP that says what the test wants and does what it is told, or refuses.
struct membership_book {
  system_status status;
  std::vector<pool_resize> resizes;
  bool refuses = false, begins = true, rolls_back = false;

  membership_book() {
    status.changes = {{"model", 1, 1, "none", {}},
                      {"attention", 2, 2, "none", {}},
                      {"prefill", 1, 1, "none", {}}};
  }
  pool_change& change_of(const std::string& pool) {
    return *std::ranges::find(status.changes, pool, [](const pool_change& x) { return x.pool; });
  }
  caf::result<pool_change> resize(const pool_resize& x) {
    resizes.push_back(x);
    if (refuses) return caf::make_error(ec::resize_refused, "test");
    auto& change = change_of(x.pool);
    const auto now = change.state == "rolled back" ? change.from : change.to;
    if (begins) change = {x.pool, now, x.members, "under way", {}};
    const auto answer = change;
    if (rolls_back) change = {x.pool, answer.from, x.members, "rolled back", "nobody came"};
    return answer;
  }
  void end(const std::string& pool, const char* how) { change_of(pool).state = how; }
};

inline auto answers_of(const std::shared_ptr<membership_book>& book) {
  membership_answers x;
  x.resize = [book](const pool_resize& question) { return book->resize(question); };
  x.status = [book] { return book->status; };
  return x;
}

struct scaled : stage {
  std::shared_ptr<membership_book> members = std::make_shared<membership_book>();
  std::shared_ptr<allocator_book> allocator = std::make_shared<allocator_book>();
  std::shared_ptr<scheduler_book> scheduler = std::make_shared<scheduler_book>();
  std::shared_ptr<load_window> load = std::make_shared<load_window>();
  std::shared_ptr<net::metrics> metrics = std::make_shared<net::metrics>(net::metrics::settings{});
  std::shared_ptr<service> server = std::make_shared<service>(tiny_service());
  config::settings options;
  autoscaler_actor scaler;
  uint64_t busy_seconds = 0;

  scaled() {
    auto& pool = options.pools.attention;
    pool.partition = config::partition::requests;
    pool.placement = config::placement::local;
    pool.members = 2;
    pool.most = 4;
    server->scheduler = spawn(stand_in_scheduler(scheduler));
    server->allocator = spawn(stand_in_allocator(allocator));
    server->batches.resize(2);
    use(0.6);
  }
  ~scaled() { end_all(); }

  void begin(bool serves = true) {
    autoscaler_config c;
    c.members = spawn(stand_in_membership(answers_of(members)));
    c.newest = [this, serves] { return serves ? service_ptr{server} : service_ptr{}; };
    c.load = load;
    c.metrics = metrics;
    c.options = options;
    c.kv_heads = 8;
    scaler = start_autoscaler(system, std::move(c));
    owned.emplace_back(caf::actor_cast<caf::strong_actor_ptr>(scaler));
    settle();
  }
  /// Of two members each, in a pool of up to eight.
  void have_two_cells() {
    auto& pool = options.pools.attention;
    pool.partition = config::partition::heads;
    pool.most = 8;
    for (const char* name : {"far", "near"}) {
      auto& cell = pool.cells[name];
      cell = pool;
      cell.members = 2;
    }
  }
  /// Share of the slots of each member.
  void use(double share) {
    allocator->usage.slots = {1000, 1000};
    allocator->usage.used.assign(2, static_cast<uint32_t>(1000 * share));
  }
  void pass(caf::timespan time) { advance(time, 100ms); }
  bool wishes(const std::string& pool, uint32_t count) const {
    return metrics->scrape().body.find("lamella_pool_wish{pool=\"" + pool + "\"} "
                                       + std::to_string(count) + "\n")
           != std::string::npos;
  }
  /// Late tokens for so many seconds, while each iteration keeps a replica and each of two shards
  /// busy for so many milliseconds.
  void be_late(uint64_t seconds, uint64_t replica_ms, uint64_t shard_ms) {
    members->status.workers.resize(3);
    for (uint64_t i = 0; i < seconds; ++i) {
      busy_seconds += 1;
      for (auto& x : members->status.workers) {
        const bool replica = &x == members->status.workers.data();
        x.role = replica ? "model" : "attention";
        x.seat = x.role + "/" + std::to_string(&x - members->status.workers.data());
        const auto ms = replica ? replica_ms : shard_ms;
        x.work = {100 * busy_seconds, 0, 100 * busy_seconds * ms * 1'000'000};
      }
      for (int k = 0; k < 100; ++k) load->token_gap(sched.clock().now(), 80ms);
      load->tokens(sched.clock().now(), 100);
      pass(1s);
    }
  }
  std::vector<uint32_t> asked() const {
    std::vector<uint32_t> sizes;
    for (const auto& x : members->resizes) sizes.push_back(x.members);
    return sizes;
  }
};

using sizes = std::vector<uint32_t>;

} // namespace lamella::actors::test
