// Attention cells: what they inherit, what each has of its own, and what they cannot have.
#include "tests/config/loading.hpp"

#include <doctest/doctest.h>

using namespace lamella::config;
using namespace lamella::config::test;

TEST_CASE("cells inherit what they do not say") {
  const scratch_folder folder;
  const auto got = load_text(folder, "version: 1\n"
                                     "pools:\n"
                                     "  attention:\n"
                                     "    cells:\n"
                                     "      east: {members: 3}\n"
                                     "      west:\n"
                                     "    partition: requests\n"
                                     "    kv_bytes: 2GiB\n");
  const auto pools = got.value.pools.attention.resolved();
  REQUIRE(pools.size() == 2);
  CHECK(pools.at("east").members == 3);
  CHECK(pools.at("west").members == 1);
  for (const auto& [name, pool] : pools) {
    CHECK(pool.partition == partition::requests);
    CHECK(pool.kv_bytes == uint64_t{2} << 30);
  }
  const auto plain = settings{}.pools.attention.resolved();
  REQUIRE(plain.size() == 1);
  CHECK(plain.contains("main"));
}

TEST_CASE("cells have sizes, devices, partitions, placements and parity of their own") {
  const scratch_folder folder;
  const auto with = [&](const std::string& cells, const std::string& more = "") {
    return load_text(folder, "version: 1\npools: {attention: {placement: local" + more
                                 + ", cells: {" + cells + "}}}\n");
  };
  const auto two = with("a: {members: 3, kv_bytes: 1GiB}, b: {members: 0}");
  CHECK(two.problems.empty());
  CHECK(two.value.pools.attention.all_members() == 3);
  CHECK(says(with("a: {members: 0}, b: {members: 0}"), "give one of its cells 1 or more"));
  CHECK(says(load_text(folder, "version: 1\npools: {attention: {members: 0}}\n"), "at least one"));
  for (const char* own : {"spares: 1", "threads: 3", "placement: in_process"}) {
    CAPTURE(own);
    const auto got = with(std::string{"a: {}, b: {"} + own + "}");
    CHECK(got.problems.empty());
    const bool apart = std::string{own} != "spares: 1";
    CHECK(got.value.pools.attention.seats_of("b") == (apart ? "b" : ""));
    CHECK(got.value.pools.attention.seats_of("a").empty());
  }
  CHECK(with("a: {}, b: {placement: in_process}").value.pools.any(placement::in_process));
  CHECK_FALSE(with("b: {placement: in_process}").value.pools.attention.any(placement::local));
  CHECK(says(with("a: {}, b: {placement: remote}"), "control.secret_file"));
  // Bits must not depend on the cell, nor slots on an unknown memory.
  CHECK(
      says(with("a: {}, b: {device: \"cuda:1\", kv_bytes: 1GiB}"), "give all cells a CUDA device"));
  const std::string cuda = "a: {device: \"cuda:0\", kv_bytes: 1GiB}, b: {device: \"cuda:1\"";
  CHECK(with(cuda + ", kv_bytes: 1GiB}").problems.empty());
  CHECK(says(with(cuda + "}"), "set pools.attention.cells.b.kv_bytes"));
  CHECK(says(with(cuda + ", placement: in_process}"), "cells on several devices share no memory"));
  CHECK(says(with("a: {}, b: {placement: in_process, spares: 1}"), "cannot have spares"));
  const auto cut = with("a: {}, b: {partition: requests}");
  CHECK(cut.problems.empty());
  CHECK(cut.value.pools.attention.cells.at("a").partition == partition::heads);
  CHECK(cut.value.pools.attention.cells.at("b").partition == partition::requests);
  const auto inherited =
      with("a: {}, b: {partition: heads, parity: true}", ", partition: requests");
  CHECK(inherited.problems.empty());
  CHECK(inherited.value.pools.attention.cells.at("a").partition == partition::requests);
  CHECK(
      says(with("a: {}, b: {partition: requests, parity: true}"), "parity needs partition: heads"));
  // More shards by heads have no more slots where nothing says how many one has.
  const auto grows = with("a: {partition: requests}, b: {}", ", max: 3");
  CHECK(says(grows, "set pools.attention.kv_bytes"));
  CHECK(with("a: {partition: requests}, b: {kv_bytes: 1GiB}", ", max: 3").problems.empty());
  // Parity is of all cells, of one, or of all but one.
  const auto parity_of = [&](const std::string& cells, const std::string& more = "") {
    const auto got = with(cells, more);
    CHECK(got.problems.empty());
    const auto& pool = got.value.pools.attention;
    CHECK(pool.any_parity() == (pool.cells.at("a").parity || pool.cells.at("b").parity));
    return std::pair{pool.cells.at("a").parity, pool.cells.at("b").parity};
  };
  CHECK(parity_of("a: {}, b: {}") == std::pair{false, false});
  CHECK(parity_of("a: {}, b: {parity: true}") == std::pair{false, true});
  CHECK(parity_of("a: {}, b: {}", ", parity: true") == std::pair{true, true});
  CHECK(parity_of("a: {parity: false}, b: {}", ", parity: true") == std::pair{false, true});
  CHECK(says(with("a: {}, b: {placement: in_process, parity: true}"),
             "shards of this process are lost together"));
  CHECK(says(load_text(folder, "version: 1\npools: {attention: {placement: remote, max: 3, "
                               "kv_bytes: 1GiB, cells: {a: {}}}}\n"),
             "follows workers of other hosts"));
  CHECK(says(with("a: {}, b: {placement: remote}", ", max: 3, kv_bytes: 1GiB"),
             "follows workers of other hosts"));
  CHECK(with("a: {}, b: {}", ", max: 3, kv_bytes: 1GiB").problems.empty());
  CHECK(says(with("a: {}, b: {}, c: {}, d: {}", ", max: 3, kv_bytes: 1GiB"), "more than max 3"));
  // The autoscaler's bounds are of the pool, and of a cell where it has its own.
  const std::string scaled = ", max: 6, min: 2, kv_bytes: 1GiB";
  const auto bounds = with("a: {min: 1, max: 3}, b: {}", scaled).value.pools.attention;
  CHECK(bounds.most == 6);
  CHECK(bounds.cells.at("a").least == 1);
  CHECK(bounds.cells.at("a").most == 3);
  CHECK(bounds.cells.at("b").least == 0);
  CHECK(bounds.cells.at("b").most == 0);
  CHECK(says(with("a: {max: 3}, b: {}"), "no effect without a max of the pool"));
  CHECK(says(with("a: {min: 2}, b: {}", scaled), "fewer than min 2"));
  CHECK(says(with("a: {members: 3, max: 1}, b: {}", scaled), "more than max 1"));
  CHECK(says(load_text(folder, "version: 1\npools: {attention: {min: 0}}\n"), "set min to 1"));
}
