// Routes and keys: who may ask what.
#include "net/api/api_keys.hpp"
#include "net/api/api_route.hpp"
#include "net/http/api_error.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace lamella::net;

namespace {

int status_for(std::string_view method, std::string_view path) {
  try {
    find_route(method, path);
  } catch (const api_error& error) {
    return error.status;
  }
  return 200;
}

std::string error_of(std::string_view keys) {
  try {
    api_keys::from_text(keys, "keys.txt");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

} // namespace

TEST_CASE("routes are found with and without trailing slash and by their aliases") {
  CHECK(find_route("POST", "/v1/chat/completions").route == api_route::chat_completions);
  CHECK(find_route("POST", "/v1/chat/completions/").route == api_route::chat_completions);
  CHECK(find_route("GET", "/v1/models/").route == api_route::models);
  CHECK(find_route("GET", "/v1/models/a/b").id == "a/b");
  CHECK(find_route("GET", "/v1/models/a%2Fb").id == "a/b");
  CHECK(find_route("POST", "/v1/tokenize").route == api_route::tokenize);
  CHECK(find_route("GET", "/tokenizer_info").route == api_route::tokenizer_info);
  CHECK(find_route("HEAD", "/v2/health/ready").route == api_route::ready);
  CHECK(find_route("DELETE", "/admin/workers/3").id == "workers/3");
  CHECK(find_route("OPTIONS", "/v1/completions").route == api_route::completions);
  CHECK(find_route("OPTIONS", "/v1/completions").allow == "POST, OPTIONS");
  CHECK(find_route("OPTIONS", "/v1/models/x").allow == "GET, HEAD, OPTIONS");
  CHECK(find_route("POST", "/v1/responses/").route == api_route::responses);
  CHECK(find_route("DELETE", "/v1/responses/resp_1").id == "resp_1");
  CHECK(find_route("GET", "/v1/responses/resp_1").route == api_route::response);
  CHECK(find_route("POST", "/v1/messages/count_tokens").route == api_route::count_tokens);
  CHECK(status_for("POST", "/v1/responses/resp_1") == 405);
  CHECK(status_for("GET", "/v1/messages") == 405);
  for (const char* path : {"/", "/chat", "/chat/", "/ui/chat.js"})
    CHECK(find_route("GET", path).route == api_route::page);
  CHECK(status_for("POST", "/") == 405);
  for (const char* path : {"/ui", "/ui/", "/ui/a/b", "/ui/%00", "/index.html", "//"})
    CHECK_MESSAGE(status_for("GET", path) == 404, path);
  CHECK(route_name(api_route::tokenize) == "/tokenize");
  CHECK(route_name(api_route::response) == "/v1/responses/{id}");
  CHECK(route_name(api_route::model) == "/v1/models/{id}");
}

TEST_CASE("a route of another API says what does the same here") {
  const auto message = [](std::string_view method, std::string_view path) -> std::string {
    try {
      find_route(method, path);
    } catch (const api_error& error) {
      CHECK(error.status == 404);
      return error.message;
    }
    return {};
  };
  for (const char* path : {"/api/chat", "/api/generate"})
    CHECK_MESSAGE(message("POST", path).find("/v1/chat/completions") != std::string::npos, path);
  for (const char* path : {"/v1/responses/resp_1/cancel", "/v1/responses/input_tokens",
                           "/v1/responses/compact", "/v1/responses/compact/"})
    CHECK_MESSAGE(message("POST", path).find("POST /v1/responses,") != std::string::npos, path);
  CHECK(message("GET", "/v1/messages/batches").find("POST /v1/messages ") != std::string::npos);
  for (const char* path : {"/v1/responsesx", "/v1/batches", "/apix"})
    CHECK_MESSAGE(message("POST", path).find("this server has") == std::string::npos, path);
}

TEST_CASE("unknown routes are 404 and wrong methods 405 with what is allowed") {
  for (const char* path : {"//", "/v1", "/v1/chat", "/v1/chat/completions/x", "//v1/models",
                           "/v1/models/%", "/v1/models/%00", "/V1/models", "*"})
    CHECK(status_for("GET", path) == 404);
  CHECK(status_for("GET", "/v1/completions") == 405);
  CHECK(status_for("POST", "/v1/models") == 405);
  CHECK(status_for("PUT", "/health") == 405);
  try {
    find_route("POST", "/metrics");
    FAIL("accepted");
  } catch (const api_error& error) {
    CHECK(error.allow == "GET, HEAD, OPTIONS");
  }
}

TEST_CASE("percent escapes and query values are decoded strictly") {
  CHECK(percent_decode("a%20%c3%A9") == "a é");
  for (const char* bad : {"%", "%4", "%zz", "a%0", "%00"}) CHECK(!percent_decode(bad));
  CHECK(query_value("verbose=1&x=a%26b&y", "x") == "a&b");
  CHECK(query_value("verbose=1&x=a%26b&y", "y") == "");
  CHECK(!query_value("verbose=1", "v"));
  CHECK(!query_value("", "v"));
}

TEST_CASE("keys come from a file with comments and are found by all three headers") {
  const auto keys = api_keys::from_text("# team a\nlam_0123456789\r\n\n  lam_abcdefghij  \n", "k");
  CHECK(keys.size() == 2);
  CHECK(keys.contains("lam_0123456789"));
  CHECK(keys.contains("lam_abcdefghij"));
  CHECK_FALSE(keys.contains("lam_0123456788"));
  CHECK_FALSE(keys.contains(""));
  CHECK_FALSE(keys.contains(std::string(10'000, 'x')));
  CHECK(keys.admits({{"Authorization", "Bearer lam_0123456789"}}));
  CHECK(keys.admits({{"authorization", "bearer  lam_0123456789"}}));
  CHECK(keys.admits({{"api-key", "lam_abcdefghij"}}));
  CHECK(keys.admits({{"authorization", "Bearer none"}, {"X-Api-Key", "lam_abcdefghij"}}));
  CHECK_FALSE(keys.admits({}));
  CHECK_FALSE(keys.admits({{"authorization", "Bearer"}}));
  CHECK_FALSE(keys.admits({{"authorization", "lam_0123456789"}}));
  CHECK_FALSE(keys.admits({{"authorization", "Basic lam_0123456789"}}));
  CHECK(api_keys().admits({}));
  CHECK(api_keys().admits({{"authorization", "Bearer EMPTY"}}));
}

TEST_CASE("a caller has the same number for as long as the process lives, and others have others") {
  const std::string text = "lam_0123456789\nlam_abcdefghij\n";
  const auto keys = api_keys::from_text(text, "k"), again = api_keys::from_text(text, "k");
  const auto first = keys.caller({{"authorization", "Bearer lam_0123456789"}});
  const auto second = keys.caller({{"x-api-key", "lam_abcdefghij"}});
  CHECK(first != 0);
  CHECK(second != 0);
  CHECK(first != second);
  CHECK(again.caller({{"api-key", "lam_0123456789"}}) == first); // after a reload
  CHECK(keys.caller({}) == 0);
  CHECK(keys.caller({{"authorization", "Bearer lam_unknown00"}}) == 0);
  CHECK(api_keys().caller({{"authorization", "Bearer none"}}) == 0); // nobody is asked for one

  CHECK(cache_scope(first, "") == first);
  CHECK(cache_scope(0, "") == 0);
  CHECK(cache_scope(first, "a") != first);
  CHECK(cache_scope(first, "a") == cache_scope(first, "a"));
  CHECK(cache_scope(first, "a") != cache_scope(first, "b"));
  CHECK(cache_scope(first, "a") != cache_scope(second, "a"));
}

TEST_CASE("bad key files are refused with file and line and without the key") {
  CHECK(error_of("") == "keys.txt: contains no API key (one per line, # starts a comment)");
  CHECK(error_of("# only a comment\n").find("no API key") != std::string::npos);
  CHECK(error_of("lam_0123456789\nshort\n")
        == "keys.txt:2: an API key must have 8 to 256 characters, this one has 5");
  const std::string spaced = error_of("secret value\n");
  CHECK(spaced == "keys.txt:1: an API key consists of visible ASCII characters only");
  CHECK_THROWS_AS(api_keys::from_file("/nonexistent/keys"), std::runtime_error);
  const auto file =
      std::filesystem::temp_directory_path() / ("lamella-keys-" + std::to_string(::getpid()));
  std::ofstream(file) << "lam_0123456789\n";
  CHECK(api_keys::from_file(file).contains("lam_0123456789"));
  std::filesystem::remove(file);
  REQUIRE(mkfifo(file.c_str(), 0600) == 0); // is not waited for
  CHECK_THROWS_AS(api_keys::from_file(file), std::runtime_error);
  std::filesystem::remove(file);
}
