#include "config/nearest.hpp"
#include "config/options.hpp"
#include "config/yaml.hpp"
#include "tests/config/scratch.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace lamella::config;
using lamella::tests::scratch_folder;

namespace {

/// A legal value of an option that is not its default, as the text of a file.
std::string other_value(const option& x) {
  const auto now = x.get(settings{});
  switch (x.kind) {
  case option_kind::boolean:
    return std::get<bool>(now) ? "false" : "true";
  case option_kind::integer:
  case option_kind::bytes:
  case option_kind::seconds: {
    const auto n = now == value{x.maximum} ? x.minimum : x.maximum;
    return to_text(x, value{n});
  }
  case option_kind::address:
    return "127.0.0.7:4321";
  case option_kind::path:
    return "/some/where.txt";
  case option_kind::choice:
    return x.choices.back() == std::get<std::string>(now) ? x.choices.front() : x.choices.back();
  case option_kind::text:
    if (x.key == "traces.endpoint") return "https://collector:4318";
    return x.pattern.empty() ? "some-name" : "host";
  case option_kind::text_list:
    return "[x://one, x://two]"; // also an origin
  }
  return {};
}

/// The file that sets one key.
std::string file_with(const std::string& key, const std::string& text) {
  std::string out = "version: 1\n";
  std::string indent;
  size_t from = 0;
  for (size_t dot; (dot = key.find('.', from)) != std::string::npos; from = dot + 1) {
    out += indent + key.substr(from, dot - from) + ":\n";
    indent += "  ";
  }
  return out + indent + key.substr(from) + ": " + text + "\n";
}

void check_loaded(const loaded& got, const option& x, const std::string& text, origin::kind from) {
  CAPTURE(x.key);
  CAPTURE(text);
  // Rules between keys may speak up (a largest value may not be available); reading must not.
  CHECK(got.problems.size() == check(got.value).size());
  CHECK(to_text(x, x.get(got.value)) == to_text(x, [&] {
          value v;
          if (x.kind == option_kind::text_list)
            v = std::vector<std::string>{"x://one", "x://two"};
          else
            CHECK_FALSE(parse_value(x, text, v).has_value());
          return v;
        }()));
  CHECK(x.get(got.value) != x.get(settings{}));
  REQUIRE(got.origins.contains(x.key));
  CHECK(got.origins.at(x.key).from == from);
  CHECK(got.origins.size() == 1);
}

} // namespace

TEST_CASE("every option has a sentence, a legal default and a name of its own") {
  std::set<std::string> keys;
  std::set<std::string> names;
  for (const auto& x : options()) {
    CAPTURE(x.key);
    CHECK(keys.insert(x.key).second);
    CHECK(names.insert(environment_name(x.key)).second);
    CHECK(x.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string::npos);
    CHECK(x.key.find("__") == std::string::npos);
    CHECK(x.sentence.size() > 10);
    CHECK(x.sentence.back() == '.');
    const auto now = x.get(settings{});
    if (const auto* n = std::get_if<uint64_t>(&now)) {
      CHECK(*n >= x.minimum);
      CHECK(*n <= x.maximum);
    }
    if (x.kind == option_kind::choice) CHECK_FALSE(std::get<std::string>(now).empty());
    if (x.kind == option_kind::bytes) CHECK(x.key.ends_with("bytes"));
    if (x.key.ends_with("_seconds")) CHECK(x.kind == option_kind::seconds);
    if (x.kind == option_kind::seconds) CHECK(x.key.ends_with("_seconds"));
  }
  CHECK(check(settings{}).empty());
}

TEST_CASE("every option goes through a file") {
  const scratch_folder folder;
  for (const auto& x : options()) {
    const auto text = other_value(x);
    inputs from;
    from.file = folder.write("lamella.yaml", file_with(x.key, text));
    check_loaded(load(from), x, text, origin::kind::file);
  }
}

TEST_CASE("every option goes through the environment") {
  const scratch_folder folder;
  for (const auto& x : options()) {
    const auto text = other_value(x);
    auto from = folder.nothing();
    from.environment[environment_name(x.key)] = text;
    check_loaded(load(from), x, text, origin::kind::environment);
  }
}

TEST_CASE("every option goes through --set and through a dedicated flag") {
  const scratch_folder folder;
  for (const auto& x : options()) {
    const auto text = other_value(x);
    auto from = folder.nothing();
    from.set = {x.key + "=" + text};
    check_loaded(load(from), x, text, origin::kind::set);
    from.set.clear();
    from.flags = {{"--flag", x.key, text}};
    check_loaded(load(from), x, text, origin::kind::flag);
  }
}

TEST_CASE("every option of the attention pool can be set in a cell") {
  const scratch_folder folder;
  for (const auto& x : options()) {
    if (!x.key.starts_with("pools.attention.")) continue;
    CAPTURE(x.key);
    const auto name = x.key.substr(x.key.rfind('.') + 1);
    const auto text = other_value(x);
    auto from = folder.nothing();
    from.environment["LAMELLA_POOLS__ATTENTION__CELLS__EAST__" + environment_name(name).substr(8)] =
        text;
    const auto got = load(from);
    CHECK(got.problems.size() == check(got.value).size());
    REQUIRE(got.value.pools.attention.cells.contains("east"));
    value v;
    CHECK_FALSE(parse_value(x, text, v).has_value());
    CHECK(get_in_cell(x, got.value.pools.attention.cells.at("east")) == v);
    CHECK(x.get(got.value) == x.get(settings{}));
  }
}

TEST_CASE("what an option writes, it reads back") {
  for (const auto& x : options()) {
    CAPTURE(x.key);
    if (x.kind == option_kind::text_list) continue;
    const auto text = other_value(x);
    value v;
    REQUIRE_FALSE(parse_value(x, text, v).has_value());
    auto written = to_text(x, v);
    if (written.starts_with('"')) written = written.substr(1, written.size() - 2);
    value again;
    CHECK_FALSE(parse_value(x, written, again).has_value());
    CHECK(again == v);
  }
}

TEST_CASE("sizes and durations are read with their units") {
  const auto& bytes = *find_option("http.max_body_bytes");
  const auto& seconds = *find_option("http.sse_ping_seconds");
  const auto read = [](const option& x, const std::string& text) -> uint64_t {
    value v;
    const auto wrong = parse_value(x, text, v);
    CAPTURE(text);
    REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
    return std::get<uint64_t>(v);
  };
  CHECK(read(bytes, "2048") == 2048);
  CHECK(read(bytes, "16MiB") == 16u << 20);
  CHECK(read(bytes, "16 MiB") == 16u << 20);
  CHECK(read(bytes, "1.5KiB") == 1536);
  CHECK(read(bytes, "2MB") == 2'000'000);
  CHECK(read(bytes, "1GiB") == 1u << 30);
  CHECK(read(seconds, "2s") == 2000);
  CHECK(read(seconds, "500ms") == 500);
  CHECK(read(seconds, "0.25") == 250);
  CHECK(read(seconds, "5m") == 300'000);
  CHECK(read(seconds, "1h") == 3'600'000);
  CHECK(to_text(seconds, value{uint64_t{1500}}) == "1.5");
  CHECK(to_text(seconds, value{uint64_t{90'000}}) == "90");
  CHECK(to_text(bytes, value{uint64_t{1} << 20}) == "1MiB");
  CHECK(to_text(bytes, value{uint64_t{1'000'001}}) == "1000001");
}

TEST_CASE("whole numbers of bytes are exact beyond 2^53") {
  const auto& x = *find_option("kv.bytes");
  value v;
  const auto wrong = parse_value(x, "70368744177664", v); // 64 TiB, the largest
  CHECK_FALSE(wrong.has_value());
  CHECK(v == value{uint64_t{70368744177664}});
  CHECK(parse_value(x, "70368744177665", v).has_value());
  CHECK(parse_value(x, "18446744073709551616", v).has_value());
  CHECK(parse_value(x, "16777216TiB", v).has_value()); // 2^64 would wrap to 0
}

TEST_CASE("the nearest word is found across typical slips, and only then") {
  const std::vector<std::string> known{"listen", "max_body_bytes", "probes", "members"};
  CHECK(nearest("lisen", known) == "listen");
  CHECK(nearest("lsiten", known) == "listen");
  CHECK(nearest("max_body_byte", known) == "max_body_bytes");
  CHECK(nearest("member", known) == "members");
  CHECK_FALSE(nearest("temperature", known).has_value());
  CHECK_FALSE(nearest("", known).has_value());
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ab", "ba") == 1);
}

TEST_CASE("addresses are taken apart, and loopback is known") {
  const auto v4 = parse_address("127.0.0.1:8000");
  REQUIRE(v4);
  CHECK(v4->host == "127.0.0.1");
  CHECK(v4->port == 8000);
  const auto v6 = parse_address("[::1]:0");
  REQUIRE(v6);
  CHECK(v6->host == "::1");
  for (const char* bad : {"", ":80", "host", "host:", "host:65536", "host:-1", "host:8 0", "a b:80",
                          "[::1:80", "[]:80", "::1:80", "host:80x", "ho/st:80"})
    CHECK_MESSAGE(!parse_address(bad), bad);
  for (const char* near : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) CHECK(is_loopback(near));
  for (const char* far : {"0.0.0.0", "::", "10.0.0.1", "127.example.org", "example.org"})
    CHECK_FALSE(is_loopback(far));
}

TEST_CASE("a collector of traces is a URL to which a route can be added") {
  for (const char* good :
       {"", "http://127.0.0.1:4318", "https://c.example.org", "http://[::1]:1/otel"})
    CHECK(check_collector(good).empty());
  for (const char* bad : {"127.0.0.1:4318", "grpc://c:4317", "http://", "http://:4318",
                          "http://c:0", "http://c:99999", "http://c:x", "http://u@c",
                          "http://c/?a=b", "http://a b", "http://c:4318/v1/traces"}) {
    CAPTURE(bad);
    CHECK_FALSE(check_collector(bad).empty());
  }
}
