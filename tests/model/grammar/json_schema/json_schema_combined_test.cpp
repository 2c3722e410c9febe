// Schemas that are made of others, and references.
#include "tests/model/grammar/json_schema/json_schema_support.hpp"

using namespace lamella;
using model::grammar_error;
using tests::schemas::check;
using tests::schemas::states_of;

TEST_CASE("schemas are made of others") {
  check({{R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
          {"1", "\"a\""},
          {"\"ab\"", "null", "1.5"}},
         {R"({"$ref":"#/$defs/pair","$defs":{"pair":{"type":"array","items":{"$ref":"#/$defs/n"},
              "minItems":2,"maxItems":2},"n":{"type":"integer"}}})",
          {"[1,2]"},
          {"[1]", "[1,\"a\"]"}},
         {R"({"allOf":[{"$ref":"#/definitions/a"}],"description":"x",
              "definitions":{"a":{"const":1}}})",
          {"1"},
          {"2"}},
         {R"({"allOf":[{"properties":{"a":{"const":1}},"required":["a"]},
              {"$ref":"#/$defs/b"}],"properties":{"c":{"const":3}},
              "$defs":{"b":{"type":"object","properties":{"b":{"const":2}}}}})",
          {"{\"a\":1}", "{\"a\":1,\"b\":2,\"c\":3}"},
          {"{\"b\":2}", "{}", "{\"a\":1,\"d\":4}"}},
         {R"({"oneOf":[{"type":"string"},{"type":"null"},{"type":"array","items":{"const":1}}]})",
          {"\"a\"", "null", "[1,1]"},
          {"1", "[2]"}},
         {R"({"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}],
              "discriminator":{"propertyName":"kind"},
              "$defs":{"cat":{"type":"object","properties":{"kind":{"const":"cat"},
                "lives":{"type":"integer"}},"required":["kind","lives"]},
                "dog":{"type":"object","properties":{"kind":{"enum":["dog","hound"]}},
                "required":["kind"]}}})",
          {R"({"kind":"cat","lives":9})", R"({"kind":"hound"})"},
          {R"({"kind":"cat"})", R"({"kind":"cow"})", R"({"kind":"dog","lives":1})"}}});
}

TEST_CASE("parts of allOf hold together, and each looks at its own properties") {
  check({{R"({"allOf":[{"properties":{"a":{}}}],"additionalProperties":false})",
          {"{}"},
          {"{\"a\":1}"}},
         {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},
              {"properties":{"b":{}}}]})",
          {"{}", "{\"a\":1}"},
          {"{\"b\":1}", "{\"a\":1,\"b\":1}"}},
         {R"({"allOf":[{"properties":{"a":{}}},{"additionalProperties":{"type":"integer"}}]})",
          {"{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":2}"},
          {"{\"a\":\"s\"}", "{\"b\":\"s\"}"}},
         {R"({"allOf":[{"additionalProperties":{"type":"integer"}},{"additionalProperties":{}}]})",
          {"{}", "{\"x\":1}"},
          {"{\"x\":\"s\"}"}},
         {R"({"allOf":[{"required":["x"]},{"additionalProperties":{"type":"integer"}}]})",
          {"{\"x\":1}"},
          {"{}", "{\"x\":\"s\"}"}},
         {R"({"allOf":[true,{"type":"string"},{}]})", {"\"a\""}, {"1"}},
         {R"({"allOf":[true,{}]})", {"1", "{}"}, {""}},
         {R"({"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"object",
              "properties":{"n":{"type":"integer"}}}}})",
          {"{\"n\":1}"},
          {"{\"n\":\"s\"}"}}});
}

TEST_CASE("members that are not evaluated are not there") {
  check({{R"({"type":"object","unevaluatedProperties":false})", {"{}"}, {"{\"a\":0}"}},
         {R"({"type":"object","unevaluatedProperties":false,"maxProperties":2})",
          {"{}"},
          {"{\"a\":0}"}},
         {R"({"properties":{"a":{}},"unevaluatedProperties":{"type":"null"}})",
          {"{\"a\":0}", "{\"a\":0,\"b\":null}"},
          {"{\"b\":0}"}},
         {R"({"type":"object","additionalProperties":true,"unevaluatedProperties":false})",
          {"{\"a\":0}"},
          {"1"}}});
}

TEST_CASE("what is false takes nothing, and what need not be there may be false") {
  check({{R"({"properties":{"a":false,"b":{"type":"null"}},"additionalProperties":{}})",
          {"{}", "{\"b\":null}", "{\"c\":1}"},
          {"{\"a\":1}", "{\"a\":null}"}},
         {R"({"anyOf":[false,{"type":"null"}]})", {"null"}, {"1"}},
         {R"({"oneOf":[false,{"type":"null"}]})", {"null"}, {"1"}},
         {R"({"type":"array","items":false})", {"[]"}, {"[1]"}},
         {R"({"type":"array","prefixItems":[{"type":"null"},false]})",
          {"[]", "[null]"},
          {"[null,1]"}}});
}

TEST_CASE("members that are only required come as required has them") {
  check({{R"({"type":"object","required":["b","a"]})",
          {"{\"b\":1,\"a\":2}"},
          {"{\"a\":2,\"b\":1}", "{\"b\":1}"}}});
}

TEST_CASE("alternatives of oneOf exclude each other") {
  check({{R"({"oneOf":[{"const":"a"},{"enum":["b",1]},{"const":1.5}]})",
          {"\"a\"", "\"b\"", "1", "1.5"},
          {"2"}},
         {R"({"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},
              {"properties":{"k":{"const":"b"}},"required":["k"]}]})",
          {"{\"k\":\"a\"}", "{\"k\":\"b\"}"},
          {"1", "{}", "{\"k\":\"c\"}"}}});
}

TEST_CASE("references are read as URIs, within their own resource") {
  check({{R"({"properties":{"p":{"$ref":"#/$defs/a%20b"},"q":{"$ref":"#/$defs/100%25"},
              "r":{"$ref":"#/$defs/x~0%7E1y"}},
              "$defs":{"a b":{"const":1},"100%":{"const":2},"x~/y":{"const":3}}})",
          {R"({"p":1,"q":2,"r":3})"},
          {R"({"p":2})"}},
         {R"({"properties":{"a":{"$id":"http://example.org/a","properties":
                {"b":{"$ref":"#/$defs/x"},"c":{"$ref":"#"}},"$defs":{"x":{"type":"string"}}},
              "d":{"$ref":"#/$defs/x"},"e":{"$ref":"#/properties/a/properties/b"}},
              "$defs":{"x":{"type":"integer"}}})",
          {R"({"a":{"b":"s","c":{"b":"t"}},"d":1,"e":"s"})"},
          {R"({"a":{"b":1}})", R"({"d":"s"})", R"({"a":{"c":{"b":1}}})", R"({"e":1})"}},
         {R"({"properties":{"$id":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"integer"}}})",
          {R"({"$id":1})"},
          {R"({"$id":"x"})"}}});
}

TEST_CASE("schemas may refer to themselves") {
  check({{R"({"type":"object","properties":{"value":{"type":"integer"},
              "next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["value","next"]})",
          {R"({"value":1,"next":null})", R"({"value":1,"next":{"value":2,"next":null}})"},
          {R"({"value":1})", R"({"value":1,"next":{"value":2}})"}},
         {R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"array",
              "items":{"$ref":"#/$defs/tree"}}}})",
          {"[]", "[[],[[]]]"},
          {"[1]", "[[]"}},
         {R"({"properties":{"a/b~c":{"type":"null"},"again":{"$ref":"#/properties/a~1b~0c"}}})",
          {R"({"a/b~c":null,"again":null})"},
          {R"({"again":1})"}}});
  CHECK_THROWS_AS(states_of(R"({"$ref":"#"})"), model::json_schema_error);
  CHECK_THROWS_AS(
      states_of(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"),
      grammar_error);
}
