// References, and the parts of a schema that have names.
#include "model/grammar/json_schema/json_schema_resources.hpp"
#include "model/grammar/json_schema/uri_reference.hpp"
#include "tests/model/grammar/json_schema/json_schema_support.hpp"

using namespace lamella;
using tests::schemas::check;
using tests::schemas::states_of;

TEST_CASE("references are resolved against a base as the RFC's examples are") {
  const std::string base = "http://a/b/c/d;p?q";
  struct row {
    const char* reference;
    const char* resolved;
  };
  for (const auto& x :
       {row{"g", "http://a/b/c/g"}, row{"./g", "http://a/b/c/g"}, row{"g/", "http://a/b/c/g/"},
        row{"/g", "http://a/g"}, row{"//g", "http://g"}, row{"?y", "http://a/b/c/d;p?y"},
        row{"g?y#s", "http://a/b/c/g?y"}, row{"", "http://a/b/c/d;p?q"}, row{".", "http://a/b/c/"},
        row{"..", "http://a/b/"}, row{"../g", "http://a/b/g"}, row{"../..", "http://a/"},
        row{"../../../g", "http://a/g"}, row{"/./g", "http://a/g"}, row{"g:h", "g:h"},
        row{"./g/.", "http://a/b/c/g/"}, row{"g/../h", "http://a/b/c/h"}}) {
    CAPTURE(x.reference);
    CHECK(model::resolved_uri(base, x.reference) == x.resolved);
  }
  CHECK(model::resolved_uri("", "a.json") == "a.json");
  CHECK(model::resolved_uri("a/b.json", "c.json") == "a/c.json");
  CHECK(model::resolved_uri("urn:x:1", "#y") == "urn:x:1");
  CHECK(model::fragment_of("a#b") == "b");
  CHECK(model::fragment_of("a").empty());
}

TEST_CASE("keywords that no draft has are named and counted, where schemas are") {
  const auto found =
      model::unknown_keywords(parse_json(R"({"$schema":"x","title":"t","nullable":true,
      "type":"object","x-order":1,"properties":{"nullable":{"nullable":false,"format":"ipv4"},
      "b":{"enum":[{"inner":1}],"x-unit":{"type":"string"},"contains":{},"minContains":1}},
      "default":{"other":1},"anyOf":[{"x-order":2},true]})"));
  using named = std::vector<std::tuple<std::string, size_t, std::string>>;
  named told;
  for (const auto& x : found) told.emplace_back(x.name, x.count, x.pointer);
  CHECK(told
        == named{{"nullable", 2, "/nullable"},
                 {"x-order", 2, "/x-order"},
                 {"x-unit", 1, "/properties/b/x-unit"}});
  CHECK(model::unknown_keywords(parse_json("true")).empty());
}

TEST_CASE("anchors are found, each in the resource that it is part of") {
  check({{R"({"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"integer"}}})", {"1"}, {"\"a\""}},
         {R"({"$ref":"#x","definitions":{"a":{"$id":"#x","type":"integer"}}})", {"1"}, {"\"a\""}},
         {R"({"$id":"http://h/root","$ref":"http://h/nested#x","$defs":{
              "a":{"$id":"nested","$defs":{"b":{"$anchor":"x","type":"integer"}}},
              "b":{"$anchor":"x","type":"string"}}})",
          {"1"},
          {"\"a\""}},
         // What stands in a constant, or in a keyword that no draft has, is no schema.
         {R"({"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"integer"},
              "b":{"const":{"$anchor":"x"}},"c":{"unknown":{"$anchor":"x"}}}})",
          {"1"},
          {"\"a\""}}});
}

TEST_CASE("URIs name parts of the document, wherever they are") {
  check({{R"({"$id":"http://h/dir/root","$ref":"item","$defs":{
              "a":{"$id":"item","type":"array","items":{"$ref":"other#/$defs/n"}},
              "b":{"$id":"other","$defs":{"n":{"type":"integer"}}}}})",
          {"[1]"},
          {"1", "[\"a\"]"}},
         {R"({"$id":"urn:uuid:1","type":"array","items":{"$ref":"urn:uuid:1#/$defs/n"},
              "$defs":{"n":{"type":"integer"}}})",
          {"[1]"},
          {"[\"a\"]"}},
         {R"({"$id":"tree","type":"object","properties":{"value":{"type":"integer"},
              "nodes":{"type":"array","items":{"$ref":"tree"}}}})",
          {R"({"value":1,"nodes":[{"value":2,"nodes":[]}]})"},
          {R"({"value":1,"nodes":[{"value":"a"}]})"}}});
}

TEST_CASE("dynamic references are followed where every way leads to the same schema") {
  check({// The document has the name: whatever leads there, it is the outermost.
         {R"({"$id":"http://h/strings","$ref":"list","$defs":{
              "foo":{"$dynamicAnchor":"items","type":"string"},
              "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#items"},
                "$defs":{"items":{"$dynamicAnchor":"items"}}}}})",
          {"[\"a\"]"},
          {"[1]"}},
         // One resource alone has it.
         {R"({"$ref":"#/$defs/list","$defs":{
              "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#items"},
                "$defs":{"items":{"$dynamicAnchor":"items","type":"string"}}}}})",
          {"[\"a\"]"},
          {"[1]"}},
         // A reference to an $anchor, or with a pointer, is no dynamic one.
         {R"({"type":"array","items":{"$dynamicRef":"#items"},
              "$defs":{"foo":{"$anchor":"items","type":"string"}}})",
          {"[\"a\"]"},
          {"[1]"}},
         {R"({"type":"object","properties":{"a":{"$recursiveRef":"#"}},
              "additionalProperties":false})",
          {R"({"a":{"a":{}}})"},
          {R"({"a":1})", R"({"a":{"b":1}})"}}});
}

TEST_CASE("what a dynamic reference means by the way to it is refused") {
  const auto* schema = R"({"anyOf":[{"$ref":"a"},{"$ref":"b"}],"$defs":{
      "a":{"$id":"a","$ref":"list","$defs":{"i":{"$dynamicAnchor":"i","type":"string"}}},
      "b":{"$id":"b","$ref":"list","$defs":{"i":{"$dynamicAnchor":"i","type":"null"}}},
      "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#i"},
        "$defs":{"i":{"$dynamicAnchor":"i"}}}}})";
  try {
    states_of(schema);
    FAIL("was taken");
  } catch (const model::json_schema_error& e) {
    CHECK(e.pointer == "/$defs/list/items/$dynamicRef");
    CHECK_MESSAGE(e.problem.find("depends on the way") != std::string::npos, e.problem);
  }
}
