// What chat templates can do, told by what they do.
#include "model/chat/chat_abilities.hpp"
#include "tests/model/chat/chat_template_fixture.hpp"

using namespace lamella;
using namespace lamella::model;
using namespace lamella::model::test;

namespace {

chat_abilities of(const std::string& source) {
  return abilities_of(chat_template::compile(source), "<s>", "</s>");
}

tool_dialect calls(const std::string& source) {
  return calls_of(chat_template::compile(source), "<s>", "</s>");
}

const std::string plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
const std::string parts =
    "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif "
    "%}{% endfor %}{% endfor %}";
const std::string both =
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else "
    "%}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}";

/// A template that lays out tools, each call by `call`.
std::string with_tools(const std::string& call) {
  return "{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}{{ m.content "
         "}}{% for c in m.tool_calls or [] %}"
         + call + "{% endfor %}{% endfor %}";
}

} // namespace

TEST_CASE("templates show messages as texts, as parts, or as both") {
  CHECK(of(plain).shows("user").text);
  CHECK_FALSE(of(plain).shows("user").parts); // it prints the list, and all that is in it
  CHECK_FALSE(of("{% for m in messages %}{{ m.content|tojson }}{% endfor %}").shows("user").parts);
  CHECK_FALSE(of(parts).shows("user").text);
  CHECK(of(parts).shows("user").parts);
  CHECK(of(both).shows("user").text);
  CHECK(of(both).shows("user").parts);
  const auto mixed = of("{% for m in messages %}{% if m.role == 'user' %}{% for p in m.content "
                        "%}{{ p.text }}{% endfor %}{% else %}{{ m.content + '' }}{% endif %}{% "
                        "endfor %}");
  CHECK(mixed.shows("user").parts);
  CHECK_FALSE(mixed.shows("user").text);
  CHECK(mixed.shows("assistant").text);
  CHECK_FALSE(mixed.shows("assistant").parts);
  CHECK_FALSE(of("{{ messages|length }}").shows("user").any());
  CHECK_FALSE(of(plain).shows("nobody").any());
}

TEST_CASE("which roles a template knows is told by what comes out, not by its words") {
  const std::string two = "{% for m in messages %}{% if m.role == 'system' %}<S>{{ m.content }}{% "
                          "elif m.role == 'user' "
                          "%}<U>{{ m.content }}{% endif %}{% endfor %}";
  for (const std::string before :
       {"", "{# for every developer #}", "You help a developer. ", "{# system assistant #}"}) {
    CAPTURE(before);
    const auto can = of(before + two);
    CHECK(can.shows("system").any());
    CHECK_FALSE(can.shows("developer").any());
    CHECK_FALSE(can.knows_developer);
    CHECK_FALSE(can.shows("assistant").any());
  }
  const auto strict =
      of("{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') "
         "}}{% endif %}{{ m.content }}{% endfor %}");
  CHECK_FALSE(strict.shows("system").any());
  CHECK_FALSE(of(plain).knows_developer); // nor anybody else
  CHECK(of("{% for m in messages %}{{ '<D>' if m.role == 'developer' else '<' ~ m.role ~ '>' }}{{ "
           "m.content }}{% endfor %}")
            .knows_developer);
  CHECK(of("{% for m in messages %}{% if m.role not in ['user', 'developer'] %}{{ "
           "raise_exception('no') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}")
            .knows_developer);
}

TEST_CASE("a template writes tools where tools, calls and results all come out of it") {
  const std::string tagged = "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ "
                             "c.function.arguments|tojson }}}\n</tool_call>";
  CHECK(calls(with_tools(tagged)).template_writes);
  CHECK(calls(with_tools("[TOOL_CALLS] [{{ c.function|tojson }}]")).mark() == "[TOOL_CALLS]");
  const auto bare = calls(with_tools("{\"name\": \"{{ c.function.name }}\", \"parameters\": {{ "
                                     "c.function.arguments|tojson }}}"));
  CHECK(bare.arguments_key == "parameters");
  CHECK(bare.template_writes);
  for (const auto& source : std::vector<std::string>{
           plain, "{# tools [TOOL_CALLS] ipython <tool_call> #}" + plain, "Without tools. " + plain,
           // Tools come out, what became of them does not.
           "{{ tools|tojson }}{% for m in messages %}{{ m.content }}{% endfor %}<tool_call>",
           // In words that are not read.
           with_tools("<call>{{ c.function.name }}: {{ c.function.arguments|tojson }}</call>"),
           with_tools("[TOOL_CALLS]{{ c.function.name }}[ARG]{{ c.function.arguments|tojson }}"),
           with_tools("<|tool_call|>[{{ c.function|tojson }}")}) {
    CAPTURE(source);
    CHECK_FALSE(calls(source).template_writes);
    CHECK(calls(source).open == "<tool_call>\n");
  }
}

TEST_CASE("families write their tools, or have them explained") {
  std::map<std::string, std::string> found;
  for (const char* name_of_file : {"chat_template_cases.json", "chat_template_more_cases.json"}) {
    const auto file = read(name_of_file);
    for (const auto& [name, source] : *file.find("templates")->get_if<json_value::object>()) {
      const auto x = calls(*source.get_if<std::string>());
      found[name] = x.template_writes ? x.mark() + x.arguments_key : "explained";
      CHECK(of(*source.get_if<std::string>()).shows("user").text);
    }
  }
  const std::map<std::string, std::string> native{{"headers", "parameters"},
                                                  {"instructions", "[TOOL_CALLS]arguments"},
                                                  {"marks", "<tool_call>arguments"},
                                                  {"neighbours", "<tool_call>arguments"},
                                                  {"signatures", "<tool_call>arguments"}};
  CHECK(found.size() == 11);
  for (const auto& [name, how] : found) {
    CAPTURE(name);
    const auto wanted = native.find(name);
    CHECK(how == (wanted != native.end() ? wanted->second : "explained"));
  }
}

TEST_CASE("members that a template names are known") {
  const auto x = chat_template::compile(
      "{{ m.a }}{{ m['b'] }}{{ m.get('c') }}{{ 'd' in m }}{# e #}{{ f }} g {% set h = 1 %}");
  for (const auto* name : {"a", "b", "c", "d"}) CHECK(x.reads(name));
  for (const auto* name : {"e", "f", "g", "h"}) CHECK_FALSE(x.reads(name));
}
