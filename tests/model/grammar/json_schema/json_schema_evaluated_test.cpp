// What is evaluated by schemas beside, items that are counted, and opposites of members.
#include "tests/model/grammar/json_schema/json_schema_support.hpp"

using namespace lamella;
using tests::schemas::check;

TEST_CASE("a member is evaluated by whichever alternatives hold") {
  check(
      {{R"({"type":"object","anyOf":[{"properties":{"a":{"const":1}},"required":["a"]},
              {"properties":{"b":{"const":2}},"required":["b"]}],"unevaluatedProperties":false})",
        {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
        {"{}", R"({"a":1,"c":0})", R"({"a":1,"b":3})"}},
       {R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},
              "then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}},
              "unevaluatedProperties":false})",
        {R"({"a":1,"b":0})", R"({"c":0})", "{}"},
        {R"({"a":1,"c":0})", R"({"b":0})", R"({"a":2})"}},
       {R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},
              "unevaluatedProperties":false})",
        {R"({"a":1})", "{}"},
        {R"({"a":2})", R"({"b":1})"}},
       {R"({"type":"object","properties":{"a":{}},"dependentSchemas":{"a":{"properties":{"b":{}}}},
              "unevaluatedProperties":false})",
        {R"({"a":1,"b":1})", "{}"},
        {R"({"b":1})", R"({"a":1,"c":1})"}},
       {R"({"type":"object","allOf":[{"patternProperties":{"^x":{}}}],
              "unevaluatedProperties":false})",
        {R"({"x1":1})"},
        {R"({"y":1})"}},
       {R"({"type":"object","allOf":[{"additionalProperties":{"type":"null"}}],
              "unevaluatedProperties":false})",
        {R"({"x":null})"},
        {R"({"x":1})"}}});
}

TEST_CASE("what stands beside a schema, or within not, evaluates nothing for it") {
  check({{R"({"type":"object","allOf":[{"properties":{"a":{}}},{"unevaluatedProperties":false}]})",
          {"{}"},
          {R"({"a":1})"}},
         {R"({"type":"object","not":{"not":{"properties":{"a":{}},"required":["b"]}},
              "properties":{"b":{}},"unevaluatedProperties":false})",
          {R"({"b":1})"},
          {R"({"b":1,"a":1})"}},
         // A reference makes the schema hold where its condition does not.
         {R"({"type":"object","allOf":[{"properties":{"k":{}},"if":{"required":["k"]},
              "then":{"properties":{"a":{}}},"unevaluatedProperties":false},
              {"$ref":"#/allOf/0/then"}]})",
          {R"({"k":1})", "{}"},
          {R"({"a":1})"}}});
}

TEST_CASE("items are evaluated by the schemas that hold") {
  check({{R"({"type":"array","allOf":[{"prefixItems":[true,{"type":"string"}]}],
              "unevaluatedItems":false})",
          {"[1,\"a\"]", "[1]"},
          {"[1,\"a\",2]", "[1,2]"}},
         {R"({"type":"array","prefixItems":[{"const":1}],
              "anyOf":[{"prefixItems":[true,{"const":2}],"minItems":2},
              {"prefixItems":[true,true,{"const":3}],"minItems":3}],"unevaluatedItems":false})",
          {"[1,2]", "[1,0,3]"},
          {"[1]", "[1,3]", "[1,2,4]"}},
         {R"({"type":"array","allOf":[{"items":{"type":"integer"}}],"unevaluatedItems":false})",
          {"[]", "[1,2]"},
          {"[\"a\"]"}}});
}

TEST_CASE("items that are contained are counted") {
  check({{R"({"type":"array","items":{"type":"integer"},"contains":{"const":1},"minContains":2})",
          {"[1,1]", "[1,2,1]", "[1,1,1]"},
          {"[]", "[1]", "[1,2]"}},
         {R"({"type":"array","items":{"type":"integer"},"contains":{"const":1},"maxContains":2})",
          {"[1]", "[1,2,1]", "[2,1]"},
          {"[]", "[2]", "[1,1,1]", "[1,1,2,1]"}},
         {R"({"type":"array","items":{"type":"integer"},"contains":{"const":1},"minContains":0,
              "maxContains":1})",
          {"[]", "[2]", "[1]", "[2,1,3]"},
          {"[1,1]", "[1,2,1]"}},
         {R"({"type":"array","items":{"type":"integer"},"allOf":[{"contains":{"minimum":5}},
              {"contains":{"maximum":3}}]})",
          {"[5,3]", "[3,5,4]"},
          {"[5]", "[3]", "[4,4]"}},
         {R"({"type":"array","items":{"type":"integer"},"maxItems":3,"contains":{"const":1},
              "minContains":2,"maxContains":2})",
          {"[1,1]", "[1,1,0]"},
          {"[1]", "[1,1,1]", "[1,1,0,0]"}}});
}

TEST_CASE("multiples of decimals are told by their digits") {
  check({{R"({"type":"number","multipleOf":0.01})",
          {"0", "1", "0.5", "19.99", "-0.25", "12.30", "-3"},
          {"0.001", "1.999", "0.", "00.1", "-0", "1e2"}},
         {R"({"type":"number","multipleOf":1.5})",
          {"1.5", "3", "4.5", "0", "-7.5", "3.0"},
          {"1", "2.5", "0.5", "1.50"}},
         {R"({"type":"number","multipleOf":0.25,"exclusiveMinimum":0})",
          {"0.25", "0.50", "10.75"},
          {"0", "0.00", "0.1", "-0.25"}},
         {R"({"type":"number","multipleOf":0.5,"minimum":-1,"maximum":1})",
          {"-1", "-0.5", "0", "0.5", "1"},
          {"1.5", "0.25", "-1.5"}},
         {R"({"type":"integer","allOf":[{"multipleOf":4},{"multipleOf":6}]})",
          {"12", "0", "-24"},
          {"4", "6", "8"}},
         {R"({"type":"integer","multipleOf":1.5})", {"3", "0", "-6"}, {"1", "2", "1.5"}}});
}

TEST_CASE("members tell an object from one that patterns, names or others must not take") {
  check({{R"({"type":"object","properties":{"x1":{},"y":{}},
              "not":{"patternProperties":{"^x":{"type":"integer"}}}})",
          {R"({"x1":"a"})", R"({"x1":null,"y":1})"},
          {"{}", R"({"x1":1})", R"({"y":"a"})"}},
         {R"({"type":"object","properties":{"a":{},"b":{}},
              "not":{"properties":{"a":true},"additionalProperties":{"type":"integer"}}})",
          {R"({"b":"x"})", R"({"a":1,"b":null})"},
          {"{}", R"({"b":1})", R"({"a":"x"})"}},
         {R"({"type":"object","properties":{"a":{},"bb":{}},
              "not":{"propertyNames":{"maxLength":1}}})",
          {R"({"bb":1})"},
          {"{}", R"({"a":1})"}},
         {R"({"type":"array","not":{"prefixItems":[true,{"type":"integer"}]}})",
          {"[1,\"a\"]", "[null,null,1]"},
          {"[]", "[1]", "[1,2]"}}});
}

TEST_CASE("numbers that have a fraction are told from integers by oneOf") {
  check({{R"({"oneOf":[{"type":"number"},{"type":"number","not":{"type":"integer"}}]})",
          {"1", "-20"},
          {"1.5"}},
         {R"({"oneOf":[{"type":"number"},{"const":1.5,"not":{"type":"integer"}}]})",
          {"1", "2"},
          {"1.5"}}});
}
