#include "tests/model/grammar/json_schema/json_schema_support.hpp"

using namespace lamella;
using model::json_schema_error;

namespace {

uint64_t work_of(const json_value& schema) {
  model::grammar g;
  model::json_schema_grammar(g, schema, g.end());
  return g.work();
}

json_value::object enumeration_of(json_value value) {
  return {{"enum", json_value::array{std::move(value)}}};
}

/// That many schemas, of the same value.
json_value with_all_of(json_value::object schema, int count, const json_value& other) {
  schema.emplace_back("allOf", json_value::array(static_cast<size_t>(count), other));
  return json_value(std::move(schema));
}

} // namespace

TEST_CASE("automata, texts and constants are counted as work by their size") {
  const auto beside_pattern = [](const std::string& expression) {
    auto schema = enumeration_of("a");
    schema.emplace_back("pattern", expression);
    return json_value(std::move(schema));
  };
  CHECK(work_of(beside_pattern("a|b")) < 500);
  CHECK(work_of(beside_pattern("a|.{600}" + tests::class_of(100) + "$")) > 20'000);
  CHECK_THROWS_WITH_AS(work_of(beside_pattern("^(.{0,1800}|" + tests::class_of(850) + ")$")),
                       doctest::Contains("edges"), json_schema_error);

  const json_value lengths{json_value::object{{"maxLength", 1'000'000}}};
  const json_value text{std::string(100'000, 'a')};
  CHECK(work_of(with_all_of(enumeration_of(text), 10, lengths)) > 50'000);

  json_value::array numbers;
  for (int i = 0; i < 10'000; ++i) numbers.emplace_back(i);
  const json_value zero{json_value::object{{"not", json_value::object{{"const", 0}}}}};
  CHECK(work_of(with_all_of(enumeration_of(numbers), 10, zero)) > 50'000);
  const json_value unique{json_value::object{{"uniqueItems", true}}};
  CHECK(work_of(with_all_of(enumeration_of(numbers), 10, unique)) > 50'000);
}
