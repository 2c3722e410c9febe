// Descriptors of workers: links have them, and links end with their epoch. However often workers
// are lost and come back, there are no more than after the first time.
#include "tests/actors/worker/joined.hpp"

#include <filesystem>

namespace lamella::actors::test {

using namespace std::chrono_literals;

using config::placement;
using scheduler::worker_role;

namespace {

/// Of this process, in which all workers of the test are.
size_t open_descriptors() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(
      std::distance(fs::directory_iterator{"/proc/self/fd"}, fs::directory_iterator{}));
}

config::settings pool_with_parity() {
  auto x = tiny_settings();
  x.pools.model.placement = x.pools.attention.placement = placement::remote;
  x.pools.attention.members = 3;
  x.pools.attention.parity = true;
  x.pools.attention.spares = 1;
  x.pools.model.threads = x.pools.attention.threads = 1;
  return x;
}

/// The worker that has that part of the open epoch; empty: none.
std::string named(const json_value& status, const std::string& part) {
  for (size_t i = 0; i < size_at(status, "workers"); ++i) {
    const auto worker = at(status, "workers." + std::to_string(i));
    if (text_at(worker, "part") == part) return text_at(worker, "name");
  }
  return {};
}

} // namespace

TEST_CASE(
    "I6 workers that are lost and replaced, shards by their parity too, leave no descriptor") {
  for (const auto tier : {config::transport::shm, config::transport::tcp}) {
    CAPTURE(static_cast<int>(tier));
    joined j{pool_with_parity(), tier};
    std::map<std::string, joined_worker*> by_name;
    int born = 0;
    const auto add = [&](worker_role role) {
      const auto name = "w" + std::to_string(born++);
      by_name[name] = &j.add(role, name);
    };
    j.start([&] {
      add(worker_role::model);
      for (int i = 0; i < 5; ++i) add(worker_role::attention);
    });
    const auto whole = [&](const json_value& x) {
      return !named(x, "replica 0").empty() && !named(x, "shard 1").empty()
             && !named(x, "parity").empty() && !named(x, "spare").empty();
    };
    constexpr size_t kinds = 3;
    std::vector<size_t> after;
    // Workers open the connections over which they ask each other one after the other.
    const auto settled = [] {
      size_t last = 0, same = 0;
      CHECK(eventually([&] {
        const auto now = open_descriptors();
        same = now == last ? same + 1 : 0;
        last = now;
        return same >= 300;
      }));
      return last;
    };
    for (size_t round = 0; round < 3 * kinds; ++round) {
      CAPTURE(round);
      const auto answer = j.call("POST", "/v1/completions",
                                 R"({"model":"tiny","prompt":[7,8,9,10,11,12],"max_tokens":20})");
      CHECK(answer.status == 200);
      const auto role = round % kinds == 0 ? worker_role::model : worker_role::attention;
      const auto lost =
          named(j.status_when(whole), role == worker_role::model ? "replica 0" : "shard 1");
      const auto gone = by_name.at(lost);
      j.workers.remove_if([&](const joined_worker& x) { return &x == gone; });
      add(role);
      j.status_when([&](const json_value& x) {
        return whole(x) && named(x, "replica 0") != lost && named(x, "shard 1") != lost;
      });
      CHECK(eventually([&] { return j.call("GET", "/ready").status == 200; }));
      // A replica, a shard and the shard in its place: what each of them left is not more the next
      // time.
      size_t now = settled();
      if (round >= kinds)
        CHECK_MESSAGE(
            eventually([&] { return (now = open_descriptors()) <= after[round - kinds]; }),
            now << " descriptors, and " << after[round - kinds] << " the last time");
      after.push_back(now);
    }
  }
}

} // namespace lamella::actors::test
