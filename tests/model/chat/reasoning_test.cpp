// Reasoning before an answer: whose templates know of it, and what grammars allow.
#include "model/chat/chat_abilities.hpp"
#include "model/chat/tool_grammar.hpp"
#include "tests/model/chat/chat_template_fixture.hpp"
#include "tests/model/grammar/grammar_support.hpp"

using namespace lamella;
using model::grammar;
using model::reasoning_start;
using tests::takes;

namespace {

const model::reasoning_marks think{"<think>", "</think>"};
const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";

std::string begins(const std::string& source) {
  return model::reasoning_of(model::chat_template::compile(source), "<s>", "</s>").begin;
}

model::grammar_states yes_behind(reasoning_start start) {
  return tests::states_of([&](grammar& g, auto next) {
    return model::behind_reasoning(g, {think, start}, g.text("yes", next));
  });
}

model::grammar_states tools_behind(reasoning_start start) {
  static const std::vector<model::tool_signature> tools{{"now"}};
  return tests::states_of([&](grammar& g, auto next) {
    return model::text_or_tool_calls(g, tools, model::tool_dialect_of("", ""),
                                     model::tool_calls::many, next, {think, start});
  });
}

} // namespace

TEST_CASE("a template tells by what it writes whether its model reasons") {
  const std::string chat = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
  CHECK(begins(chat).empty());
  CHECK(begins("{# <think></think> #}" + chat).empty());
  CHECK(begins(chat + "{% if add_generation_prompt %}<assistant><think>\n{% endif %}")
        == "<think>");
  CHECK(begins(chat
               + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n"
                 "</think>\n\n{% endif %}")
        == "<think>");
  CHECK(begins("{% for m in messages %}{% if m.reasoning_content %}[THINK]{{ m.reasoning_content }}"
               "[/THINK]{% endif %}{{ m.content }}{% endfor %}")
        == "[THINK]");
  CHECK(begins("{% for m in messages %}{% if m.role == 'assistant' %}{{ "
               "m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}{% endfor %}")
        == "<think>");
}

TEST_CASE("the end of a prompt tells where the reasoning begins") {
  using enum reasoning_start;
  CHECK(model::reasoning_start_of("<assistant><think>\n", think) == begun);
  CHECK(model::reasoning_start_of("<think>\n\n</think>\n\n", think) == closed);
  CHECK(model::reasoning_start_of("<assistant>", think) == open);
  CHECK(model::reasoning_start_of("", think) == open);
  CHECK(model::reasoning_start_of("<think>", {}) == closed);
}

TEST_CASE("a format begins where the reasoning ends") {
  auto open = yes_behind(reasoning_start::open), begun = yes_behind(reasoning_start::begun),
       closed = yes_behind(reasoning_start::closed);
  for (const auto* text : {"<think>no </thin</think>yes", "<think></think>\n\nyes", "yes"})
    CHECK_MESSAGE(takes(open, text), text);
  for (const auto* text : {"<think>yes", "<think></think>no", "<think></think>\n\n\nyes", "no", ""})
    CHECK_MESSAGE(!takes(open, text), text);
  for (const auto* text : {"well</think>yes", "</think>\nyes", "<think></</think>yes"})
    CHECK_MESSAGE(takes(begun, text), text);
  for (const auto* text : {"yes", "</think>", "</think>no", "a</think>b</think>yes"})
    CHECK_MESSAGE(!takes(begun, text), text);
  CHECK(takes(closed, "yes"));
  CHECK_FALSE(takes(closed, "<think></think>yes"));
}

TEST_CASE("what looks like a call within reasoning is none, and calls behind it are held to") {
  const std::string bad = "<tool_call>\nno call";
  auto open = tools_behind(reasoning_start::open), begun = tools_behind(reasoning_start::begun);
  for (const auto& text :
       {"<think>" + bad + "</think>\n\ntext", "<think>" + bad + "</think>" + call,
        "<think>" + call + "</think>" + call, std::string{"text"}, call, std::string{"<thin"},
        std::string{"<thinking> " + call}, std::string{"<think>never ends"}, std::string{"<t"},
        std::string{"<tool"}, "text <think>" + call})
    CHECK_MESSAGE(takes(open, text), text);
  for (const auto& text :
       {"<think>" + bad + "</think>" + bad, bad, "<think></think>" + call + "text", "<thi" + bad,
        "text <think>" + bad, "<think>" + call.substr(0, call.size() - 14) + "</think>" + bad})
    CHECK_MESSAGE(!takes(open, text), text);
  for (const auto& text : {bad + "</think>" + call, std::string{"a</think>b"}, bad})
    CHECK_MESSAGE(takes(begun, text), text);
  for (const auto& text : {"</think>" + bad, call + "</think>" + bad})
    CHECK_MESSAGE(!takes(begun, text), text);
}
