// The forms in which families of models write calls: what a template writes is recognised, the
// grammar takes it, and the readers find names and arguments in it, however it is cut.
#include "model/chat/chat_abilities.hpp"
#include "model/chat/tool_grammar.hpp"
#include "model/grammar/json_schema/json_schema_error.hpp"
#include "net/api/reasoning_reader.hpp"
#include "net/api/tool_call_reader.hpp"
#include "tests/model/grammar/grammar_support.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using model::grammar;
using model::tool_dialect;

namespace {

struct family {
  const char* name;
  /// How its template writes the calls of a message.
  const char* calls;
  /// An answer of find with q "a b" and n 7, then of now.
  const char* answer;
  bool takes_texts = false;
  const char* said = "So: "; ///< before `answer`, where text may be
  const char* only_text = "Only text.";
  bool one = false;            ///< an answer has one call: of find
  const char* prompt_end = ""; ///< of the template
  const char* thinking = "";   ///< of the template, before content
  const char* joint = "";      ///< between `said` and `answer`, where both are there
};

#define EACH "{% for c in m.tool_calls %}"
#define NAME "{{ c.function.name }}"
#define JSON "{{ c.function.arguments|tojson }}"
#define OBJECT "{\"name\": \"" NAME "\", \"arguments\": " JSON "}"
#define LISTED "{% if not loop.first %}, {% endif %}" OBJECT "{% endfor %}"
#define PARAMETERS_OBJECT EACH "{\"name\": \"" NAME "\", \"parameters\": " JSON "}{% endfor %}"
#define PARAMETERS "{% for k, v in c.function.arguments.items() %}"

const family families[] = {
    {"Hermes, Qwen 2.5 and 3, Granite 4",
     EACH "{% if not loop.first %}\n{% endif %}<tool_call>\n" OBJECT "\n</tool_call>{% endfor %}",
     "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {"Mistral until 2024", "[TOOL_CALLS] [" EACH LISTED "]",
     "[TOOL_CALLS][{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]"},
    {"Mistral from 2025 on, Devstral, Magistral",
     EACH "[TOOL_CALLS]" NAME "[ARGS]" JSON "{% endfor %}",
     "[TOOL_CALLS]find[ARGS]{\"q\": \"a b\", \"n\": 7}[TOOL_CALLS]now[ARGS]{}"},
    {"Granite 3", "<|tool_call|>[" EACH LISTED "]",
     "<|tool_call|>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]"},
    {"Phi 4", "<|tool_call|>[" EACH LISTED "]<|/tool_call|>",
     "<|tool_call|>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>"},
    {"Nemotron", "<TOOLCALL>[" EACH LISTED "]</TOOLCALL>",
     "<TOOLCALL>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>"},
    {"Hunyuan", "<tool_calls>[" EACH LISTED "]</tool_calls>",
     "<tool_calls>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]</tool_calls>"},
    {"MiniMax M1", "<tool_calls>\n" EACH OBJECT "\n{% endfor %}</tool_calls>",
     "<tool_calls>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}\n"
     "{\"name\": \"now\", \"arguments\": {}}\n</tool_calls>"},
    {"Functionary 3.1", EACH "<function=" NAME ">" JSON "</function>{% endfor %}",
     "<function=find>{\"q\": \"a b\", \"n\": 7}</function><function=now>{}</function>"},
    {"DeepSeek V3 and R1",
     "<｜tool▁calls▁begin｜>" EACH "{% if not loop.first %}\n{% endif %}<｜tool▁call▁begin｜>{{ "
     "c.type }}<｜tool▁sep｜>" NAME "\n```json\n{{ '' + c.function.arguments }}\n```"
     "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n"
     "{\"q\": \"a b\", \"n\": 7}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function"
     "<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     true},
    {"DeepSeek V3.1",
     "<｜tool▁calls▁begin｜>" EACH "<｜tool▁call▁begin｜>" NAME "<｜tool▁sep｜>" JSON
     "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{\"q\": \"a b\", \"n\": 7}"
     "<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>"},
    {"Command R7B and A",
     "<|START_ACTION|>[\n" EACH "{% if not loop.first %},\n{% endif %}    {\"tool_call_id\": "
     "\"{{ loop.index0 }}\", \"tool_name\": \"" NAME "\", \"parameters\": " JSON
     "}{% endfor %}{{ '\n' }}]<|END_ACTION|>",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"find\", \"parameters\": "
     "{\"q\": \"a b\", \"n\": 7}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", "
     "\"parameters\": {}}\n]<|END_ACTION|>"},
    {"Qwen3 Coder, Qwen 3.5, Nemotron 3",
     EACH "{% if not loop.first %}\n{% endif %}<tool_call>\n<function=" NAME ">\n" PARAMETERS
          "<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>"
          "{% endfor %}",
     "<tool_call>\n<function=find>\n<parameter=q>\na b\n</parameter>\n<parameter=n>\n7\n"
     "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n"
     "</tool_call>"},
    {"Seed OSS",
     EACH "{% if not loop.first %}\n{% endif %}<seed:tool_call>\n<function=" NAME ">\n" PARAMETERS
          "<parameter={{ k }}>{{ v }}</parameter>\n{% endfor %}</function>\n</seed:tool_call>"
          "{% endfor %}",
     "<seed:tool_call>\n<function=find>\n<parameter=q>a b</parameter>\n<parameter=n>7</parameter>\n"
     "</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=now>\n</function>\n"
     "</seed:tool_call>"},
    {"GLM 4.5",
     EACH "{% if not loop.first %}\n{% endif %}<tool_call>" NAME "\n" PARAMETERS
          "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>"
          "{% endfor %}",
     "<tool_call>find\n<arg_key>q</arg_key>\n<arg_value>a b</arg_value>\n<arg_key>n</arg_key>\n"
     "<arg_value>7</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>"},
    {"GLM 4.7",
     EACH "<tool_call>" NAME PARAMETERS "<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>"
          "{% endfor %}</tool_call>{% endfor %}",
     "<tool_call>find<arg_key>q</arg_key><arg_value>a b</arg_value><arg_key>n</arg_key><arg_value>7"
     "</arg_value></tool_call><tool_call>now</tool_call>"},
    {"MiniMax M2",
     "<minimax:tool_call>\n" EACH "<invoke name=\"" NAME "\">\n" PARAMETERS
     "<parameter name=\"{{ k }}\">{{ v }}</parameter>\n{% endfor %}</invoke>\n{% endfor %}"
     "</minimax:tool_call>",
     "<minimax:tool_call>\n<invoke name=\"find\">\n<parameter name=\"q\">a b</parameter>\n"
     "<parameter name=\"n\">7</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n"
     "</minimax:tool_call>"},
    {"Kimi K2",
     "<|tool_calls_section_begin|>" EACH
     "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>" JSON
     "<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>"
     "{\"q\": \"a b\", \"n\": 7}<|tool_call_end|><|tool_call_begin|>functions.now:1"
     "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"},
    {"LFM2",
     "<|tool_call_start|>[" EACH "{% if not loop.first %}, {% endif %}" NAME "(" PARAMETERS
     "{% if not loop.first %}, {% endif %}{{ k }}={{ v|tojson }}{% endfor %}){% endfor %}"
     "]<|tool_call_end|>",
     "<|tool_call_start|>[find(q=\"a b\", n=7), now()]<|tool_call_end|>"},
    {"FunctionGemma",
     EACH "<start_function_call>call:" NAME "{{ '{' }}" PARAMETERS
          "{% if not loop.first %},{% endif %}{{ k }}:<escape>{{ v }}<escape>{% endfor %}{{ '}' }}"
          "<end_function_call>{% endfor %}",
     "<start_function_call>call:find{q:<escape>a b<escape>,n:7}<end_function_call>"
     "<start_function_call>call:now{}<end_function_call>"},
    {"Gemma 4",
     EACH "<|tool_call>call:" NAME "{{ '{' }}" PARAMETERS
          "{% if not loop.first %},{% endif %}{{ k }}:<|\"|>{{ v }}<|\"|>{% endfor %}{{ '}' }}"
          "<tool_call|>{% endfor %}",
     "<|tool_call>call:find{q:<|\"|>a b<|\"|>,n:7}<tool_call|><|tool_call>call:now{}<tool_call|>"},
    {"Apertus",
     "<|tools_prefix|>[" EACH "{% if not loop.first %}, {% endif %}{\"" NAME "\": " JSON
     "}{% endfor %}]<|tools_suffix|>",
     "<|tools_prefix|>[{\"find\": {\"q\": \"a b\", \"n\": 7}}, {\"now\": {}}]<|tools_suffix|>"},
    {"LLaMA 3", PARAMETERS_OBJECT,
     "{\"name\": \"find\", \"parameters\": {\"q\": \"a b\", \"n\": 7}}", false, "", "Only text.",
     true},
    {"LLaMA 3 behind its mark", PARAMETERS_OBJECT,
     "<|python_tag|>{\"name\": \"find\", \"parameters\": {\"q\": \"a b\", \"n\": 7}}", false,
     "So: ", "<b>Only</b> text.", true},
    {"LLaMA 3's built-in tools", PARAMETERS_OBJECT, "<|python_tag|>find.call(q=\"a b\", n=7)",
     false, "So: ", "Only text.", true},
    {"InternLM",
     EACH "<|action_start|><|plugin|>\n{\"name\": \"" NAME "\", \"parameters\": " JSON
          "}<|action_end|>{% endfor %}",
     "<|action_start|><|plugin|>\n{\"name\": \"find\", \"parameters\": {\"q\": \"a b\", "
     "\"n\": 7}}<|action_end|>",
     false, "So: ", "Only text.", true},
    {"Functionary 3.2", EACH ">>>" NAME "\n{{ '' + c.function.arguments }}{% endfor %}",
     "find\n{\"q\": \"a b\", \"n\": 7}>>>now\n{}", true, "all\nSo: ", "all\nOnly text.", false,
     ">>>", "", ">>>"},
    {"gpt-oss",
     EACH "<|start|>assistant to=functions." NAME "<|channel|>commentary json<|message|>" JSON
          "<|call|>{% endfor %}",
     "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{\"q\": \"a b\", "
     "\"n\": 7}",
     false, "<|channel|>commentary<|message|>So:<|end|><|start|>assistant",
     "<|channel|>final<|message|>Only text.", true, "<|start|>assistant",
     "{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>"
     "{% endif %}"},
};

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
  CHECK(family_of("Kimi K2").ids_are_names);
  CHECK_FALSE(family_of("LFM2").ids_are_names);
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
