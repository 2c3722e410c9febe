// The forms in which families of models write calls: what a template writes is recognised, the
// grammar takes it, and the readers find names and arguments in it, however it is cut.
#include "model/chat/chat_abilities.hpp"
#include "model/chat/tool_grammar.hpp"
#include "model/grammar/json_schema/json_schema_error.hpp"
#include "net/api/reasoning_reader.hpp"
#include "net/api/tool_call_reader.hpp"
#include "tests/model/grammar/grammar_support.hpp"
#include "tests/net/api/tool_families.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::tool_dialect;
using tests::families;
using tests::family;

namespace {

/// Around its calls each family has the same.
std::string template_of(const family& x) {
  return std::string{"{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}"
                     "<|{{ m.role }}|>"}
         + x.thinking + "{{ m.content }}{% if m.tool_calls %}" + x.calls
         + "{% endif %}<|end|>{% endfor %}" + x.prompt_end;
}

/// Where the prompt ends as the family's template has it.
model::answer_reasoning reasoning_of(const family& x) {
  model::answer_reasoning how{
      model::reasoning_of(model::chat_template::compile(template_of(x)), "<s>", "</s>")};
  if (how.marks.any()) how.start = model::reasoning_start_of(x.prompt_end, how.marks);
  return how;
}

std::string lines_of(const family& x) {
  return R"(find {"q": "a b", "n": 7})" + std::string{x.one ? "" : "\nnow {}"};
}

tool_dialect dialect_of(const family& x) {
  return model::calls_of(model::chat_template::compile(template_of(x)), "<s>", "</s>");
}

struct tools {
  json_value schema = parse_json(R"({"type":"object","properties":{"q":{"type":"string"},
      "n":{"type":"integer"}},"required":["q","n"]})");
  std::vector<model::tool_signature> list{{"find", &schema}, {"now"}};
};

/// Text, and a line for each call.
std::string read(tool_dialect dialect, const tools& x, std::string_view text, size_t piece,
                 const model::answer_reasoning& reasoning = {}) {
  dialect.texts = model::text_parameters(x.list);
  net::reasoning_reader parts{reasoning};
  net::tool_call_reader reader{dialect};
  std::string said, calls, thought;
  const auto add = [&](const net::answer_piece& part) {
    said += part.text;
    for (const auto& call : part.calls)
      calls += (call.name.empty() ? "" : "\n" + call.name + " ") + call.arguments;
  };
  const auto split = [&](net::reasoning_piece part) {
    thought += part.reasoning;
    add(reader.feed(part.text));
  };
  for (size_t i = 0; i < text.size(); i += piece) split(parts.feed(text.substr(i, piece)));
  split(parts.finish());
  add(reader.finish());
  return (thought.empty() ? "" : "(" + thought + ")") + said + calls;
}

} // namespace

TEST_CASE_FIXTURE(tools, "what families of models write is recognised, allowed and read") {
  for (const auto& x : families) {
    CAPTURE(std::string{x.name});
    const auto dialect = dialect_of(x);
    REQUIRE(dialect.template_writes);
    CHECK(dialect.takes_texts == x.takes_texts);
    const auto reasoning = reasoning_of(x);
    const std::string answer = x.answer, with_text = x.said + std::string{x.joint} + answer;
    auto must = tests::states_of([&](grammar& g, auto next) {
      return model::behind_reasoning(
          g, reasoning,
          model::tool_calls_grammar(g, list, dialect, model::tool_calls::many, next, reasoning));
    });
    CHECK(tests::takes(must, answer));
    CHECK_FALSE(tests::takes(must, answer.substr(0, answer.size() - 1)));
    CHECK_FALSE(tests::takes(must, x.only_text));
    for (const bool named : {false, true}) { // one call, and none but of one tool
      auto one = tests::states_of([&](grammar& g, auto next) {
        return model::behind_reasoning(
            g, reasoning,
            model::tool_calls_grammar(g, std::span{list}.first(named ? 1 : 2), dialect,
                                      named ? model::tool_calls::many : model::tool_calls::one,
                                      next, reasoning));
      });
      CHECK(tests::takes(one, answer) == x.one);
    }
    auto may = tests::states_of([&](grammar& g, auto next) {
      return model::text_or_tool_calls(g, list, dialect, model::tool_calls::many, next, reasoning);
    });
    for (const auto& text : {std::string{x.only_text}, answer, with_text})
      CHECK_MESSAGE(tests::takes(may, text), text);
    auto wrong = answer;
    wrong.replace(wrong.find("find"), 4, "fond");
    CHECK_FALSE(tests::takes(may, wrong));
    for (const size_t piece : {1, 2, 5, 1000}) {
      CHECK(read(dialect, *this, with_text, piece, reasoning)
            == (*x.said != 0 ? "So:\n" : "\n") + lines_of(x));
      const auto only = read(dialect, *this, x.only_text, piece, reasoning);
      CHECK((only.ends_with("text.") && std::string{x.only_text}.ends_with(only)));
    }
  }
}

TEST_CASE_FIXTURE(tools, "messages on channels are reasoning, text and calls") {
  const auto& x = *std::find_if(std::begin(families), std::end(families), [](const auto& f) {
    return std::string_view{f.name} == "gpt-oss";
  });
  const auto dialect = dialect_of(x);
  const auto reasoning = reasoning_of(x);
  REQUIRE(reasoning.start == model::reasoning_start::open);
  auto may = tests::states_of([&](grammar& g, auto next) {
    return model::text_or_tool_calls(g, list, dialect, model::tool_calls::many, next, reasoning);
  });
  auto number = tests::states_of([&](grammar& g, auto next) {
    return model::behind_reasoning(g, reasoning, model::as_text(g, reasoning, g.text("7", next)));
  });
  const std::string thinks = "<|channel|>analysis<|message|>to=functions.now? No.<|end|><|start|>"
                             "assistant";
  CHECK(tests::takes(number, thinks + "<|channel|>final<|message|>7"));
  CHECK(tests::takes(number, "<|channel|>final<|message|>7"));
  CHECK_FALSE(tests::takes(number, thinks + "7"));
  struct row {
    std::string answer, read;
    bool allowed = true;
  };
  for (const auto& one :
       {row{thinks + "<|channel|>final<|message|>Hi <|x", "(to=functions.now? No.)Hi <|x"},
        row{thinks + thinks + "<|channel|>final<|message|>Hi",
            "(to=functions.now? No.\n\nto=functions.now? No.)Hi"},
        row{thinks + x.answer, "(to=functions.now? No.)\n" + lines_of(x)},
        // As its template lays out earlier calls, and with the marks that end its messages.
        row{thinks + " to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
            "(to=functions.now? No.)\nnow {}", false},
        row{"<|channel|>final<|message|>Hi<|return|>", "Hi"}, row{"Hi", "Hi", false},
        row{thinks + "<|channel|>fin", "(to=functions.now? No.)", false}}) {
    CHECK_MESSAGE(tests::takes(may, one.answer) == one.allowed, one.answer);
    for (const size_t piece : {1, 3, 1000})
      CHECK(read(dialect, *this, one.answer, piece, reasoning) == one.read);
  }
}

TEST_CASE_FIXTURE(tools, "an answer that is cut anywhere has the calls that it had begun") {
  for (const auto& x : families) {
    CAPTURE(std::string{x.name});
    const auto dialect = dialect_of(x);
    const auto reasoning = reasoning_of(x);
    const std::string answer = x.answer, whole = "\n" + lines_of(x);
    const auto named = answer.find("find") + 4 + dialect.before_arguments().size();
    for (size_t bytes = 0; bytes < answer.size(); ++bytes) {
      CAPTURE(bytes);
      const auto cut = answer.substr(0, bytes);
      const auto got = read(dialect, *this, cut, 1, reasoning);
      CHECK(got == read(dialect, *this, cut, 1000, reasoning));
      if (bytes <= named) continue;
      CHECK(got.starts_with("\nfind "));
      CHECK(whole.starts_with(got)); // nothing is invented, and no mark is told as text
    }
  }
}

TEST_CASE_FIXTURE(tools, "texts between marks become JSON strings, and other values are JSON") {
  const auto& coder = *std::find_if(std::begin(families), std::end(families), [](const auto& x) {
    return std::string_view{x.name}.starts_with("Qwen3 Coder");
  });
  const auto dialect = dialect_of(coder);
  const auto call = [](const std::string& q, const std::string& n) {
    return "<tool_call>\n<function=find>\n<parameter=q>\n" + q + "\n</parameter>\n<parameter=n>\n"
           + n + "\n</parameter>\n</function>\n</tool_call>";
  };
  auto must = tests::states_of([&](grammar& g, auto next) {
    return model::tool_calls_grammar(g, list, dialect, model::tool_calls::many, next);
  });
  const std::string text = "say \"hi\" \\ <b>\n\tä </parameter>";
  CHECK(tests::takes(must, call(text, "7")));
  CHECK_FALSE(tests::takes(must, call(text, "seven")));
  CHECK_FALSE(tests::takes(must, call("a\n</parameter>b", "7"))); // the mark has ended the value
  for (const size_t piece : {1, 3, 1000}) {
    CHECK(read(dialect, *this, call(text, "7"), piece)
          == "\nfind {\"q\": \"say \\\"hi\\\" \\\\ <b>\\n\\u0009ä </parameter>\", \"n\": 7}");
    CHECK(read(dialect, *this, call("7", "7"), piece) == "\nfind {\"q\": \"7\", \"n\": 7}");
  }
}

TEST_CASE_FIXTURE(tools, "values of lists are JSON, with Python's words read as JSON's") {
  schema = parse_json(R"({"type":"object","properties":{"q":{"type":"string"},
      "on":{"type":"boolean"},"more":{"type":"array","items":{"type":"integer"}}}})");
  const auto family_of = [](std::string_view name) {
    return dialect_of(*std::find_if(std::begin(families), std::end(families),
                                    [&](const auto& x) { return x.name == name; }));
  };
  struct row {
    const char *family, *answer, *read;
  };
  for (const auto& x :
       {row{"LFM2",
            R"(<|tool_call_start|>[find(q="(a, \"b\")=]", on=True, more=[1, 2])]<|tool_call_end|>)",
            "\nfind {\"q\": \"(a, \\\"b\\\")=]\", \"on\": true, \"more\": [1, 2]}"},
        row{"LFM2", "<|tool_call_start|>[find(on=False), find()]<|tool_call_end|>",
            "\nfind {\"on\": false}\nfind {}"},
        row{"FunctionGemma",
            "<start_function_call>call:find{q:<escape>a\",\n}<b<escape>,on:true}<end_function_"
            "call>",
            "\nfind {\"q\": \"a\\\",\\n}<b\", \"on\": true}"}}) {
    const auto dialect = family_of(x.family);
    auto must = tests::states_of([&](grammar& g, auto next) {
      return model::tool_calls_grammar(g, list, dialect, model::tool_calls::many, next);
    });
    CHECK_MESSAGE(tests::takes(must, x.answer), x.answer);
    for (const size_t piece : {1, 3, 1000}) CHECK(read(dialect, *this, x.answer, piece) == x.read);
  }
}

TEST_CASE_FIXTURE(tools, "texts that must be more than text are refused where a tool is strict") {
  const auto dialect = dialect_of(families[12]);
  schema = parse_json(R"({"type":"object","properties":{"q":{"type":"string","pattern":"^a"}}})");
  list[0].strict = true;
  list[0].pointer = "tools[0].function.parameters";
  const auto make = [&] {
    tests::states_of([&](grammar& g, auto next) {
      return model::tool_calls_grammar(g, list, dialect, model::tool_calls::many, next);
    });
  };
  CHECK_THROWS_WITH_AS(make(),
                       doctest::Contains("tools[0].function.parameters/properties/q/pattern"),
                       model::json_schema_error);
  list[0].strict = false;
  CHECK_NOTHROW(make());
}
