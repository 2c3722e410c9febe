// The strict JSON reader (reliability B4) and the writer.
#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace lamella;

namespace {

std::string repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string syntax_error(std::string_view text, const json_limits& limits = {}) {
  try {
    parse_json(text, limits);
  } catch (const json_syntax_error& error) {
    return error.what();
  }
  return "accepted";
}

template <class F> json_field_error field_error(F&& f) {
  try {
    f();
  } catch (const json_field_error& error) {
    return error;
  }
  return {"accepted", "accepted"};
}

} // namespace

TEST_CASE("JSON values keep their type, order and all 64 bits") {
  const json_value v = parse_json(
      R"( {"b":[1,-2,2.5,true,null,"x\u00e9\ud83d\ude00"],"a":{"n":9223372036854775807,
          "m":-9223372036854775808,"u":18446744073709551615}} )");
  const auto* members = v.get_if<json_value::object>();
  REQUIRE(members);
  CHECK((*members)[0].first == "b");
  CHECK((*members)[1].first == "a");
  CHECK(*v.find("b") == json_value(json_value::array{1, -2, 2.5, true, nullptr, "xé😀"}));
  CHECK(*v.find("a")->find("n")->get_if<int64_t>() == INT64_MAX);
  CHECK(*v.find("a")->find("m")->get_if<int64_t>() == INT64_MIN);
  CHECK(*v.find("a")->find("u")->get_if<uint64_t>() == UINT64_MAX);
  CHECK(v.find("c") == nullptr);
  CHECK(json_value(1).find("c") == nullptr);
}

TEST_CASE("JSON that a lenient parser would change is refused") {
  const std::pair<std::string, std::string> table[] = {
      {R"({"a":1,"a":2})", "\"a\" occurs twice"},
      {R"({"x":{"a":1,"b":2,"\u0061":2}})", "\"a\" occurs twice"},
      {"1e400", "1e400 is beyond the range"},
      {"[-1e999]", "-1e999 is beyond the range"},
      {"NaN", ""},
      {"[Infinity]", ""},
      {"-Infinity", ""},
      {"[1,]", ""},
      {"{\"a\":1,}", ""},
      {"[01]", ""},
      {"[+1]", ""},
      {"[.5]", ""},
      {"[1.]", ""},
      {"'a'", ""},
      {"// c\n1", ""},
      {"/* c */1", ""},
      {"\"a", "text is truncated"},
      {"", "text is empty"},
      {"  ", "text is empty"},
      {"1 2", "follows the value"},
      {"{} x", "follows the value"},
      {R"("\ud800")", ""},
      {R"("\ud800x")", ""},
      {R"("\udc00")", ""},
      {R"("\ud800\ud800")", ""},
      {R"("\x41")", ""},
      {"\"\x80\"", ""},
      {"\"\xC0\xAF\"", ""},
      {"\"\xED\xA0\x80\"", ""},
      {"\"\xF4\x90\x80\x80\"", ""},
      {"\"\xE2\x82\"", ""},
      {"\"a\nb\"", ""},
      {std::string("\"a\0b\"", 5), ""},
      {"\xEF\xBB\xBF{}", ""},
  };
  for (const auto& [text, words] : table) {
    CAPTURE(text);
    const std::string error = syntax_error(text);
    CHECK(error.find("not acceptable JSON at byte") == 0);
    CHECK(error.find(words) != std::string::npos);
  }
}

TEST_CASE("what is no JSON is told with what it is and the byte where it stands") {
  const std::pair<std::string, std::string> table[] = {
      {"\xEF\xBB\xBF{}", "0: the text begins with a byte order mark (EF BB BF): leave it out"},
      {"\"abc\xC0\xAF\"", "4: the byte C0 is not valid UTF-8"},
      {"{\"k\xFF\":1}", "3: the byte FF is not valid UTF-8"},
      {"\xFF\xFE", "0: the byte FF is not valid UTF-8"},
      {"\"\xED\xA0\x80\"", "1: the byte ED is not valid UTF-8"},
      {"\"a\nb\"", "2: a control character, U+000A, stands in a string: write it as \\u000A"},
      {"{\"k\x1f\":1}", "3: a control character, U+001F, stands in a string"},
      {"[1,\v2]", "3: a control character, U+000B, stands outside of strings"},
      {R"("ab\ud800")", "9: an escape \\uD800 to \\uDFFF stands without"},
      {R"("ab\ud800\n")", "10: an escape \\uD800 to \\uDFFF stands without"},
      {"\"\\ud800é\"", "7: an escape \\uD800 to \\uDFFF stands without"},
      {R"("ab\udc00")", "9: an escape \\uD800 to \\uDFFF stands without"},
      {R"("\x41")", "2: \\x is no escape of JSON"},
      {R"("\ud83d\ude00\q")", "14: \\q is no escape of JSON"},
      {"[1, NaN]", "4: NaN is no number of JSON"},
      {"[-Infinity]", "2: Infinity is no number of JSON"},
      {"nan", "1: nan is no number of JSON"},
      {R"({"a":None})", "5: syntax error at the word None"},
      {R"({"a\"b":[1,]})", "11: syntax error"},
  };
  for (const auto& [text, words] : table) {
    CAPTURE(text);
    const std::string error = syntax_error(text);
    CHECK_MESSAGE(error.starts_with("not acceptable JSON at byte " + words), error);
  }
}

TEST_CASE("JSON numbers are rounded correctly and tiny ones become zero") {
  CHECK(*parse_json("2.2250738585072011e-308").get_if<double>() == 2.2250738585072011e-308);
  CHECK(*parse_json("0.1e1").get_if<double>() == 1.0);
  CHECK(*parse_json("1e-400").get_if<double>() == 0.0);
  CHECK(*parse_json("9007199254740993.0").get_if<double>() == 9007199254740992.0);
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const std::string text = to_json(json_value(value));
    CAPTURE(text);
    const json_value back = parse_json(text);
    REQUIRE(back.get_if<double>());
    CHECK(*back.get_if<double>() == value);
  }
}

TEST_CASE("JSON limits hold at the limit and break one beyond") {
  json_limits limits;
  CHECK(syntax_error(repeat("[", 100) + repeat("]", 100)) == "accepted");
  CHECK(syntax_error(repeat("[", 101) + repeat("]", 101)).find("deeper than 100")
        != std::string::npos);
  CHECK(syntax_error(repeat("[", 1'000'000)).find("deeper than 100") != std::string::npos);
  limits.string_bytes = 8;
  CHECK(syntax_error(R"(["12345678"])", limits) == "accepted");
  CHECK(syntax_error(R"(["123456789"])", limits).find("longer than 8 bytes") != std::string::npos);
  CHECK(syntax_error(R"({"123456789":1})", limits).find("longer than 8") != std::string::npos);
  limits.object_members = 2;
  CHECK(syntax_error(R"({"a":1,"b":2})", limits) == "accepted");
  CHECK(syntax_error(R"({"a":1,"b":2,"c":3})", limits).find("more than 2 members")
        != std::string::npos);
  limits.array_items = 3;
  CHECK(syntax_error("[1,2,3]", limits) == "accepted");
  CHECK(syntax_error("[1,2,3,4]", limits).find("more than 3 items") != std::string::npos);
  limits.values = 5;
  CHECK(syntax_error("[[1,2],[3]]", limits).find("more than 5 values") != std::string::npos);
  limits.text_bytes = 4;
  CHECK(syntax_error("[1,2]", limits).find("at most 4 are allowed") != std::string::npos);
}

TEST_CASE("integers beyond 64 bits keep their digits") {
  for (const std::string text :
       {"18446744073709551616", "-9223372036854775809", "123456789012345678901234567890",
        "-100000000000000000000000000000000000000001"}) {
    const auto value = parse_json(text);
    REQUIRE(value.get_if<big_integer>());
    CHECK(to_json(value) == text);
    CHECK(value.kind() == "a number");
    CHECK(json_as<double>(value, "f") == std::strtod(text.c_str(), nullptr));
    CHECK(to_json(parse_json("{\"a\":[" + text + "]}")) == "{\"a\":[" + text + "]}");
  }
  CHECK(parse_json("100000000000000000001") != parse_json("100000000000000000002"));
  CHECK(parse_json("1e20").get_if<double>());
  CHECK(parse_json("100000000000000000000.0").get_if<double>());
  CHECK(parse_json("18446744073709551615").get_if<uint64_t>());
  CHECK(syntax_error(std::string(400, '9')).find("beyond the range") != std::string::npos);
  const auto less = [](const char* a, const char* b) {
    return big_integer{a}.compare({b}) < 0 && big_integer{b}.compare({a}) > 0;
  };
  CHECK(less("99999999999999999999", "100000000000000000000"));
  CHECK(less("-100000000000000000000", "-99999999999999999999"));
  CHECK(less("-99999999999999999999", "99999999999999999998"));
  CHECK(less("99999999999999999998", "99999999999999999999"));
  CHECK(big_integer{"99999999999999999999"}.compare({"99999999999999999999"}) == 0);
}

TEST_CASE("integers and numbers accept each other's form, never strings") {
  const auto as_int = [](const char* text) { return json_as<int64_t>(parse_json(text), "f"); };
  CHECK(as_int("3") == 3);
  CHECK(as_int("3.0") == 3);
  CHECK(as_int("3e2") == 300);
  CHECK(as_int("-9223372036854775808") == INT64_MIN);
  CHECK(json_as<double>(parse_json("3"), "f") == 3.0);
  CHECK(json_as<uint64_t>(parse_json("18446744073709551615"), "f") == UINT64_MAX);
  for (const char* text : {"3.5", "\"3\"", "true", "null", "[3]", "18446744073709551616",
                           "9223372036854775808", "1e300", "-1e300", "9007199254740994.0"}) {
    CAPTURE(text);
    CHECK(field_error([&] { as_int(text); }).path == "f");
  }
  CHECK(field_error([] { json_as<uint32_t>(parse_json("-1"), "f"); }).path == "f");
  CHECK(field_error([] { json_as<uint32_t>(parse_json("4294967296"), "f"); }).path == "f");
  CHECK(field_error([] { json_as<double>(parse_json("\"1\""), "f"); }).path == "f");
  CHECK(field_error([] { json_as<bool>(parse_json("1"), "f"); }).path == "f");
}

TEST_CASE("field errors name the path, the value and the range") {
  const json_value body = parse_json(R"({"a":{"temperature":3.5,"n":0,"s":"","list":[1,2]},"z":null,
                                         "text":"0123456789012345678901234567890123456789xyz"})");
  json_object_reader top(body);
  json_object_reader a(top.require("a"), top.path("a"));
  CHECK(std::string(field_error([&] {
                      a.optional<double>("temperature", {0, 2});
                    }).what())
        == "a.temperature must be a number between 0 and 2, not 3.5");
  const auto n = field_error([&] { a.required<uint32_t>("n", {1, 8}); });
  CHECK(n.path == "a.n");
  CHECK(std::string(n.what()) == "a.n must be an integer between 1 and 8, not 0");
  CHECK(std::string(field_error([&] {
                      a.required_string("s", {1, 256});
                    }).what())
        == "a.s must be a string of 1 to 256 bytes, not \"\"");
  CHECK(std::string(field_error([&] { a.required<bool>("missing"); }).what())
        == "a.missing is required");
  CHECK(std::string(field_error([&] { top.required<bool>("z"); }).what()) == "z is required");
  CHECK(std::string(field_error([&] {
                      json_items(a.require("list"), "a.list", {3, 4});
                    }).what())
        == "a.list must be an array of 3 to 4 items, not of 2");
  CHECK(std::string(field_error([&] { top.optional<double>("text"); }).what())
        == "text must be a number, not a string of 43 bytes");
  CHECK(std::string(field_error([] { json_object_reader(json_value(1)); }).what())
        == "the body must be an object, not 1");
  CHECK(!top.optional<double>("z"));
  CHECK(!top.optional_string("nothing"));
  CHECK(json_index("messages", 1) == "messages[1]");
}

TEST_CASE("a reader knows which members nobody asked for") {
  const json_value body = parse_json(R"({"a":1,"x":null,"b":2,"y":3})");
  json_object_reader reader(body);
  reader.optional<double>("a");
  reader.optional<double>("b");
  CHECK(reader.unread() == std::vector<std::string_view>{"x", "y"});
}

TEST_CASE("the writer makes the same, valid, one-line text") {
  json_writer w;
  w.begin_object()
      .member("a", 1)
      .member("big", UINT64_MAX)
      .member("low", INT64_MIN)
      .member("x", 2.5)
      .member("whole", 3.0)
      .member("huge", 1e30)
      .member("nan", std::nan(""))
      .member("t", true)
      .null_member("none")
      .member("s", "q\"\\\n\r\t\b\f\x01\x7f é😀");
  w.key("list").begin_array().value(1).begin_array().end_array().value("x").end_array();
  w.key("raw").raw("{\"k\":[]}").member("end", 0u).end_object();
  CHECK(w.text()
        == R"({"a":1,"big":18446744073709551615,"low":-9223372036854775808,"x":2.5,"whole":3.0,)"
           R"("huge":1e+30,"nan":null,"t":true,"none":null,)"
           "\"s\":\"q\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u007f é😀\","
           R"("list":[1,[],"x"],"raw":{"k":[]},"end":0})");
  CHECK(to_json(parse_json(w.text())) == w.text());
}

TEST_CASE("bytes that are not UTF-8 become one replacement character per bad sequence") {
  CHECK(valid_utf8("aé€😀") == "aé€😀");
  CHECK(valid_utf8("\x80") == "\uFFFD");
  CHECK(valid_utf8("a\xE2\x82") == "a\uFFFD");
  CHECK(valid_utf8("\xE2\x82z") == "\uFFFDz");
  CHECK(valid_utf8("\xF0\x9F\x98") == "\uFFFD");
  CHECK(valid_utf8("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");
  CHECK(valid_utf8("\xC0\xAF") == "\uFFFD\uFFFD");
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    for (unsigned n = random() % 12; n; --n)
      bytes += static_cast<char>(random() % 3 ? 0x80 + random() % 0x80 : random() % 0x80);
    // What the writer makes must be accepted by the strict parser, and mean the cleaned text.
    const json_value back = parse_json(to_json(json_value(bytes)));
    REQUIRE(back.get_if<std::string>());
    CHECK(*back.get_if<std::string>() == valid_utf8(bytes));
  }
}

TEST_CASE("damaged JSON never crashes the parser and what it accepts can be written") {
  const std::string good = R"({"model":"m","messages":[{"role":"user","content":"h\u00e9\n"}],
      "temperature":0.5,"stop":["a","b"],"logit_bias":{"5":-1e2},"seed":-7,"x":[true,false,null]})";
  std::mt19937 random(23);
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned n = 1 + random() % 3; n; --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 4);
        break;
      default:
        text.insert(at, 1, "{}[]\",:\\u0e-"[random() % 12]);
        break;
      }
    }
    try {
      const json_value value = parse_json(text);
      ++accepted;
      CHECK(parse_json(to_json(value)) == value);
    } catch (const json_syntax_error&) {
    }
  }
  CHECK(accepted > 100);
}
