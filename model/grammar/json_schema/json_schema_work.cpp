// The bound of the work that schemas cost, counted in steps for all schemas of a grammar.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <vector>

namespace lamella::model {

namespace {

constexpr size_t bytes_of_step = 32; ///< of a pointer

/// Values of a document, those within others included; counted up to that bound.
uint64_t count_values(const json_value& document, uint64_t most) {
  uint64_t count = 0;
  std::vector<const json_value*> to_do{&document};
  while (!to_do.empty() && count < most) {
    const auto* at = to_do.back();
    to_do.pop_back();
    ++count;
    if (const auto* items = at->get_if<json_value::array>())
      for (const auto& x : *items) to_do.push_back(&x);
    if (const auto* members = at->get_if<json_value::object>())
      for (const auto& [name, x] : *members) to_do.push_back(&x);
  }
  return count;
}

} // namespace

json_schema_compiler::json_schema_compiler(grammar& g, const json_value& root,
                                           schema_reading reading)
    : grammar_{g}, json_{g}, references_{root}, reading_{reading} {
  constexpr uint64_t values_of_step = 8;
  spend("", 0);
  spend("", count_values(root, values_of_step * steps_max) / values_of_step);
}

void json_schema_compiler::spend(const std::string& pointer, uint64_t steps) {
  constexpr size_t shown_bytes_max = 512;
  grammar_.add_work(steps + pointer.size() / bytes_of_step);
  if (grammar_.work() > steps_max)
    throw json_schema_error(pointer.substr(0, shown_bytes_max),
                            "is where compiling takes more than " + std::to_string(steps_max)
                                + " steps; use a smaller schema, with shorter names, or fewer");
}

void json_schema_compiler::spend_on_bytes(const std::string& pointer, uint64_t bytes) {
  constexpr uint64_t bytes_of_step = 16; // read, compared, or written as a key
  spend(pointer, bytes / bytes_of_step);
}

text_automaton json_schema_compiler::spent(const schema_view& x, text_automaton made) {
  constexpr uint64_t looks_of_step = 64;
  spend(x.pointer(), made.work() / looks_of_step);
  return made;
}

void json_schema_compiler::spend_on_places(const schema_view& x, uint64_t places) {
  constexpr uint64_t places_of_step = 8; // they are looked at one by one later, if at all
  spend(x.pointer(), places * (1 + x.pointer().size() / bytes_of_step) / places_of_step);
}

} // namespace lamella::model
