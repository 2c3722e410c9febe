// Schemas that nest, refer and repeat as far as anyone may send: compiled on a small stack, in
// places and work that grow with the schema, or refused with the place.
#include "model/grammar/json_schema/json_schema.hpp"

#include "tests/model/grammar/grammar_support.hpp"
#include "tests/small_stack.hpp"

#include <doctest/doctest.h>

#include <optional>

using namespace lamella;
using model::grammar;
using model::json_schema_error;
using tests::takes;

namespace {

constexpr json_limits wide{.depth = 8'000, .object_members = 100'000};

/// Compiled and looked through, as for a request, on a small stack.
model::grammar_states states_of(const std::string& text) {
  const auto schema = parse_json(text, wide);
  std::optional<model::grammar_states> made;
  tests::on_small_stack([&] {
    made.emplace(tests::states_of(
        [&](grammar& g, auto next) { return model::json_schema_grammar(g, schema, next); }));
  });
  return std::move(*made);
}

size_t places_of(const std::string& schema) {
  grammar g;
  g.begin(0, model::json_schema_grammar(g, parse_json(schema, wide), g.end()));
  return g.nodes().size();
}

std::string nested(const std::string& open, const std::string& close, int depth,
                   const std::string& inner) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inner;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

/// `depth` definitions, each `OPEN {"$ref": to the next} CLOSE`; the last is `last`.
std::string definitions(int depth, const std::string& open, const std::string& close,
                        const std::string& last) {
  std::string text = R"("$defs":{)";
  for (int i = 0; i < depth; ++i)
    text += "\"d" + std::to_string(i) + "\":" + open + R"({"$ref":"#/$defs/d)"
            + std::to_string(i + 1) + "\"}" + close + ",";
  return text + "\"d" + std::to_string(depth) + "\":" + last + "}";
}

std::string chain(int depth, const std::string& open, const std::string& close,
                  const std::string& last) {
  return R"({"$ref":"#/$defs/d0",)" + definitions(depth, open, close, last) + "}";
}

} // namespace

TEST_CASE("schemas nest as deeply as they may on a small stack") {
  const std::string last = R"({"type":"integer"})";
  for (const auto& [open, close] : std::vector<std::pair<std::string, std::string>>{
           {R"({"properties":{"a":)", "}}"},
           {R"({"type":"object","required":["a"],"additionalProperties":)", "}"},
           {R"({"type":"object","minProperties":1,"additionalProperties":)", "}"},
           {R"({"type":"array","items":)", "}"},
           {R"({"prefixItems":[{"type":"null"},)", "]}"},
           {R"({"anyOf":[{"type":"null"},)", "]}"},
           {R"({"allOf":[)", "]}"},
           {R"({"allOf":[{"required":["b"]},{"properties":{"a":)", "}}]}"},
           {R"({"oneOf":[{"type":"null"},{"type":"array","items":)", "}]}"},
           {R"({"anyOf":[{"type":"null"},{"properties":{"a":{"items":)", "}}}]}"}}) {
    CAPTURE(open);
    CHECK_NOTHROW(states_of(nested(open, close, 500, last)));
  }
}

TEST_CASE("chains of references are as long as they may be") {
  const std::string last = R"({"type":"object","properties":{"z":{"const":1}}})";
  for (const auto& [open, close] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {R"({"allOf":[)", "]}"},
           {R"({"anyOf":[)", "]}"},
           {R"({"properties":{"a":)", "}}"},
           {R"({"type":"object","properties":{"a":{"allOf":[)", R"(,{"type":"object"}]}}})"}}) {
    CAPTURE(open);
    auto states = states_of(chain(3'000, open, close, last));
    if (open.empty() || open.starts_with(R"({"a)")) CHECK(takes(states, R"({"z":1})"));
  }
  // Within allOf what is behind references is merged.
  auto merged = states_of(R"({"allOf":[{"type":"object"},{"$ref":"#/$defs/d0"}],)"
                          + definitions(3'000, "", "", last) + "}");
  CHECK(takes(merged, R"({"z":1})"));
}

TEST_CASE("64,000 rules in a chain cost no more than their number") {
  auto states = states_of(chain(64'000, "", "", R"({"const":1})"));
  CHECK(takes(states, "1"));
  CHECK_FALSE(takes(states, "2"));
}

TEST_CASE("schemas meet themselves within allOf") {
  auto own = states_of(R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":
      {"allOf":[{"$ref":"#/$defs/a"},{"type":"object"}]}}}}})");
  CHECK(takes(own, R"({"b":{"b":{"b":{}}}})"));
  CHECK_FALSE(takes(own, R"({"b":{"b":{"b":1}}})"));
  CHECK_FALSE(takes(own, R"({"b":{"c":{}}})"));
  auto each_other = states_of(R"({"$ref":"#/$defs/a","$defs":{
      "a":{"type":"object","properties":{"x":{"allOf":[{"$ref":"#/$defs/b"},{"required":["y"]}]}}},
      "b":{"type":"object","properties":{"y":{"allOf":[{"$ref":"#/$defs/a"},{}]}}}}})");
  CHECK(takes(each_other, R"({"x":{"y":{"x":{"y":{}}}}})"));
  CHECK_FALSE(takes(each_other, R"({"x":{}})"));
  CHECK_THROWS_AS(states_of(R"({"allOf":[{"$ref":"#"},{"type":"object"}]})"), json_schema_error);
  CHECK_THROWS_AS(states_of(R"({"allOf":[{"$ref":"#/$defs/a"},{"type":"object"}],
      "$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"),
                  json_schema_error);
}

TEST_CASE("what is met twice is made once") {
  // Two ways to each next one: each would double the places.
  std::string schema = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 200; ++i) {
    const auto next =
        R"({"allOf":[{"type":"object"},{"$ref":"#/$defs/d)" + std::to_string(i + 1) + R"("}]})";
    schema += "\"d" + std::to_string(i) + R"(":{"type":"object","properties":{"x":)" + next
              + R"(,"y":)" + next + "}},";
  }
  auto states = states_of(schema + R"("d200":{"type":"object"}}})");
  CHECK(takes(states, R"({"x":{"y":{}},"y":{"x":{}}})"));

  const auto of_arrays = [](int depth) {
    return places_of(
        nested(R"({"type":"array","minItems":1,"items":)", "}", depth, R"({"type":"number"})"));
  };
  CHECK(of_arrays(200) - of_arrays(100) < 2 * (of_arrays(100) - of_arrays(50)) + 100);
  const auto of_maps = [](int depth) {
    return places_of(nested(R"({"type":"object","minProperties":1,"additionalProperties":)", "}",
                            depth, R"({"type":"number"})"));
  };
  CHECK(of_maps(200) - of_maps(100) < 2 * (of_maps(100) - of_maps(50)) + 100);
  const auto of_members = [](int count, const char* type) {
    std::string text = R"({"type":"object","properties":{)";
    for (int i = 0; i < count; ++i)
      text += (i > 0 ? ",\"m" : "\"m") + std::to_string(1'000 + i) + "\":" + type;
    return places_of(text + "}}");
  };
  for (const auto* type : {R"({"type":"number","minimum":-1.5,"exclusiveMaximum":180})",
                           R"({"type":"string","format":"date-time"})",
                           R"({"type":"string","pattern":"^[a-f0-9]{8}-[\\wäöü]{3}$"})"}) {
    CAPTURE(type);
    CHECK(of_members(400, type) - of_members(200, type) < 200 * 30);
  }
}

TEST_CASE("collections of shapes that nest arrays of numbers are taken") {
  const std::string position = R"({"type":"array","minItems":2,"items":{"type":"number"}})";
  const auto array_of = [](const std::string& items) {
    return R"({"type":"array","minItems":2,"items":)" + items + "}";
  };
  const auto shape = [](const std::string& type, const std::string& coordinates) {
    return R"({"type":"object","required":["type","coordinates"],"properties":{"type":{"enum":[")"
           + type + R"("]},"coordinates":)" + coordinates
           + R"(,"bbox":{"type":"array","minItems":4,"items":{"type":"number"}}}})";
  };
  const auto line = array_of(position), polygon = array_of(line), polygons = array_of(polygon);
  const auto geometry = R"({"oneOf":[)" + shape("Point", position) + "," + shape("LineString", line)
                        + "," + shape("Polygon", polygon) + "," + shape("MultiPolygon", polygons)
                        + "]}";
  const auto feature =
      R"({"type":"object","required":["type","geometry"],"properties":{"type":{"enum":["Feature"]},
         "geometry":)"
      + geometry + "}}";
  const auto collection =
      R"({"oneOf":[)" + feature
      + R"(,{"type":"object","required":["type","features"],"properties":{"type":
         {"enum":["FeatureCollection"]},"features":{"type":"array","items":)"
      + feature + "}}}]}";
  auto states = states_of(collection);
  CHECK(takes(states, R"({"type":"FeatureCollection","features":[{"type":"Feature","geometry":
{"type":"Polygon","coordinates":[[[0,1.5],[2,-3]],[[0,0],[1e3,1]]]}}]})"));
  CHECK_FALSE(takes(states, R"({"type":"Feature","geometry":{"type":"Point","coordinates":[1]}})"));
}

TEST_CASE("a long name above many places costs no more than the bound of paths") {
  const std::string name(100 << 10, 'n');
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) many += i > 0 ? ",{}" : "{}";
  many[0] = '[';
  many += "]";
  // 10 GB of paths; nothing refers to them, but unknown keywords and names are looked for.
  const auto unused = R"({"type":"string","$defs":{")" + name + R"(":{"anyOf":)" + many + "}}}";
  CHECK(model::unknown_keywords(parse_json(unused)).empty());
  auto states = states_of(unused); // no reference, so no path is needed
  CHECK(takes(states, R"("a")"));
  for (const auto* keyword : {"anyOf", "allOf", "oneOf", "not"}) {
    CAPTURE(keyword);
    const std::string list = *keyword == 'n' ? R"("not":{"oneOf":)" + many + "}"
                                             : "\"" + std::string(keyword) + "\":" + many;
    const auto used =
        R"({"$ref":"#/$defs/)" + name + R"(","$defs":{")" + name + "\":{" + list + "}}}";
    try {
      states_of(used);
      FAIL("was taken");
    } catch (const json_schema_error& e) {
      CHECK(std::string{e.what()}.size() < 2'000);
    }
  }
}

TEST_CASE("all schemas of one grammar share the bound of its work") {
  std::string schema = R"({"type":"object","properties":{"p":{"type":"null"})";
  schema += R"(},"$defs":{"many":[0)";
  for (int i = 0; i < 200'000; ++i) schema += ",0";
  const auto document = parse_json(schema + "]}}");
  model::grammar g;
  int taken = 0;
  try {
    for (; taken < 1'024; ++taken) model::json_schema_grammar(g, document, g.end());
    FAIL("all were taken");
  } catch (const json_schema_error& e) {
    CHECK(std::string{e.what()}.find("steps") != std::string::npos);
  }
  CHECK(taken > 4);
  CHECK(taken < 128);
}

TEST_CASE("more work than its size is refused with its place") {
  // Each of many allOf merges an object of many members.
  std::string many = R"({"type":"object","properties":{)", schema = R"({"$defs":{"many":)";
  for (int i = 0; i < 1'000; ++i)
    many += (i > 0 ? ",\"" : "\"") + std::string("m") + std::to_string(i) + R"(":{"type":"null"})";
  schema += many + R"(}}},"properties":{)";
  for (int i = 0; i < 5'000; ++i)
    schema += (i > 0 ? ",\"p" : "\"p") + std::to_string(i)
              + R"(":{"allOf":[{"$ref":"#/$defs/many"},{"additionalProperties":false}]})";
  try {
    states_of(schema + "}}");
    FAIL("was taken");
  } catch (const json_schema_error& e) {
    const bool is_merged = e.pointer.starts_with("/properties/p") || e.pointer == "/$defs/many";
    CHECK(is_merged);
    CHECK(std::string{e.what()}.find("steps") != std::string::npos);
  }
  // Each of many pointers has a long name in it.
  std::string long_name(1 << 20, 'n'), others = R"({"$ref":"#/$defs/)" + long_name;
  others += R"(","$defs":{")" + long_name + R"(":{"type":"object","properties":{)";
  for (int i = 0; i < 1'000; ++i)
    others += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + R"(":{"type":"null"})";
  try {
    states_of(others + "}}}}");
    FAIL("was taken");
  } catch (const json_schema_error& e) {
    CHECK(e.pointer.starts_with("/$defs/nnn"));
    CHECK(std::string{e.what()}.size() < 2'000);
  }
}
