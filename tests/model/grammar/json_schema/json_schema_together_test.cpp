// Keywords beside each other, and those that say what must not be.
#include "tests/model/grammar/json_schema/json_schema_support.hpp"

using namespace lamella;
using tests::takes;
using tests::schemas::check;
using tests::schemas::states_of;

TEST_CASE("schemas hold together with what is beside them") {
  check({{R"({"$ref":"#/$defs/a","maxLength":2,"$defs":{"a":{"type":"string","minLength":2}}})",
          {"\"ab\""},
          {"\"a\"", "\"abc\""}},
         {R"({"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"anyOf":[
              {"properties":{"a":{"const":1}},"required":["a"]},
              {"properties":{"b":{"const":2}},"required":["b"]}]})",
          {R"({"k":"x","a":1})", R"({"k":"x","b":2})"},
          {R"({"k":"x"})", R"({"a":1})", R"({"k":"x","a":2})"}},
         {R"({"allOf":[{"minimum":1,"type":"integer"},{"maximum":3}],"exclusiveMaximum":3})",
          {"1", "2"},
          {"0", "3"}},
         {R"({"allOf":[{"$ref":"#/$defs/e"}],"enum":["a","b",1],
              "$defs":{"e":{"type":"string"}}})",
          {"\"a\"", "\"b\""},
          {"1", "\"c\""}},
         {R"({"properties":{"a":{"minLength":1}},"allOf":[{"properties":{"a":{"maxLength":1}}}]})",
          {R"({"a":"x"})", "{}"},
          {R"({"a":""})", R"({"a":"xy"})"}},
         {R"({"type":["object","null"],"allOf":[{"type":["null","integer"]}]})",
          {"null"},
          {"{}", "1"}}});
}

TEST_CASE("one of several alternatives that may hold together holds alone") {
  check({{R"({"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object",
              "properties":{"a":{"type":"integer"},"b":{"type":"integer"}}})",
          {R"({"a":1})", R"({"b":1})"},
          {"{}", R"({"a":1,"b":1})"}},
         // 2.5 is valid, too, and refused: no type is that of numbers with a fraction alone.
         {R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]})",
          {"1"},
          {"2", "3", "1.5"}},
         {R"({"oneOf":[{"type":"string"},{"type":"string","maxLength":3}]})",
          {"\"abcd\""},
          {"\"abc\"", "\"\""}},
         {R"({"oneOf":[{"const":1},{"enum":[2,1.0]}]})", {"2"}, {"1"}},
         {R"({"type":"string","oneOf":[{"enum":["a"]},{"enum":["b"]}]})",
          {"\"a\"", "\"b\""},
          {"\"c\""}},
         {R"({"oneOf":[{"type":"object"},{"type":["object","null"]}]})", {"null"}, {"{}"}},
         {R"({"oneOf":[
              {"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false},
              {"type":"object","properties":{"a":{},"c":{}},"additionalProperties":false}]})",
          {R"({"b":1})", R"({"a":1,"b":1})", R"({"c":1})", R"({"a":1,"c":1})"},
          {"{}", R"({"a":1})", R"({"b":1,"c":1})"}},
         {R"({"oneOf":[{"minLength":1},{"type":"integer"}]})", {"\"a\""}, {"\"\"", "1"}},
         {R"({"oneOf":[{"const":{"a":1,"b":2}},{"const":{"b":2.0,"a":1}},{"const":3}]})",
          {"3"},
          {R"({"a":1,"b":2})"}}});
}

TEST_CASE("an object or array that must not be leaves others of its type to other alternatives") {
  check({{R"({"oneOf":[{"type":"object"},{"not":{"const":{"a":1}}}]})",
          {R"({"a":1})", "[]", "1"},
          {"{}", R"({"a":2})"}},
         {R"({"oneOf":[{"type":"array"},{"not":{"const":[]}}]})", {"[]", "{}"}, {"[1]"}},
         {R"({"oneOf":[{},{"type":"object","not":{"const":{"e":false}}}]})",
          {"1", R"({"e":false})"},
          {"{}", R"({"e":true})"}},
         {R"({"oneOf":[{"type":"object"},{"not":{"anyOf":[{"const":{"a":1}},{"const":[]}]}}]})",
          {R"({"a":1})", "1"},
          {"{}", "[]"}},
         {R"({"oneOf":[
              {"type":"object","required":["k"],"properties":{"k":{"type":"object"}}},
              {"type":"object","required":["k"],"properties":{"k":{"not":{"const":{"a":1}}}}}]})",
          {R"({"k":{"a":1}})", R"({"k":1})"},
          {R"({"k":{}})", "{}"}},
         {R"({"enum":[[1],[2]],"not":{"const":[1]}})", {"[2]"}, {"[1]"}}});
}

TEST_CASE("what must not hold does not") {
  check({{R"({"not":{"type":"null"}})", {"1", "\"a\"", "[]", "{}", "true"}, {"null"}},
         {R"({"type":"object","not":{"required":["a"]}})",
          {"{}", R"({"b":1})"},
          {R"({"a":1})", R"({"b":1,"a":1})"}},
         {R"({"type":"string","not":{"enum":["a","bc"]}})", {"\"\"", "\"b\""}, {"\"a\"", "\"bc\""}},
         {R"({"type":"integer","not":{"enum":[2,5]}})", {"1", "3", "6"}, {"2", "5"}},
         {R"({"type":"string","not":{"pattern":"^a"}})", {"\"ba\"", "\"\""}, {"\"ab\""}},
         {R"({"type":"integer","not":{"minimum":3}})", {"2", "-7"}, {"3", "4"}},
         {R"({"type":"object","properties":{"a":{"type":"integer"}},
              "not":{"properties":{"a":{"const":1}}}})",
          {R"({"a":2})"},
          {R"({"a":1})", "{}"}},
         {R"({"not":{"anyOf":[{"type":"string"},{"type":"object"}]},"type":["string","null"]})",
          {"null"},
          {"\"a\""}},
         {R"({"type":"boolean","not":{"const":true}})", {"false"}, {"true"}}});
}

TEST_CASE("conditions decide which schema holds") {
  const char* schema = R"({"type":"object","properties":{"k":{"enum":["a","b"]},
      "x":{"type":"integer"}},"required":["k"],
      "if":{"properties":{"k":{"const":"a"}}},"then":{"required":["x"]},
      "else":{"properties":{"x":false}}})";
  check({{schema,
          {R"({"k":"a","x":1})", R"({"k":"b"})"},
          {R"({"k":"a"})", R"({"k":"b","x":1})", "{}"}},
         {R"({"if":{"type":"integer"},"then":{"minimum":5},"type":["integer","string"]})",
          {"5", "\"a\""},
          {"4"}},
         {R"({"if":{"type":"integer"},"type":"integer"})", {"5"}, {"\"a\""}}});
}

TEST_CASE("members depend on others") {
  check({{R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},
              "dependentRequired":{"a":["b"]}})",
          {"{}", R"({"b":2})", R"({"a":1,"b":2})"},
          {R"({"a":1})"}},
         {R"({"type":"object","properties":{"a":{"const":1},"b":{"type":"integer"}},
              "dependencies":{"a":{"properties":{"b":{"const":2}}}}})",
          {R"({"b":3})", R"({"a":1,"b":2})", R"({"a":1})"},
          {R"({"a":1,"b":3})"}}});
}

TEST_CASE("names of members are those of patterns") {
  check({{R"({"type":"object","patternProperties":{"^x-":{"type":"integer"}},
              "additionalProperties":false})",
          {"{}", R"({"x-a":1,"x-":2})"},
          {R"({"a":1})", R"({"x-a":"s"})", R"({"\u0078-a":1})"}},
         {R"({"type":"object","patternProperties":{"^a":{"minimum":1},"b$":{"maximum":3}},
              "additionalProperties":{"type":"string"}})",
          {R"({"a":9,"b":-9,"ab":2,"c":"s"})"},
          {R"({"ab":4})", R"({"ab":0})", R"({"a":0})", R"({"c":1})"}},
         {R"({"type":"object","properties":{"xa":{"maximum":5}},
              "patternProperties":{"^x":{"type":"integer"}}})",
          {R"({"xa":5,"xb":9})"},
          {R"({"xa":6})", R"({"xa":"s"})", R"({"xb":"s"})", R"({"b":1})"}},
         {R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$","maxLength":3}})",
          {"{}", R"({"abc":1})"},
          {R"({"abcd":1})", R"({"A":1})"}},
         {R"({"type":"object","propertyNames":{"enum":["a","b"]},
              "additionalProperties":{"type":"null"}})",
          {R"({"a":null})"},
          {R"({"c":null})", R"({"a":1})"}}});
}

TEST_CASE("members are counted, named ones and others") {
  check({{R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
              "minProperties":1,"maxProperties":2})",
          {R"({"a":1})", R"({"a":1,"c":3})", R"({"b":2,"c":3})"},
          {"{}", R"({"a":1,"b":2,"c":3})"}},
         {R"({"type":"object","properties":{"a":{"const":1}},"additionalProperties":true,
              "minProperties":2,"maxProperties":3})",
          {R"({"a":1,"x":1})", R"({"a":1,"x":1,"y":2})"},
          {R"({"a":1})", R"({"x":1,"x":2})", R"({"a":1,"x":1,"y":2,"z":3})"}},
         {R"({"type":"object","properties":{"a":{"const":1}},"maxProperties":3})",
          {"{}", R"({"a":1})"},
          {R"({"a":1,"a":1})"}}});
}

TEST_CASE("patterns hold beside lengths, formats and each other") {
  check({{R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":3})",
          {"\"ab\"", "\"abc\""},
          {"\"a\"", "\"abcd\"", "\"AB\""}},
         {R"({"allOf":[{"pattern":"^a"},{"pattern":"b$"}],"type":"string"})",
          {"\"ab\"", "\"axb\""},
          {"\"a\"", "\"b\"", "\"ba\""}},
         {R"({"type":"string","format":"email","maxLength":10})",
          {"\"a@b.cd\""},
          {"\"a\"", "\"abcdefgh@b.cd\""}},
         {R"({"type":"string","format":"date","pattern":"^2026"})",
          {"\"2026-01-01\""},
          {"\"2025-01-01\""}},
         {R"({"type":"string","format":"made up","maxLength":1})", {"\"a\""}, {"\"ab\""}},
         {R"({"type":"string","pattern":"^[0-9a-f]*$","maxLength":100000})",
          {"\"\"", "\"0123456789abcdef\""},
          {"\"g\""}}});
}

TEST_CASE("formats are as wide as their standards") {
  check({{R"({"type":"string","format":"uri"})",
          {R"("http://a.b/c?d=e#f")", R"("urn:isbn:1")", R"("file:///x/y")", R"("did:a:%41")",
           R"("http://u@[::1]:80/")"},
          {R"("a/b")", R"("http://a b")", R"("http://[::g]/")", R"("//a")", R"("a:%4")"}},
         {R"({"type":"string","format":"uri-reference"})",
          {R"("../a?b#c")", R"("")", R"("//h/p")", R"("#x")"},
          {R"("a b")", R"("\\")", R"("%zz")"}},
         {R"({"type":"string","format":"iri-reference"})",
          {R"("é/ü")", R"("http://[::1]/é")", R"("")"},
          {R"("a b")"}},
         {R"({"type":"string","format":"iri"})", {R"("http://é/ü")"}, {R"("é")"}},
         {R"({"type":"string","format":"ipv6"})",
          {R"("::")", R"("::1")", R"("1::8")", R"("1:2:3:4:5:6:7:8")", R"("::ffff:1.2.3.4")"},
          {R"("1:2:3:4:5:6:7:8:9")", R"("1::2::3")", R"(":1")", R"("1:2:3")", R"("12345::")"}},
         {R"({"type":"string","format":"date"})",
          {R"("2024-02-29")", R"("2000-02-29")"},
          {R"("2023-02-29")", R"("1900-02-29")"}},
         {R"({"type":"string","format":"regex"})",
          {R"("^[a-z0-9_]+\\d*$")", R"("a.b")"},
          {R"("(")", R"("[")", R"("a**")"}},
         {R"({"type":"string","format":"relative-json-pointer"})",
          {R"("0#")", R"("1/a")"},
          {R"("-1")", R"("01")", R"("/a")"}}});
}

TEST_CASE("arrays of old drafts, of contained and of unique items") {
  check({{R"({"type":"array","items":[{"const":1},{"const":2}],"additionalItems":false})",
          {"[]", "[1]", "[1,2]"},
          {"[2]", "[1,2,3]"}},
         {R"({"type":"array","items":[{"const":1}],"additionalItems":{"const":2}})",
          {"[1,2,2]"},
          {"[1,1]"}},
         {R"({"type":"array","items":{"type":"integer"},"contains":{"const":7},"maxItems":3})",
          {"[7]", "[1,7]", "[1,2,7]", "[7,7,7]"},
          {"[]", "[1]", "[1,2,3]", "[1,2,3,7]"}},
         {R"({"type":"array","contains":{"type":"null"},"minItems":2})",
          {"[1,null]", "[null,null,1]"},
          {"[null]", "[1,2]"}},
         {R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":1})",
          {R"(["a"])", R"(["c","a"])", R"(["b","c","a"])"},
          {"[]", R"(["a","a"])", R"(["a","b","a"])"}},
         {R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[]", "[1]"}, {"[1,1]"}}});
}

TEST_CASE("numbers are multiples") {
  check({{R"({"type":"integer","multipleOf":3})",
          {"0", "3", "-9", "12", "111"},
          {"1", "10", "-2", "03", "3.0"}},
         {R"({"type":"number","multipleOf":50})", {"0", "50", "-100", "1250"}, {"25", "5", "0.5"}},
         {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":30})",
          {"14", "21", "28"},
          {"7", "35", "15"}},
         {R"({"type":"integer","multipleOf":0.5})", {"3"}, {"3.5"}},
         {R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", {"4"}, {"3"}},
         {R"({"type":"integer","minimum":3,"exclusiveMinimum":false})", {"3"}, {"2"}}});
}

TEST_CASE("what need not be there may be impossible") {
  check({{R"({"properties":{"a":{"minimum":0,"exclusiveMaximum":-1}}})", {"{}"}, {R"({"a":0})"}},
         {R"({"anyOf":[{"type":"integer","minimum":1.2,"maximum":1.8},{"const":"x"}]})",
          {"\"x\""},
          {"1"}}});
}

TEST_CASE("many choices beside each other are refused, not tried") {
  std::string schema = R"({"allOf":[)";
  for (int i = 0; i < 40; ++i) {
    const auto n = std::to_string(i);
    schema += (i > 0 ? "," : "") + std::string(R"({"anyOf":[{"required":["a)") + n
              + R"("]},{"required":["b)" + n + R"("]}]})";
  }
  CHECK_THROWS_WITH_AS(states_of(schema + "]}"), doctest::Contains("combinations"),
                       model::json_schema_error);
  std::string exclusive = R"({"oneOf":[)";
  for (int i = 0; i < 200; ++i)
    exclusive += (i > 0 ? "," : "") + std::string(R"({"type":"object","required":["a)")
                 + std::to_string(i) + "\"]}";
  CHECK_THROWS_AS(states_of(exclusive + "]}"), std::runtime_error);
}
