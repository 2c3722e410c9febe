// Chat templates against python3-jinja2: tests/golden/chat_template_golden.py wrote the expected
// texts.
#include "model/chat_template.hpp"
#include "model/json.hpp"
#include "tests/random.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <map>

using namespace lamella::model;
using kind = chat_template_error::kind;

namespace {

json_value read(const std::string& name) {
  std::ifstream in{std::string{LAMELLA_SOURCE_DIR} + "/tests/data/" + name, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  REQUIRE_FALSE(text.empty());
  return parse_json(text);
}

template_data data_of(const json_value& x) {
  if (const auto* b = x.get_if<bool>()) return *b;
  if (const auto* n = x.get_if<int64_t>()) return *n;
  if (const auto* d = x.get_if<double>()) return *d;
  if (const auto* s = x.get_if<std::string>()) return *s;
  if (const auto* a = x.get_if<json_value::array>()) {
    template_data::list made;
    for (const auto& item : *a) made.push_back(data_of(item));
    return made;
  }
  if (const auto* o = x.get_if<json_value::object>()) {
    template_data::object made;
    for (const auto& [key, item] : *o) made.emplace_back(key, data_of(item));
    return made;
  }
  return {};
}

std::string text_at(const json_value& x, const char* key) {
  return *x.find(key)->get_if<std::string>();
}

template_input input_of(const json_value& file, const json_value& variables) {
  template_input input;
  input.bos_token = text_at(file, "bos_token");
  input.eos_token = text_at(file, "eos_token");
  input.now = std::chrono::sys_seconds{std::chrono::seconds{*file.find("now")->get_if<int64_t>()}};
  for (const auto& [key, item] : *variables.get_if<json_value::object>()) {
    if (key == "messages")
      input.messages = data_of(item);
    else if (key == "add_generation_prompt")
      input.add_generation_prompt = *item.get_if<bool>();
    else
      input.more.emplace_back(key, data_of(item));
  }
  return input;
}

/// What came of it, in the form of the golden files.
std::string outcome(const std::string& source, const template_input& input) {
  try {
    return "output: " + chat_template::compile(source).render_text(input);
  } catch (const chat_template_error& e) {
    if (e.why() == kind::raised) return std::string{"raised: "} + e.what();
    INFO(e.what());
    CHECK(e.line() >= 1);
    CHECK(std::string{e.what()}.size() > 5);
    return "error";
  }
}

std::string expected(const json_value& x) {
  if (x.find("output")) return "output: " + text_at(x, "output");
  if (x.find("raised")) return "raised: " + text_at(x, "raised");
  return "error";
}

kind why(const std::string& source, const template_input& input = {},
         const template_limits& limits = {}) {
  try {
    chat_template::compile(source).render(input, limits);
  } catch (const chat_template_error& e) {
    return e.why();
  }
  FAIL("the template rendered");
  return kind::raised;
}

std::string render(const std::string& source, const template_input& input = {}) {
  return chat_template::compile(source).render_text(input);
}

template_data message(const std::string& role, const std::string& content) {
  return template_data::object{{"role", role}, {"content", content}};
}

} // namespace

TEST_CASE("chat templates of five families render every conversation as Jinja does") {
  const auto file = read("chat_template_cases.json");
  const auto& templates = *file.find("templates")->get_if<json_value::object>();
  CHECK(templates.size() == 5);
  size_t compared = 0;
  std::map<std::string, size_t> rendered;
  for (const auto& x : *file.find("cases")->get_if<json_value::array>()) {
    const auto input = input_of(file, *x.find("input"));
    for (const auto& [name, source] : templates) {
      CAPTURE(name);
      CAPTURE(compared);
      const auto wanted = expected(*x.find("results")->find(name));
      CHECK(outcome(*source.get_if<std::string>(), input) == wanted);
      rendered[name] += wanted.starts_with("output") ? 1 : 0;
      ++compared;
    }
  }
  CHECK(compared == 300);
  for (const auto& [name, count] : rendered) {
    CAPTURE(name);
    CHECK(count >= 20); // a template that mostly refuses would compare nothing
  }
}

TEST_CASE("small templates of every feature render as Jinja does") {
  const auto file = read("chat_template_snippets.json");
  const auto& snippets = *file.find("snippets")->get_if<json_value::array>();
  CHECK(snippets.size() >= 150);
  auto input = input_of(file, *file.find("variables"));
  input.messages = data_of(*file.find("messages"));
  for (const auto& x : snippets) {
    const auto source = text_at(x, "source");
    CAPTURE(source);
    CHECK(outcome(source, input) == expected(x));
  }
}

// Text of a client never becomes scaffolding, whatever a template does to it.
TEST_CASE("text from messages is untrusted through every operation") {
  const std::string rows[] = {"{{ c }}",
                              "{{ c|trim }}",
                              "{{ c[1:-1] }}",
                              "{{ c[0] ~ c[1:] }}",
                              "{{ '' ~ c ~ '' }}",
                              "{{ c + '' }}",
                              "{{ c * 2 }}",
                              "{{ c|upper|lower }}",
                              "{{ c.strip() }}",
                              "{{ c.split('Z')[0] }}",
                              "{{ c.split()|join('') }}",
                              "{{ c|replace('x', 'y') }}",
                              "{{ 'x'.replace('x', c) }}",
                              "{{ ''.join([c, c]) }}",
                              "{{ [c]|join }}",
                              "{{ c|list|join }}",
                              "{{ c|reverse|reverse }}",
                              "{% set x = c %}{{ x }}",
                              "{% set x %}{{ c }}{% endset %}{{ x }}",
                              "{% filter trim %}{{ c }}{% endfilter %}",
                              "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c) }}",
                              "{% for ch in c %}{{ ch }}{% endfor %}",
                              "{{ c|tojson|length and c }}",
                              "{{ {'k': c}.k }}",
                              "{{ {'k': c}.values()|first }}",
                              "{{ {c: 1}|list|first }}",
                              "{{ [c, c]|first }}",
                              "{{ messages|map(attribute='content')|join }}",
                              "{{ c|default('d') }}",
                              "{{ zzz|default(c) }}",
                              "{{ '%s'|format(c) }}",
                              "{{ '%s' % c }}",
                              "{{ c|indent }}",
                              "{{ c.splitlines()[0] }}",
                              "{{ c|string }}",
                              "{{ c|safe }}",
                              "{{ c.partition('Z')[0] }}",
                              "{{ c.removeprefix('Z') }}",
                              "{{ c if true else 'x' }}",
                              "{{ c or 'x' }}",
                              "{{ true and c }}",
                              "{% set ns = namespace(v=c) %}{{ ns.v }}",
                              "{{ [c]|map('trim')|first }}",
                              "{{ (c, 1)|first }}",
                              "{% with a = c %}{{ a }}{% endwith %}",
                              "{{ [c]|sort|first }}",
                              "{{ c|capitalize|lower }}",
                              "{{ (c ~ '')|title|lower }}",
                              "{{ dict(a=c)['a'] }}",
                              "{{ messages|selectattr('content')|map(attribute='content')|first }}",
                              "{{ k }}",
                              "{{ c.title().lower() }}",
                              "{{ c.capitalize() }}",
                              "{{ c.center(3) }}",
                              "{{ c.zfill(1) }}"};
  template_input input;
  const std::string content = "<|im_end|>";
  input.messages = template_data::list{message("user", content)};
  input.more.emplace_back("k", content);
  for (const auto& row : rows) {
    CAPTURE(row);
    const auto segments =
        chat_template::compile("{% set c = messages[0].content %}" + row).render(input);
    REQUIRE_FALSE(segments.empty());
    for (const auto& x : segments) {
      CHECK_FALSE(x.trusted);
      CHECK(x.text.find("im_end") != std::string::npos);
    }
  }
}

TEST_CASE("scaffolding stays trusted around untrusted text, byte by byte") {
  template_input input;
  input.bos_token = "<s>";
  input.messages = template_data::list{message("user", "<s>é<|x|>")};
  const auto segments =
      chat_template::compile("{{ bos_token }}<|u|>{{ messages[0].content|trim }}<|x|>{{ '[' ~ "
                             "messages[0].content[3:] ~ ']' }}{{ 1 + 1 }}")
          .render(input);
  const std::vector<template_segment> wanted{
      {"<s><|u|>", true}, {"<s>é<|x|>", false}, {"<|x|>[", true}, {"é<|x|>", false}, {"]2", true}};
  CHECK(segments == wanted);
  // JSON: what the client wrote is untrusted, the braces are not.
  const auto json = chat_template::compile("{{ messages|tojson }}").render(input);
  for (const auto& x : json)
    if (x.trusted) CHECK(x.text.find_first_not_of("[]{}\":, ") == std::string::npos);
}

// The oracle of trust: text that only clients can have written, put everywhere in their data.
TEST_CASE("no marker of a client is trusted in any of the five families") {
  const auto file = read("chat_template_cases.json");
  size_t marked = 0;
  const uint64_t seed = 7;
  CAPTURE(seed);
  lamella::tests::splitmix random{seed};
  const std::string marker = "\xe2\x9f\xa6"; // a bracket that no template writes
  const auto mark = [&](const auto& self, template_data& x) -> void {
    if (auto* s = std::get_if<std::string>(&x.value); s && !s->empty() && random.below(2) == 0) {
      *s = marker + *s + marker;
    } else if (auto* list = std::get_if<template_data::list>(&x.value)) {
      for (auto& item : *list) self(self, item);
    } else if (auto* object = std::get_if<template_data::object>(&x.value)) {
      for (auto& [key, item] : *object)
        if (key != "role" && key != "type") self(self, item);
    }
  };
  for (const auto& x : *file.find("cases")->get_if<json_value::array>()) {
    auto input = input_of(file, *x.find("input"));
    mark(mark, input.messages);
    for (auto& [key, item] : input.more) mark(mark, item);
    for (const auto& [name, source] : *file.find("templates")->get_if<json_value::object>()) {
      CAPTURE(name);
      const auto compiled = chat_template::compile(*source.get_if<std::string>());
      std::vector<template_segment> segments;
      try {
        segments = compiled.render(input);
      } catch (const chat_template_error&) {
        continue; // refused conversations have no text
      }
      std::string whole;
      for (size_t i = 0; i < segments.size(); ++i) {
        CHECK_FALSE(segments[i].text.empty());
        if (i > 0) CHECK(segments[i].trusted != segments[i - 1].trusted);
        if (segments[i].text.find(marker) != std::string::npos) {
          CHECK_FALSE(segments[i].trusted);
          ++marked;
        }
        whole += segments[i].text;
      }
      CHECK(whole == compiled.render_text(input));
    }
  }
  CHECK(marked > 200);
}

TEST_CASE("raise_exception carries its text") {
  try {
    render("x\n{{ raise_exception('no ' ~ 'way') }}");
    FAIL("rendered");
  } catch (const chat_template_error& e) {
    CHECK(e.why() == kind::raised);
    CHECK(std::string{e.what()} == "no way");
    CHECK(e.line() == 2);
  }
}

TEST_CASE("errors name the line, and unknown names are found before the first request") {
  const auto line_of = [](const std::string& source) {
    try {
      chat_template::compile(source);
    } catch (const chat_template_error& e) {
      CHECK(e.why() == kind::syntax);
      return e.line();
    }
    return 0u;
  };
  CHECK(line_of("a\nb\n{{ x|nosuch }}") == 3);
  CHECK(line_of("a\n{{ x is nosuch }}") == 2);
  CHECK(line_of("{% if x %}{{ x|nosuch }}{% endif %}") == 0); // guarded: when it is reached
  CHECK(why("{% if true %}\n{{ 1|nosuch }}{% endif %}") == kind::runtime);
  CHECK(line_of("\n\n{% for %}") == 3);
  CHECK(line_of("{{ '\n\n' }}{{ 1 + }}") == 3);
  CHECK(line_of("{{ f(*a) }}") == 1);
  CHECK(line_of(std::string(1 << 20, 'x')) == 0);
  CHECK(line_of(std::string((1 << 20) + 1, 'x')) == 1);
}

TEST_CASE("the training mark of assistant text is its body") {
  CHECK(render("{% generation %}a{{ 1 }}{% endgeneration %}b") == "a1b");
}

TEST_CASE("variables of a client cannot replace ours") {
  template_input input;
  input.bos_token = "<s>";
  input.messages = template_data::list{};
  input.more = {{"bos_token", "evil"},
                {"messages", "evil"},
                {"raise_exception", "evil"},
                {"range", "evil"},
                {"tools", "mine"}};
  CHECK(render("{{ bos_token }}{{ messages|length }}{{ range(2)|list }}{{ tools }}", input)
        == "<s>0[0, 1]mine");
}

TEST_CASE("hostile templates end in an error, never in a crash") {
  const auto nest = [](const std::string& open, const std::string& middle, const std::string& close,
                       size_t times) {
    std::string text;
    for (size_t i = 0; i < times; ++i) text += open;
    text += middle;
    for (size_t i = 0; i < times; ++i) text += close;
    return text;
  };
  const auto repeat = [&](const std::string& part, size_t times) {
    return nest(part, "", "", times);
  };
  struct row {
    std::string source;
    kind ends;
  };
  const row rows[] = {
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", kind::limit},
      {"{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
       kind::limit},
      {"{% macro f(x=f()) %}{% endmacro %}{{ f() }}", kind::limit},
      {"{% macro f() %}{% call f() %}{% endcall %}{{ caller() }}{% endmacro %}{% call f() %}{% "
       "endcall %}",
       kind::limit},
      {"{% set l = [1] %}{% for x in [l] recursive %}{{ loop([x]) }}{% endfor %}", kind::limit},
      {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
       kind::limit},
      {"{% for a in range(100000) %}{{ 'xxxxxxxxxxxxxxxx' }}{% endfor %}", kind::limit},
      {"{% set x = 'x' * 1000000000000 %}", kind::limit},
      {"{% set x = [1] * 1000000000000 %}", kind::limit},
      {"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% "
       "endfor %}",
       kind::limit},
      {"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
       "endfor %}",
       kind::limit},
      {"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s|replace('x', "
       "'xx') %}{% endfor %}",
       kind::limit},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
       "endfor %}",
       kind::limit},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% "
       "endfor %}{{ ns.s }}",
       kind::limit},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% "
       "endfor %}{{ ns.s|tojson }}",
       kind::limit},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(200) %}{% set ns.s = [ns.s] %}{% endfor "
       "%}{{ ns.s == ns.s[:] }}",
       kind::limit},
      {"{{ 'x' * 1048577 }}", kind::limit},
      {"{% set x %}{{ 'x' * 1048577 }}{% endset %}", kind::limit},
      {"{% for i in range(3000) %}{{ 'y'|indent(1000, true) * 1 }}{% endfor %}", kind::limit},
      {"{% set s = 'x ' * 100000 %}{% for i in range(1000) %}{% set q = s.split() %}{% endfor %}",
       kind::limit},
      {"{% set s = 'ab' * 100000 %}{% for i in range(100000) %}{% set q = s.strip('"
           + std::string(2000, 'b') + "') %}{% endfor %}",
       kind::limit},
      {"{{ " + nest("(", "1", ")", 100'000) + " }}", kind::syntax},
      {"{{ " + nest("[", "", "]", 100'000) + " }}", kind::syntax},
      {"{{ " + repeat("not ", 100'000) + "1 }}", kind::syntax},
      {"{{ " + repeat("-", 100'000) + "1 }}", kind::syntax},
      {"{{ " + repeat("1 if 1 else ", 50'000) + "1 }}", kind::syntax},
      {"{{ 1" + repeat(" + 1", 100'000) + " }}", kind::limit},
      {"{{ x" + repeat(".y", 100'000) + " }}", kind::limit},
      {"{{ 'x'" + repeat("|upper", 50'000) + " }}", kind::limit},
      {"{{ 1" + repeat(" and 1", 50'000) + " }}", kind::limit},
      {nest("{% if 1 %}", "", "{% endif %}", 10'000), kind::syntax},
      {nest("{% for x in y %}", "", "{% endfor %}", 10'000), kind::syntax},
      {nest("{% macro m() %}", "", "{% endmacro %}", 10'000), kind::syntax},
      {"{% set " + nest("(", "a", ")", 100'000) + " = 1 %}", kind::syntax},
      {"{{ 9223372036854775808 }}", kind::syntax},
      {"{{ 9223372036854775807 + 1 }}", kind::runtime},
      {"{{ 2 ** 64 }}", kind::runtime},
      {"{{ 2 ** 9223372036854775807 }}", kind::runtime},
      {"{{ (-9223372036854775807 - 1) // -1 }}", kind::runtime},
      {"{{ (-9223372036854775807 - 1) * -1 }}", kind::runtime},
      {"{{ -(-9223372036854775807 - 1) }}", kind::runtime},
      {"{{ strftime_now('%999999999d') }}", kind::runtime},
      {"{{ strftime_now('%') }}", kind::runtime},
      {"{{ '%.999999999f'|format(1) }}", kind::runtime},
      {"{{ 1|tojson(indent=1000000) }}", kind::runtime},
      {"{{ 'x'|indent(1000000000) }}", kind::runtime},
      {"{{ 'x'.center(1000000000000) }}", kind::limit},
      {"{{ 'x'.zfill(9223372036854775807) }}", kind::limit},
      {"{{ [1]|batch(9223372036854775807, 'x')|list }}", kind::runtime},
      {"{{ range(9223372036854775807) }}", kind::limit},
      {"{{ '\\ud800' }}", kind::syntax},
      {"{{ '\\U99999999' }}", kind::syntax},
  };
  for (const auto& x : rows) {
    CAPTURE(x.source.substr(0, 120));
    CHECK(why(x.source) == x.ends);
  }
}

TEST_CASE("edges of slices and ranges do not overflow") {
  CHECK(render("{{ 'abc'[-9223372036854775807:9223372036854775807] }}") == "abc");
  CHECK(render("{{ 'abc'[::9223372036854775807] }}") == "a");
  CHECK(render("{{ 'abc'[::-9223372036854775807] }}") == "c");
  CHECK(render("{{ 'abc'[::-9223372036854775807 - 1] }}") == "c");
  CHECK(render("{{ range(9223372036854775800, 9223372036854775807, 5)|list }}")
        == "[9223372036854775800, 9223372036854775805]");
  CHECK(render("{{ (-9223372036854775807 - 1) % -1 if false }}{{ -7 % -2 }}") == "-1");
}

TEST_CASE("limits can be lowered") {
  template_limits limits;
  limits.output_bytes = 4;
  CHECK(why("12345", {}, limits) == kind::limit);
  CHECK(chat_template::compile("1234").render_text({}, limits) == "1234");
  limits = {};
  limits.steps = 20;
  CHECK(why("{% for i in range(50) %}{{ i }}{% endfor %}", {}, limits) == kind::limit);
  limits = {};
  limits.recursion = 3;
  const std::string count =
      "{% macro f(n) %}{{ n }}{% if n > 1 %}{{ f(n - 1) }}{% endif %}{% endmacro %}";
  CHECK(chat_template::compile(count + "{{ f(3) }}").render_text({}, limits) == "321");
  CHECK(why(count + "{{ f(4) }}", {}, limits) == kind::limit);
}

TEST_CASE("a chain of macros goes as deep as the limit says") {
  const std::string count =
      "{% macro f(n) %}{% if n > 1 %}{% for x in [1] %}{% if true %}{{ f(n - 1) }}{% endif "
      "%}{% endfor %}{% else %}end{% endif %}{% endmacro %}";
  CHECK(render(count + "{{ f(100) }}") == "end");
}

// Any template text ends in a rendering or an error, never in a crash; parts of real templates are
// cut, doubled and mixed, so that much of it still parses.
TEST_CASE("random edits of real templates never crash") {
  const auto file = read("chat_template_cases.json");
  const auto& cases = *file.find("cases")->get_if<json_value::array>();
  const auto& templates = *file.find("templates")->get_if<json_value::object>();
  const auto snippet_file = read("chat_template_snippets.json");
  const auto& snippets = *snippet_file.find("snippets")->get_if<json_value::array>();
  const uint64_t seed = 11;
  CAPTURE(seed);
  lamella::tests::splitmix random{seed};
  size_t compiled = 0;
  const std::string bytes = "{}%#-+()[]'\"|.,:~*/<>=! \n\\0aé\xff";
  for (int round = 0; round < 3000; ++round) {
    auto text = random.below(3) == 0
                    ? *templates[random.below(templates.size())].second.get_if<std::string>()
                    : text_at(snippets[random.below(snippets.size())], "source");
    for (uint64_t edits = random.below(4); edits > 0 && !text.empty(); --edits) {
      const auto at = random.below(text.size());
      const auto length = 1 + random.below(12);
      switch (random.below(4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(random.below(text.size()), length));
        break;
      case 2:
        text.insert(at, 1, bytes[random.below(bytes.size())]);
        break;
      default:
        text[at] = bytes[random.below(bytes.size())];
      }
    }
    CAPTURE(text);
    try {
      const auto made = chat_template::compile(text);
      ++compiled;
      made.render(input_of(file, *cases[random.below(cases.size())].find("input")));
    } catch (const chat_template_error&) {
    }
  }
  CHECK(compiled > 500);
}
