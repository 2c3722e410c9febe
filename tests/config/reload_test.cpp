// What of a new configuration a running process takes.
#include "config/options.hpp"
#include "config/reload.hpp"
#include "tests/config/loading.hpp"

#include <doctest/doctest.h>

using namespace lamella::config;
using namespace lamella::config::test;

namespace {

/// Another allowed value of an option.
value other_value(const option& x, const settings& now) {
  const auto v = x.get(now);
  if (x.kind == option_kind::boolean) return !std::get<bool>(v);
  if (x.kind == option_kind::choice)
    return x.choices.front() == std::get<std::string>(v) ? x.choices.back() : x.choices.front();
  if (x.kind == option_kind::text_list) return std::vector<std::string>{"another"};
  if (x.kind == option_kind::address) return std::string{"127.0.0.1:4711"};
  if (x.kind == option_kind::path || x.kind == option_kind::text) return std::string{"another"};
  const auto* n = std::get_if<uint64_t>(&v);
  return n != nullptr && *n == x.minimum ? x.minimum + 1 : x.minimum;
}

} // namespace

TEST_CASE("a reload takes every live option and no other") {
  settings before;
  before.pools.prefill.placement = placement::local; // with seats of its own
  before.pools.attention.cells["east"] = {};         // that may be cut otherwise
  size_t live = 0;
  for (const auto& x : options()) {
    CAPTURE(x.key);
    auto wanted = before;
    x.set(wanted, other_value(x, before));
    const auto got = take_live(before, wanted);
    REQUIRE(got.changes.size() == 1);
    CHECK(got.changes.front().key == x.key);
    CHECK(got.changes.front().needs_restart == (x.when == reload::restart));
    CHECK((x.get(got.value) == x.get(wanted)) == (x.when == reload::live));
    CHECK(diff(before, got.value).size() == (x.when == reload::live ? 1 : 0));
    live += x.when == reload::live ? 1 : 0;
  }
  CHECK(live >= 20);
  CHECK(take_live(before, before).changes.empty());
}

TEST_CASE("a reload takes the sizes of pools, but not of a prefill pool without seats of its own") {
  const settings before; // prompts run on the replicas
  auto wanted = before;
  wanted.pools.model.members = 2;
  wanted.pools.attention.members = 3;
  wanted.pools.prefill.members = 4;
  const auto got = take_live(before, wanted);
  REQUIRE(got.changes.size() == 3);
  CHECK(got.value.pools.model.members == 2);
  CHECK(got.value.pools.attention.members == 3);
  CHECK(got.value.pools.prefill.members == before.pools.prefill.members);
  for (const auto& x : got.changes) {
    CAPTURE(x.key);
    CHECK(x.needs_restart == (x.key == "pools.prefill.members"));
  }
}

TEST_CASE("a reload takes the members and the memory of a cell") {
  settings before;
  before.pools.attention.cells["east"].members = 2;
  auto wanted = before;
  wanted.pools.attention.cells["east"].members = 0;
  wanted.pools.attention.cells["east"].kv_bytes = 1 << 30;
  const auto got = take_live(before, wanted);
  CHECK(got.value.pools.attention.cells.at("east").members == 0);
  CHECK(got.value.pools.attention.cells.at("east").kv_bytes == 1 << 30);
  for (const auto& x : got.changes) CHECK_FALSE(x.needs_restart);
  CHECK_FALSE(got.violations.empty()); // no member would be left
}

TEST_CASE("a reload takes the partition of a cell; a pool without cells keeps its own") {
  settings before;
  before.pools.attention.cells["east"].least = 0; // as the reader of a file leaves it
  auto wanted = before;
  wanted.pools.attention.cells["east"].partition = partition::requests;
  const auto got = take_live(before, wanted);
  CHECK(got.value.pools.attention.cells.at("east").partition == partition::requests);
  REQUIRE(got.changes.size() == 1);
  CHECK(got.changes[0].key == "pools.attention.cells.east.partition");
  CHECK_FALSE(got.changes[0].needs_restart);
  CHECK(got.violations.empty());
  before.pools.attention.cells.clear();
  wanted = before;
  wanted.pools.attention.partition = partition::requests;
  const auto kept = take_live(before, wanted);
  CHECK(kept.value.pools.attention.partition == partition::heads);
  REQUIRE(kept.changes.size() == 1);
  CHECK(kept.changes[0].needs_restart);
}

TEST_CASE("a reload refuses a partition that the parity of a cell does not go with") {
  settings before;
  auto& cell = before.pools.attention.cells["east"];
  cell.placement = placement::local;
  cell.parity = true;
  auto wanted = before;
  wanted.pools.attention.cells["east"].partition = partition::requests;
  const auto got = take_live(before, wanted);
  REQUIRE_FALSE(got.violations.empty());
  CHECK(got.violations[0].keys.front() == "pools.attention.cells.east.parity");
}

TEST_CASE("a reload checks the rules of the sizes that it would make") {
  settings before;
  before.pools.attention.device = "cuda:0";
  before.batching.batches = 2;
  auto wanted = before;
  wanted.pools.attention.members = 16; // too many streams of one device
  CHECK(take_live(before, before).violations.empty());
  CHECK_FALSE(take_live(before, wanted).violations.empty());
}

TEST_CASE("a reload that breaks a rule together with what stays as it was says so") {
  settings open;
  open.http.listen = "0.0.0.0:8000";
  open.http.api_keys_file = "keys";
  CHECK(check(open).empty());
  const settings closed; // listens on loopback and has no keys: the address needs a restart
  CHECK(check(closed).empty());
  const auto got = take_live(open, closed);
  REQUIRE(got.violations.size() == 1);
  CHECK(got.violations.front().keys
        == std::vector<std::string>{"http.listen", "http.api_keys_file"});
}
