// The supervisor tree of a running server as people see it.
#include "cli/client/status_tree.hpp"

#include <doctest/doctest.h>

using lamella::parse_json;
using lamella::cli::status_tree;

TEST_CASE("The tree shows every seat under its pool, the missing ones among them") {
  const auto status = parse_json(R"({
    "version": 1, "epochs": {"attention/main": 9}, "gateway": {"requests": 3},
    "pipeline": {"restarts": 8}, "requests": {"running": 4, "waiting": 1, "recovering": 0},
    "workers": [
      {"name": "attention-0", "role": "attention", "seat": "attention/0", "incarnation": 2,
       "pid": 12, "host": "a", "state": "live", "device": "host", "peers": []},
      {"name": "model-10", "role": "model", "seat": "model/10", "incarnation": 1, "pid": 13,
       "host": "a", "state": "loading", "device": "", "peers": []},
      {"name": "model-2", "role": "model", "seat": "model/2", "incarnation": 4, "pid": 14,
       "host": "b", "state": "live", "device": "host", "slow": true, "peers": []}],
    "missing": [{"role": "model", "seat": "model/3", "incarnation": 2, "state": "failing",
                 "trouble": "exit code 69, 6 times in a row"},
                {"role": "attention", "seat": "attention/1", "incarnation": 0}],
    "pools": [{"name": "main", "members": 2, "partition": "heads",
               "slots": {"free": 60, "used": 30, "cached": 10}}]})");
  CHECK(status_tree(status) == R"(node
├─ gateway  3 requests
├─ membership  epoch 9, 3 of 5 seats taken
└─ pipeline  8 restarts, sequences: 4 running, 1 waiting
   ├─ pool model
   │  ├─ model/2   live     incarnation 4, 3 restarts, pid 14 on b, device host, slow
   │  ├─ model/3   failing  incarnation 2, 1 restart, exit code 69, 6 times in a row
   │  └─ model/10  loading  incarnation 1, 0 restarts, pid 13 on a
   └─ pool attention/main by heads, 30 slots used, 10 cached, 60 free
      ├─ attention/0  live     incarnation 2, 1 restart, pid 12 on a, device host
      └─ attention/1  missing  incarnation 0, 0 restarts
)");
}

TEST_CASE("L-M26 The tree says which seat holds the parity, and of how many slots") {
  const auto status = parse_json(R"({
    "workers": [
      {"role": "attention", "seat": "attention/0", "incarnation": 1, "state": "live",
       "part": "spare"},
      {"role": "attention", "seat": "attention/1", "incarnation": 1, "state": "live",
       "part": "shard 0"},
      {"role": "attention", "seat": "attention/2", "incarnation": 2, "state": "live",
       "part": "parity", "cell": "near"}],
    "pools": [{"name": "main", "members": 1, "partition": "heads",
               "slots": {"free": 70, "used": 30, "parity": 20}}]})");
  const auto tree = status_tree(status);
  CHECK(tree.find(R"(pool attention/main by heads, 30 slots used, 0 cached, 70 free, 20 with parity
      ├─ attention/0  live     incarnation 1, 0 restarts, spare
      ├─ attention/1  live     incarnation 1, 0 restarts, shard 0
      └─ attention/2  live     incarnation 2, 1 restart, parity of near
)") != std::string::npos);
}

TEST_CASE("reliability A8: the tree shows supervisors, what they may restart, and their children") {
  const auto tree = status_tree(parse_json(R"({
    "gateway": {"requests": 2}, "pipeline": {"restarts": 1},
    "supervisors": [
      {"name": "node", "strategy": "none", "restarts": {"used": 0, "allowed": 0, "window_s": 0},
       "children": [{"name": "gateway", "role": "", "count": 1}], "more": 0},
      {"name": "child_keeper", "strategy": "one_for_one", "children": [
        {"name": "model-0", "role": "", "count": 1,
         "restarts": {"used": 2, "allowed": 5, "window_s": 30}},
        {"name": "attention-0", "role": "", "count": 0,
         "restarts": {"used": 0, "allowed": 5, "window_s": 30}}], "more": 3},
      {"name": "own_seats", "strategy": "one_for_one",
       "restarts": {"used": 2, "allowed": 5, "window_s": 30}, "children": [], "more": 0},
      {"name": "pipeline", "strategy": "one_for_all",
       "restarts": {"used": 1, "allowed": 5, "window_s": 30}, "children": [
        {"name": "global_scheduler", "role": "model", "count": 1},
        {"name": "batch", "role": "model", "count": 2}], "more": 0}],
    "pools": [{"name": "main"}]})"));
  CHECK(tree == R"(node  no restarts: when one of these exits, the process exits with 70
├─ gateway  2 requests
├─ membership  epoch 0, 0 of 0 seats taken
├─ child keeper  one for one
│  ├─ model-0  2 of 5 restarts in 30 s
│  ├─ attention-0  not running, 0 of 5 restarts in 30 s
│  └─ and 3 more
├─ own seats  one for one, 2 of 5 restarts in 30 s
└─ pipeline  one for all, 1 of 5 restarts in 30 s, 1 restart in all, sequences: 0 running, 0 waiting
   ├─ kv_allocator of pool main
   ├─ global_scheduler (model)
   └─ batch x 2 (model)
)");
}

TEST_CASE("The tree is bounded: of a pool with many seats the rest are counted") {
  std::string workers;
  for (int i = 0; i < 100; ++i)
    workers += (i == 0 ? "" : ",")
               + (R"({"role": "attention", "seat": "attention/)" + std::to_string(i) + "\"}");
  const auto tree = status_tree(parse_json(R"({"workers": [)" + workers + "]}"));
  CHECK(tree.find("attention/63 ") != std::string::npos);
  CHECK(tree.find("attention/64 ") == std::string::npos);
  CHECK(tree.find("└─ and 36 more\n") != std::string::npos);
}

TEST_CASE("A server that says little has a small tree") {
  CHECK(status_tree(parse_json("{}")) == R"(node
├─ gateway  0 requests
├─ membership  epoch 0, 0 of 0 seats taken
└─ pipeline  0 restarts, sequences: 0 running, 0 waiting
)");
}
