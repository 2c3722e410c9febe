// The status of a running server as tables.
#include "cli/client/status_page.hpp"

#include "tests/cli/client/fake_admin.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <sstream>

using lamella::parse_json;
using lamella::cli::status_page;

TEST_CASE("cells have rows of their own under their pool, with their free and used slots") {
  const auto page = status_page(parse_json(R"({
    "epochs": {"attention/main": 4},
    "pools": [{"name": "main", "members": 3, "partition": "cells",
               "slots": {"free": 60, "used": 30, "cached": 10, "parity": 0, "orphan": 0},
               "cells": [{"name": "far", "members": 2, "partition": "heads", "used": 25,
                          "total": 70},
                         {"name": "old", "members": 1, "partition": "heads", "used": 5}]}]})"));
  const auto row = [&](const std::string& name) {
    const auto at = page.find(name);
    REQUIRE(at != std::string::npos);
    std::istringstream words{page.substr(at, page.find('\n', at) - at)};
    return std::vector<std::string>{std::istream_iterator<std::string>{words}, {}};
  };
  CHECK(row("main/far")
        == std::vector<std::string>{"main/far", "-", "2", "heads", "45", "25", "-", "-", "-"});
  CHECK(row("main/old")
        == std::vector<std::string>{"main/old", "-", "1", "heads", "-", "5", "-", "-", "-"});
}

TEST_CASE("whoever asks another listener for the status is told of --admin") {
  lamella::tests::fake_admin admin;
  admin.answers["GET /admin/status"] = {{404, R"({"error":{"message":"no such path"}})"}};
  const auto got = admin.run("status");
  CHECK(got.code == 1);
  CHECK(got.err.find("no such path (HTTP 404)") != std::string::npos);
  CHECK(got.err.find("hint: --admin must be the admin.listen") != std::string::npos);
}
