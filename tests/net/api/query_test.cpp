// Queries: what a route does not know is refused, or told.
#include "net/api/query.hpp"
#include "net/http/api_error.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace lamella::net;

namespace {

constexpr std::array<std::string_view, 2> known{"after", "wait"};

api_error error_of(std::string_view query, std::span<const std::string_view> names = known) {
  try {
    check_query(query, names, "GET /admin/events");
  } catch (const api_error& error) {
    return error;
  }
  api_error none;
  none.status = 200;
  return none;
}

} // namespace

TEST_CASE("a query that a route knows is taken") {
  for (const char* query : {"", "after=1", "after=1&wait=2", "wait=%31&after", "&after=1&"})
    CHECK_MESSAGE(error_of(query).status == 200, query);
}

TEST_CASE("a name that a route does not know is named with those that it knows") {
  const auto error = error_of("after=1&sinse=5");
  CHECK(error.status == 400);
  CHECK(error.code == "unknown_parameter");
  CHECK(error.param == "sinse");
  CHECK(error.message == "unknown query parameter 'sinse': GET /admin/events takes: after, wait");
  CHECK(error_of("a=1", {}).message
        == "unknown query parameter 'a': GET /admin/events takes no query");
  CHECK(error_of("After=1").status == 400);
  CHECK(error_of("=1").status == 400);
  CHECK(error_of(std::string(5000, 'x')).message.size() < 200);
}

TEST_CASE("a name that comes twice and a broken escape are refused") {
  CHECK(error_of("after=1&after=2").message.find("twice") != std::string::npos);
  for (const char* query : {"after=%", "after=%4", "after=%zz", "wait=%00"})
    CHECK_MESSAGE(error_of(query).code == "invalid_value", query);
}

TEST_CASE("what public routes do not know is told, a few names at a time") {
  CHECK(unknown_in_query("").empty());
  CHECK(unknown_in_query("beta=true&api-version=2026-01-01").empty());
  CHECK(unknown_in_query("stream=true&x&x=2") == std::vector<std::string>{"?stream", "?x"});
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a" + std::to_string(i) + "&";
  CHECK(unknown_in_query(many).size() == 16);
  CHECK(unknown_in_query(std::string(5000, 'x'))[0].size() == 64);
}

TEST_CASE("a query that asks for a stream is refused by the name of its field") {
  for (const char* query :
       {"stream=true", "a=1&stream=true", "stream", "starting_after=5&stream=1"})
    try {
      refuse_stream_in_query(query);
      FAIL(query);
    } catch (const api_error& error) {
      CHECK(error.status == 400);
      CHECK(error.code == "unsupported_parameter");
      CHECK(error.param == "stream");
    }
  for (const char* query : {"", "stream=false", "include=stream", "a=1"})
    CHECK_NOTHROW(refuse_stream_in_query(query));
}
