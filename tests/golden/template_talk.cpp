/// For public_templates.py: a golden file on stdin, as chat_template_golden.py writes them but
/// without results; on stdout, for each case and template in their order, a line of JSON with what
/// came of it.
#define DOCTEST_CONFIG_IMPLEMENT
#include "base/json_writer.hpp"
#include "tests/model/chat/chat_template_fixture.hpp"

#include <cstdio>
#include <iostream>
#include <iterator>

using namespace lamella;

int main() {
  doctest::Context checks; // of what tests and this program share
  checks.setAsDefaultForAssertsOutOfTestCases();
  checks.setAssertHandler([](const doctest::AssertData&) {});
  const auto file =
      parse_json(std::string{std::istreambuf_iterator<char>{std::cin}, {}}, {.depth = 128});
  for (const auto& x : *file.find("cases")->get_if<json_value::array>()) {
    const auto input = model::test::input_of(file, *x.find("input"));
    for (const auto& [name, source] : *file.find("templates")->get_if<json_value::object>())
      std::puts(
          to_json(json_value{model::test::outcome(*source.get_if<std::string>(), input)}).c_str());
  }
}
