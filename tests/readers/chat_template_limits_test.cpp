// Chat templates that mean harm or are damaged.
#include "tests/model/chat/chat_template_fixture.hpp"
#include "tests/random.hpp"
#include "tests/small_stack.hpp"

#include <map>

using namespace lamella;
using namespace lamella::model;
using namespace lamella::model::test;

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

TEST_CASE("macros call each other as deep as a schema of a tool is") {
  const std::string count =
      "{% macro f(n) %}{% if n > 1 %}{% for x in [1] %}{% if true %}{{ f(n - 1) }}{% endif "
      "%}{% endfor %}{% else %}end{% endif %}{% endmacro %}";
  lamella::tests::on_small_stack([&] { CHECK(render(count + "{{ f(12) }}") == "end"); });
}

// As deep as 1 MiB of template allows, where a thread has 256 KiB of stack.
TEST_CASE("the deepest templates and values end in an error on a small stack") {
  const auto repeat = [](const std::string& part, size_t times) {
    std::string text;
    for (size_t i = 0; i < times; ++i) text += part;
    return text;
  };
  const auto nest = [&](const std::string& open, const std::string& close) {
    const auto times = ((1 << 20) - 20) / (open.size() + close.size());
    return repeat(open, times) + repeat(close, times);
  };
  const auto chain = [&](const std::string& part) {
    return repeat(part, ((1 << 20) - 20) / part.size());
  };
  const std::string sources[] = {
      "{{ " + nest("(", ")") + " }}",
      "{{ " + nest("[", "]") + " }}",
      "{{ " + nest("{1:", "}") + " }}",
      "{{ " + nest("f(", ")") + " }}",
      "{{ x" + nest("[x", "]") + " }}",
      "{{ x" + nest("|d(x", ")") + " }}",
      "{{ 1 is eq" + chain(" 1 is eq") + " }}",
      "{{ " + chain("not ") + "1 }}",
      "{{ " + chain("-") + "1 }}",
      "{{ " + chain("1 if 1 else ") + "1 }}",
      "{{ 1" + chain("+1") + " }}",
      "{{ 1" + chain("**1") + " }}",
      "{{ 1" + chain(" and 1") + " }}",
      "{{ 0" + chain(" or 0") + " }}",
      "{{ x" + chain(".y") + " }}",
      "{{ f" + chain("()") + " }}",
      "{{ ''" + chain("|d") + " }}",
      "{{ '{0" + chain("[0]") + "}'.format(1) }}",
      "{{ '" + nest("{0:", "}") + "'.format(1) }}",
      "{% set " + nest("(", ")") + " = 1 %}",
      nest("{% if 1 %}", "{% endif %}"),
      nest("{% for x in [1] %}", "{% endfor %}"),
      nest("{% macro m() %}", "{% endmacro %}"),
      nest("{% call m() %}", "{% endcall %}"),
      nest("{% filter d %}", "{% endfilter %}"),
      nest("{% with %}", "{% endwith %}"),
      nest("{% set x %}", "{% endset %}"),
      nest("{% generation %}", "{% endgeneration %}"),
      "{% if 0 %}" + chain("{% elif 0 %}{% if 1 %}"),
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(x=f()) %}{% endmacro %}{{ f() }}",
      "{% macro f() %}{% filter trim %}{% set x %}{{ [f(), {'a': f()}]|tojson }}{% endset %}{% "
      "endfilter %}{% endmacro %}{{ f() }}",
      "{% macro f() %}{% call f() %}{% endcall %}{{ caller() }}{% endmacro %}{{ f() }}",
      "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}"};
  // Values a loop nests as deep as it likes, through everything that walks them.
  const std::string uses[] = {"{{ ns.x }}",
                              "{{ ns.x|tojson }}",
                              "{{ {'k': ns.x}|tojson(indent=2) }}",
                              "{{ ns.x == ns.y }}",
                              "{{ ns.x < ns.y }}",
                              "{{ [ns.x, ns.y]|sort }}",
                              "{{ {ns.x: 1} }}",
                              "{{ {}[ns.x] }}{{ ns.x|string }}",
                              "{{ [ns.x]|unique|list }}",
                              "{{ '{}'.format(ns.x) }}",
                              "{{ '%r' % [ns.x] }}"};
  lamella::tests::on_small_stack([&] {
    for (const auto& source : sources) {
      CAPTURE(source.substr(0, 60));
      const auto ends = why(source);
      CHECK(ends != kind::raised);
    }
    for (const std::string made : {"(ns.x,)", "[ns.x]"})
      for (const auto& use : uses) {
        CAPTURE(made);
        CAPTURE(use);
        const auto source = "{% set ns = namespace(x=(), y=()) %}{% for i in range(5000) %}{% set "
                            "ns.x = "
                            + made + " %}{% endfor %}{% set ns.y = " + made + " %}" + use;
        const auto ends = why(source);
        CHECK((ends == kind::limit || ends == kind::runtime)); // a list is no key
      }
  });
}

TEST_CASE("what a request nests as deep as its JSON may reaches tojson, and no deeper") {
  const auto nested = [](size_t depth) {
    template_data x = template_data::list{};
    for (size_t i = 0; i < depth; ++i) x = template_data::list{std::move(x)};
    return x;
  };
  lamella::tests::on_small_stack([&] {
    template_input input;
    input.more = {{"x", nested(110)}};
    CHECK(render("{{ x|tojson|length }} {{ (x ~ '')|length }} {{ x == x[:] }}", input)
          == "222 222 True");
    input.more = {{"x", nested(121)}};
    CHECK(why("{{ x|tojson }}", input) == kind::limit);
  });
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
