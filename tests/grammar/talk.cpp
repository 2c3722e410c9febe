// Tells an oracle what grammars take, and draws texts of them: one JSON object per line on standard
// input, one per line back.
//   {"schema": S or "regex": R or "grammar": G, "take": [TEXT ...], "draw": N, "seed": S}
//   {"taken": [true ...], "drawn": [TEXT ...], "compile_ms": T, "search_ms": T} or {"error": WHY}
#include "base/json_writer.hpp"
#include "model/grammar/ambiguity.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/grammar/text/grammar_text.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <ctime>
#include <iostream>
#include <optional>

using namespace lamella;

namespace {

struct made_states {
  std::optional<model::grammar_states> states;
  double compile_ms = 0, search_ms = 0;
};

made_states states_of(const json_value& question) {
  const auto now = [] { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const auto begin = now(); // of the processor: others may run beside it
  const auto* said = question.find("reading");
  const auto reading = said != nullptr && *said == json_value("standard")
                           ? model::schema_reading::standard
                           : model::schema_reading::usual;
  const auto build = [&](model::grammar& g, auto next) {
    if (const auto* schema = question.find("schema"))
      return model::json_schema_grammar(g, *schema, next, reading);
    if (const auto* text = question.find("grammar"))
      return model::grammar_of_text(g, *text->get_if<std::string>(), next);
    return model::regular_expression::parse(*question.find("regex")->get_if<std::string>(),
                                            model::regular_expression::reading::python)
        .compile(g, model::regular_expression::match::whole, model::spelling::plain, next);
  };
  model::grammar g;
  g.begin(0, build(g, g.end()));
  const auto made = std::make_shared<model::runnable_grammar>(std::move(g), tests::all_bytes());
  const auto compiled = now();
  model::refuse_ambiguous(made);
  made_states result{.states = {}, .compile_ms = compiled - begin};
  result.search_ms = now() - compiled;
  result.states.emplace(made, 256);
  return result;
}

std::string answer_to(const json_value& question) {
  json_value::array taken, drawn;
  auto made = states_of(question);
  auto& states = *made.states;
  if (const auto* texts = question.find("take"))
    for (const auto& text : *texts->get_if<json_value::array>())
      taken.emplace_back(tests::takes(states, *text.get_if<std::string>()));
  if (const auto* count = question.find("draw")) {
    tests::splitmix random{static_cast<uint64_t>(*question.find("seed")->get_if<int64_t>())};
    for (int64_t i = 0; i < *count->get_if<int64_t>(); ++i)
      drawn.emplace_back(tests::draw_text(states, random));
  }
  json_value::object answer;
  answer.emplace_back("taken", std::move(taken));
  answer.emplace_back("drawn", std::move(drawn));
  answer.emplace_back("compile_ms", json_value{made.compile_ms});
  answer.emplace_back("search_ms", json_value{made.search_ms});
  return to_json(json_value{std::move(answer)});
}

} // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer_to(parse_json(line, {.depth = 128})) << std::endl;
    } catch (const std::exception& e) {
      json_value::object answer;
      answer.emplace_back("error", json_value{e.what()});
      std::cout << to_json(json_value{std::move(answer)}) << std::endl;
    }
  }
}
