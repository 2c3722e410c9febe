#include "tests/model/grammar/json_schema/json_schema_support.hpp"

using namespace lamella;
using model::grammar_error;
using model::json_schema_error;
using tests::takes;
using tests::schemas::check;
using tests::schemas::states_of;

TEST_CASE("values without a schema are all of JSON") {
  check({{"true",
          {"null", "true", "[]", "{}", "[1, [2], {\"a\":\n  \"b\"}]", "\"\\u00e9\\n\"", "-1.5e3",
           "{\"a\": {\"b\": [null,false]}}", "\"\\ud83d\\ude00\""},
          {"", "[1,]", "{\"a\"}", "{a:1}", "'x'", "nul", "[1 2]", "{\"a\":1,}", "\"\\ud83d\"",
           "\"\\udc00\"", "\"\\x\"", "\"\t\"", "[1],", " 1", "1 "}},
         {"{}", {"1", "{}"}, {""}},
         {R"({"type":"object"})", {"{}", "{\"a\": 1}"}, {"[]", "1", "{\"a\":1"}}});
}

TEST_CASE("objects have their properties in order, and those that are required") {
  check({{R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},
              "c":{"type":"boolean"}},"required":["b"]})",
          {"{\"b\":null}", "{\"a\":1,\"b\":null}", "{\"a\": 1, \"b\": null, \"c\": true}",
           "{\n  \"b\": null,\n  \"c\": false\n}"},
          {"{}", "{\"a\":1}", "{\"b\":null,\"a\":1}", "{\"b\":null,\"d\":1}", "{\"b\":null,}",
           "{,\"b\":null}", "{\"b\":1}", "{\"b\":null,\"b\":null}"}},
         {R"({"type":"object","properties":{"a":{"type":"integer"}}})",
          {"{}", "{ }", "{\"a\":7}"},
          {"{\"b\":1}"}},
         {R"({"properties":{"say \"hi\"\n":{"const":1}},"required":["say \"hi\"\n"]})",
          {R"({"say \"hi\"\n":1})"},
          {"{}"}},
         {R"({"type":"object","required":["x"]})", {"{\"x\":[1]}"}, {"{}", "{\"y\":1}"}},
         {R"({"type":"object","additionalProperties":false})", {"{}"}, {"{\"a\":1}"}}});
}

TEST_CASE("objects with empty properties have no members, unless others are allowed") {
  check({{R"({"type":"object","properties":{}})", {"{}", "{ }"}, {"{\"a\":1}"}},
         {R"({"properties":{},"required":["x"]})", {"{\"x\":1}"}, {"{}", "{\"x\":1,\"y\":1}"}},
         {R"({"type":"object","properties":{},"additionalProperties":true})", {"{\"a\":1}"}, {}},
         {R"({"type":"object","properties":{},"patternProperties":{"^a":true}})",
          {"{\"a\":1}"},
          {"{\"b\":1}"}},
         {R"({"allOf":[{"properties":{}},{"properties":{"a":true}}]})",
          {"{}", "{\"a\":1}"},
          {"{\"b\":1}"}},
         {R"({"type":"object","properties":{"x":false}})", {"{}", "{\"a\":1}"}, {"{\"x\":1}"}}});
}

TEST_CASE("other members have other names and their own schema") {
  check({{R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"],
              "additionalProperties":{"type":"integer"}})",
          {R"({"name":"x"})", R"({"name":"x","nam":1,"names":2,"":3})"},
          {R"({"a":1})", R"({"name":"x","name":1})", R"({"name":"x","a":"y"})",
           R"({"name":"x","n\u0061me":1})"}},
         {R"({"type":"object","additionalProperties":{"type":"boolean"}})",
          {"{}", R"({"a":true,"b":false})"},
          {R"({"a":1})"}},
         {R"({"type":"object","additionalProperties":{"type":"null"},"minProperties":1,
              "maxProperties":2})",
          {R"({"a":null})", R"({"a":null,"b":null})"},
          {"{}", R"({"a":null,"b":null,"c":null})"}},
         {R"({"type":"object","properties":{"a":true},"additionalProperties":true})",
          {"{}", R"({"b":[1]})", R"({"a":1,"b":{"a":2}})"},
          {R"({"b":1,"a":2})"}}});
}

TEST_CASE("arrays have as many items as they may") {
  check({{R"({"type":"array","items":{"type":"integer"}})",
          {"[]", "[1]", "[1, 2,\n3]"},
          {"[1,]", "[\"a\"]", "[,1]", "[1 ,2]"}},
         {R"({"type":"array","items":{"const":1},"minItems":2,"maxItems":4})",
          {"[1,1]", "[1,1,1,1]"},
          {"[]", "[1]", "[1,1,1,1,1]"}},
         {R"({"type":"array","items":{"const":1},"maxItems":1})", {"[]", "[1]"}, {"[1,1]"}},
         {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
         {R"({"type":"array","prefixItems":[{"type":"string"},{"type":"null"}],"minItems":2,
              "maxItems":2})",
          {"[\"a\",null]"},
          {"[]", "[\"a\"]", "[null,\"a\"]", "[\"a\",null,1]"}},
         {R"({"prefixItems":[{"type":"string"},{"type":"null"}],"items":{"const":1},
              "minItems":1,"maxItems":4})",
          {"[\"a\"]", "[\"a\",null]", "[\"a\",null,1,1]"},
          {"[]", "[1]", "[\"a\",1]", "[\"a\",null,1,1,1]"}},
         {R"({"prefixItems":[{"type":"null"}],"items":false})", {"[]", "[null]"}, {"[null,1]"}},
         {R"({"prefixItems":[{"type":"null"}],"items":{"const":1},"minItems":3})",
          {"[null,1,1]", "[null,1,1,1]"},
          {"[null,1]", "[1,1,1]"}}});
}

TEST_CASE("constants beyond 64 bits are taken with exactly their digits") {
  check({{R"({"const":123456789012345678901234567890})",
          {"123456789012345678901234567890"},
          {"123456789012345678901234567891", "1.2345678901234568e+29",
           "123456789012345677877719597056"}},
         {R"({"type":"integer","enum":[18446744073709551616,-9223372036854775809,5]})",
          {"18446744073709551616", "-9223372036854775809", "5"},
          {"18446744073709551615", "18446744073709552000", "-9223372036854775808"}},
         {R"({"enum":[100000000000000000001,100000000000000000002],"const":100000000000000000002})",
          {"100000000000000000002"},
          {"100000000000000000001"}},
         {R"({"const":1e20,"enum":[100000000000000000000]})", {"1e+20"}, {}},
         {R"({"const":[123456789012345678901]})", {"[123456789012345678901]"}, {}}});
}

TEST_CASE("strings are as long as they may be, whatever their characters are made of") {
  check(
      {{R"({"type":"string","minLength":2,"maxLength":3})",
        {"\"ab\"", "\"abc\"", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", "\"\\n\\u00e9\"",
         "\"\\ud83d\\ude00x\""},
        {"\"\"", "\"a\"", "\"abcd\"", "\"ab", "ab"}},
       {R"({"type":"string","pattern":"^[A-Z]{2}\\d+$"})",
        {"\"AB1\"", "\"XY123\""},
        {"\"ab1\"", "\"AB\"", "\"AB1x\""}},
       {R"({"type":"string","pattern":"\"x\""})", {"\"a\\\"x\\\"b\""}, {"\"x\""}},
       {R"({"type":"string","format":"date"})",
        {"\"2026-11-24\"", "\"2024-02-28\""},
        {"\"2026-13-01\"", "\"2026-02-30\"", "\"2026-04-31\"", "\"26-01-01\""}},
       {R"({"type":"string","format":"date-time"})",
        {"\"2026-11-24T18:35:09Z\"", "\"2026-11-24T18:35:09.123+01:00\""},
        {"\"2026-11-24\"", "\"2026-11-24T24:00:00Z\""}},
       {R"({"type":"string","format":"uuid"})",
        {"\"123e4567-e89b-12d3-a456-426614174000\""},
        {"\"123e4567\""}},
       {R"({"type":"string","format":"ipv4"})", {"\"10.0.0.255\""}, {"\"10.0.0.256\""}},
       {R"({"type":"string","format":"email"})", {"\"a.b@example.org\""}, {"\"a@b@c.d\""}},
       {R"({"type":"string","format":"duration"})",
        {"\"P1Y\"", "\"P1M\"", "\"PT5M\"", "\"PT1H\"", "\"P1Y2M3DT4H5M6S\"", "\"P2W\"",
         "\"P3DT1S\""},
        {"\"P\"", "\"PT\"", "\"P1Y2D\"", "\"PT1H2S\"", "\"P1W2D\"", "\"P1\"", "\"P1DT\""}},
       {R"({"type":"string","format":"hostname"})",
        {"\"a\"", "\"ab\"", "\"a-b\"", "\"a--b.example\"", "\"ab-c\"", "\"abc--d\"", "\"x1.y2-z\""},
        {"\"xn--X\"", "\"XN--aa\"", "\"a.xn--b\"", "\"ab--c\"", "\"-a\"", "\"a-\"", "\"\""}}});
  // As long as they may be as a whole.
  const std::string label(58, 'a'), longest = label + "." + label + "." + label + "." + label;
  auto hosts = states_of(R"({"type":"string","format":"hostname"})");
  CHECK(longest.size() < 254);
  CHECK(takes(hosts, "\"" + longest + "\""));
  CHECK_FALSE(takes(hosts, "\"" + longest + ".a\""));
}

TEST_CASE("numbers are within their bounds") {
  check({{R"({"type":"integer","minimum":1,"maximum":12})",
          {"1", "9", "10", "12"},
          {"0", "13", "-1", "1.0", "01"}},
         {R"({"type":"integer","exclusiveMinimum":0})", {"1", "100"}, {"0", "-1"}},
         {R"({"type":"number","minimum":0,"maximum":1})",
          {"0", "0.5", "1", "1.000", "0.99"},
          {"-0.1", "1.01", "2"}},
         {R"({"type":"integer","multipleOf":1})", {"5"}, {"5.5"}},
         // What readers take for the bound is not beyond it.
         {R"({"type":"number","exclusiveMinimum":1,"exclusiveMaximum":2})",
          {"1.1", "1.0000000000000002", "1.9999999999999998"},
          {"1", "1.00000000000000001", "1.99999999999999999", "2"}},
         {R"({"type":"integer","exclusiveMinimum":9007199254740992})",
          {"9007199254740994"},
          {"9007199254740992", "9007199254740993"}},
         {R"({"type":"number","minimum":9007199254740993})",
          {"9007199254740994"},
          {"9007199254740993.0", "9007199254740992"}},
         {R"({"type":"integer","minimum":9007199254740993,"maximum":9007199254740993})",
          {"9007199254740993"},
          {"9007199254740992", "9007199254740994"}},
         {R"({"minimum":3.5})", {"3.5", "4", "100"}, {"3", "3.4", "\"a\""}}});
}

TEST_CASE("constants are written as they are") {
  check({{R"({"enum":["red","green",7,null,{"a":[1,true]},"a\"b"]})",
          {"\"red\"", "\"green\"", "7", "null", "{\"a\":[1,true]}", "\"a\\\"b\"",
           "{\"a\": [1, true]}"},
          {"\"blue\"", "red", "77", "\"re", "{\"a\":[1]}", "{\"a\":[1,true,1]}"}},
         {R"({"const":"x"})", {"\"x\""}, {"\"y\""}},
         {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
         {R"({"type":["string","null"],"maxLength":1})", {"\"a\"", "null", "\"\""}, {"\"ab\""}},
         {R"({"type":"string","nullable":true,"maxLength":0})", {"\"\""}, {"\"a\"", "null"}},
         {R"({"const":"a","enum":["b","a"]})", {"\"a\""}, {"\"b\""}},
         {R"({"const":1,"enum":[1.0]})", {"1"}, {"2"}}});
}

TEST_CASE("keywords that the standard does not know are annotations") {
  check({{R"({"id":"x","self":{"vendor":"v"},"type":"object","readonly":true,"properties":
              {"a":{"type":"string","propertyOrder":1,"javaType":"T"}},"links":[1]})",
          {R"({"a":"x"})"},
          {R"({"a":1})", "1"}},
         {R"({"title":"t","version":1})", {"1", "{}"}, {""}}});
}

TEST_CASE("keywords by which opposites are told are annotations where a document spells them") {
  check({{R"({"type":"string","none of":5,"not pattern":"^a"})", {R"("a")"}, {"1"}},
         {R"({"type":"string","none of":[5]})", {R"("a")"}, {"1"}},
         {R"({"enum":["a",{"b":1}],"none of":5,"member other than":7})",
          {R"("a")", R"({"b":1})"},
          {"1"}},
         {R"({"type":"object","member other than":7})", {"{}"}, {"1"}},
         {R"({"type":"number","no integers":true})", {"1", "1.5"}, {"\"1\""}},
         {R"({"not":{"type":"string","none of":5}})", {"1"}, {R"("a")"}}});
}

TEST_CASE("what a schema asks for and cannot be kept to is refused, with its place") {
  struct wrong {
    const char* schema;
    const char* pointer;
    const char* words;
  };
  for (const auto& x : {
           wrong{R"({"type":"strin"})", "/type", "must be one of"},
           wrong{R"({"type":"array","uniqueItems":true})", "/uniqueItems", "enumerated values"},
           wrong{R"({"type":"array","items":{"type":"number","multipleOf":0.0000000001}})",
                 "/items/multipleOf", "15 digits"},
           wrong{R"({"type":"number","multipleOf":0.131})", "/multipleOf", "up to 128"},
           wrong{R"({"$ref":"#/$defs/a"})", "/$ref", "points at nothing"},
           wrong{R"({"$ref":"http://example.org/x"})", "/$ref", "other documents are not loaded"},
           wrong{R"({"$ref":"#x"})", "/$ref", "points at nothing"},
           wrong{R"({"$ref":"#x","$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}})", "/$ref",
                 "twice"},
           wrong{R"({"$dynamicRef":"#x"})", "/$dynamicRef", "points at nothing"},
           wrong{R"({"$recursiveRef":"#/a"})", "/$recursiveRef", "must be"},
           wrong{R"({"anyOf":[]})", "/anyOf", "not empty"},
           wrong{R"({"not":{"format":"ipv4"}})", "/not/format", "must not hold"},
           wrong{R"({"not":{"multipleOf":3}})", "/not/multipleOf", "must not hold"},
           wrong{R"({"type":"array","contains":{},"minContains":3,"maxContains":2})", "/contains",
                 "more items than maxContains"},
           wrong{R"({"type":"array","contains":{},"minContains":5000})", "/contains",
                 "combinations"},
           wrong{R"({"not":{}})", "/not", "takes everything"},
           wrong{R"({"anyOf":[{"type":"null"}],"type":"integer"})", "/anyOf/0", "no type of value"},
           wrong{R"({"const":"a","enum":["b"]})", "/const", "has no value"},
           wrong{R"({"const":9007199254740992,"enum":[9007199254740993]})", "/const",
                 "has no value"},
           wrong{R"({"type":"integer","minimum":5,"maximum":4})", "", "no whole number"},
           wrong{R"({"type":"number","exclusiveMinimum":2,"maximum":2})", "", "no number"},
           wrong{R"({"enum":[]})", "/enum", "not empty"},
           wrong{R"({"type":"object","minProperties":2})", "/minProperties", "up to 1"},
           wrong{R"({"type":"object","required":["a"],"unevaluatedProperties":false})", "/required",
                 "/unevaluatedProperties allows no value"},
           wrong{R"({"properties":{"a":false},"required":["a"]})", "/required",
                 "/properties/a allows no value"},
           wrong{R"({"allOf":[true,false]})", "/allOf/1", "is false"},
           wrong{R"(false)", "", "no value is possible"},
           wrong{R"({"$ref":"#/$defs/a~2b","$defs":{"a~2b":{}}})", "/$ref", "points at nothing"},
           wrong{R"({"$ref":"#/$defs/a%2","$defs":{"a%2":{}}})", "/$ref", "points at nothing"},
           wrong{R"_({"type":"string","pattern":"(?=a)"})_", "/pattern", "look-around"},
           wrong{R"({"type":"string","minLength":3,"maxLength":2})", "", "below its minLength"},
           wrong{R"({"type":"array","minItems":-1})", "/minItems", "whole number"},
           wrong{R"({"type":"object","required":["a"],"additionalProperties":false})", "/required",
                 "/additionalProperties allows no value"},
           wrong{R"({"allOf":[{"type":"string"},{"type":"object"}]})", "/allOf/1",
                 "no type of value"},
           wrong{R"({"type":"object","properties":[1]})", "/properties", "must be an object"},
           wrong{R"(7)", "", "must be an object or a boolean"},
           wrong{R"({"type":"string","enum":[1,2]})", "/enum", "has no value"},
           wrong{R"({"type":"integer","minimum":"1"})", "/minimum", "must be a number"},
       }) {
    CAPTURE(x.schema);
    try {
      states_of(x.schema);
      FAIL("was taken");
    } catch (const json_schema_error& e) {
      CHECK(e.pointer == x.pointer);
      CHECK_MESSAGE(std::string{e.what()}.find(x.words) != std::string::npos, e.what());
    }
  }
}

TEST_CASE("what is drawn from any value is JSON") {
  auto states = states_of("{}");
  tests::splitmix random{1};
  for (int i = 0; i < 200; ++i) {
    const auto text = tests::draw_text(states, random);
    CHECK_NOTHROW_MESSAGE(parse_json(text, {.depth = 300}), text);
  }
}

TEST_CASE("a large schema costs no more than its size") {
  std::string schema = R"({"type":"object","properties":{)";
  for (int i = 0; i < 500; ++i)
    schema += (i > 0 ? "," : "") + ("\"property_" + std::to_string(i))
              + R"(":{"type":"string","description":"d"})";
  auto states = states_of(schema + "}}");
  CHECK(takes(states, R"({"property_3":"x","property_499":"y"})"));
  CHECK_FALSE(takes(states, R"({"property_499":"x","property_3":"y"})"));
  CHECK(states.memory_bytes() < (8u << 20));
  // Each level would double the work if what follows a member were built for each way there.
  std::string nested = R"({"type":"integer"})";
  for (int i = 0; i < 25; ++i)
    nested = R"({"properties":{"a":)" + nested + R"(,"b":{"type":"null"}}})";
  auto deep = states_of(nested);
  CHECK(takes(deep, R"({"a":{"a":{"a":{"b":null}},"b":null}})"));
}

TEST_CASE("enumerations of thousands of values are read, and of too many refused by name") {
  const auto labels = [](int count, const std::string& behind) {
    std::string schema = R"({"type":"object","properties":{"label":{"enum":[)";
    for (int i = 0; i < count; ++i)
      schema += (i == 0 ? "\"class " : ",\"class ") + std::to_string(i) + behind + "\"";
    return schema + R"(]}},"required":["label"]})";
  };
  auto states = states_of(labels(20'000, ""));
  CHECK(takes(states, R"({"label":"class 0"})"));
  CHECK(takes(states, R"({"label":"class 19999"})"));
  CHECK_FALSE(takes(states, R"({"label":"class 20000"})"));
  CHECK_FALSE(takes(states, R"({"label":"class "})"));
  CHECK_THROWS_WITH_AS(states_of(labels(20'001, "")),
                       doctest::Contains("/properties/label/enum has 20001 values, at most 20000"),
                       json_schema_error);
  std::string different = R"({"enum":[0)";
  tests::splitmix random{9};
  for (int i = 0; i < 10'000; ++i) {
    different += ",\"";
    for (int k = 0; k < 40; ++k) different += static_cast<char>('a' + random.below(26));
    different += '"';
  }
  CHECK_THROWS_WITH_AS(states_of(different + "]}"), doctest::Contains("/enum cannot be read"),
                       json_schema_error);
}

TEST_CASE("objects of many optional members are read") {
  std::string schema = R"({"type":"object","additionalProperties":false,"properties":{)";
  for (int i = 0; i < 1'000; ++i)
    schema += (i == 0 ? "\"m" : ",\"m") + std::to_string(i) + R"(":{"type":"null"})";
  auto states = states_of(schema + "}}");
  CHECK(takes(states, R"({"m0":null,"m499":null, "m999":null})"));
  CHECK_FALSE(takes(states, R"({"m0":null,"m1000":null})"));
}

TEST_CASE("a schema that leaves a text at too many places at once is refused before any text") {
  const auto lists = [](int count) { // none of which shares anything with the next one
    std::string schema = R"({"type":"object","properties":{"a":{"anyOf":[)";
    for (int i = 0; i < count; ++i)
      schema += (i == 0 ? R"({"const":[)" : R"(,{"const":[)") + std::to_string(i) + "]}";
    return schema + "]}}}";
  };
  auto states = states_of(lists(2'000));
  CHECK(takes(states, R"({"a":[1999]})"));
  CHECK_FALSE(takes(states, R"({"a":[2000]})"));
  CHECK_THROWS_WITH_AS(states_of(lists(9'000)), doctest::Contains("too ambiguous"), grammar_error);
}
