#include "scheduler/scaling_text.hpp"

#include "tests/scheduler/scaling_looks.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <set>

using namespace lamella::scheduler;
using lamella::tests::good_look;

namespace {

scaling_look look_of(const std::string& line) {
  return std::get<scaling_look>(scaling_line_of(line));
}

std::string error_of(const std::string& line) {
  try {
    scaling_line_of(line);
  } catch (const scaling_text_error& e) {
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("a look comes back from its line as it was") {
  auto x = good_look();
  x.at = scaling_seconds{1.0 / 3};
  x.kv_used = 123'456'789.25;
  x.kv_wanted = 81.5;
  x.queue = 7;
  x.queue_age = scaling_seconds{0.1};
  x.pools[scaled_pool::attention].acts = false;
  x.pools[scaled_pool::attention].lower = 5;
  x.pools[scaled_pool::model].wanted = 3;
  const auto line = text_of(x);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(look_of(line) == x);
  x.pools[scaled_pool::prefill] = {}; // not written
  CHECK(text_of(x).find("prefill") == std::string::npos);
  CHECK(look_of(text_of(x)) == x);
}

TEST_CASE("what a look leaves out has its default") {
  const auto x = look_of(R"({"at_seconds":2,"model":{"members":1,"most":4}})");
  CHECK(x.at == scaling_seconds{2});
  CHECK(x.pools[scaled_pool::model].least == 1);
  CHECK(x.pools[scaled_pool::model].acts);
  CHECK_FALSE(x.pools[scaled_pool::attention].exists());
  CHECK(x.batches == 1);
}

TEST_CASE("settings come back from their line, each by its own name and within its bounds") {
  scaling_settings s;
  std::set<std::string> names;
  for (const auto& row : scaling_setting_rows()) {
    CHECK(names.insert(row.name).second);
    CHECK(value_of(s, row) >= row.least);
    CHECK(value_of(s, row) <= row.most);
    const auto before = s;
    set(s, row, row.most);
    CHECK(value_of(s, row) == row.most);
    CHECK_FALSE(s == before);
    const auto read = std::get<scaling_settings>(scaling_line_of(text_of(s)));
    CHECK(read == s);
    CHECK(error_of("{\"settings\":{\"" + std::string{row.name}
                   + "\":" + std::to_string(row.most + 1) + "}}")
              .find(row.name)
          != std::string::npos);
  }
}

TEST_CASE("a line that is no look is refused with what is wrong") {
  CHECK(error_of("") != "");
  CHECK(error_of("[]") != "");
  CHECK(error_of("{}").find("at_seconds is required") != std::string::npos);
  CHECK(error_of(R"({"at_seconds":"1"})").find("at_seconds") != std::string::npos);
  CHECK(error_of(R"({"at_seconds":1,"kv":2})") == "kv is not a key of this line");
  CHECK(error_of(R"({"at_seconds":1,"model":{"size":2}})")
        == "model.size is not a key of this line");
  CHECK(error_of(R"({"at_seconds":1,"model":{"members":-2}})").find("model.members")
        != std::string::npos);
  CHECK(error_of(R"({"settings":{"kv_high":1}})") == "settings.kv_high is not a key of this line");
  CHECK(error_of(R"({"settings":{},"at_seconds":1})") == "at_seconds is not a key of this line");
}
