#include "net/api/tool_call_reader.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace lamella;
using net::answer_piece;
using net::tool_call_reader;

namespace {

struct whole_call {
  std::string name, arguments;
  friend bool operator==(const whole_call&, const whole_call&) = default;
};

struct whole_answer {
  std::string text;
  std::vector<whole_call> calls;
};

void add(whole_answer& to, const answer_piece& piece) {
  to.text += piece.text;
  for (const auto& x : piece.calls) {
    if (!x.name.empty()) {
      CHECK(x.call == to.calls.size());
      to.calls.push_back({x.name, {}});
    }
    REQUIRE(x.call + 1 == to.calls.size());
    to.calls.back().arguments += x.arguments;
  }
}

/// The answer as a reader finds it in pieces of so many bytes.
whole_answer read(const model::tool_dialect& dialect, std::string_view text, size_t piece) {
  tool_call_reader reader{dialect};
  whole_answer all;
  for (size_t i = 0; i < text.size(); i += piece) add(all, reader.feed(text.substr(i, piece)));
  add(all, reader.finish());
  CHECK(reader.calls() == all.calls.size());
  return all;
}

void check(const model::tool_dialect& dialect, std::string_view text, const std::string& said,
           const std::vector<whole_call>& calls) {
  for (const size_t piece : {1, 2, 3, 7, 1000}) {
    CAPTURE(text);
    CAPTURE(piece);
    const auto got = read(dialect, text, piece);
    CHECK(got.text == said);
    CHECK(got.calls == calls);
  }
}

const auto tags =
    model::tool_dialect_of("<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "f");
const auto bare = model::tool_dialect_of(R"({"name": "f", "parameters": {}})", "f");
const auto list = model::tool_dialect_of(R"([TOOL_CALLS] [{"name": "f", "arguments": {}}])", "f");

} // namespace

TEST_CASE("templates tell how their models write calls") {
  // What is not there, or written in a way that is not read, is explained.
  for (const auto* written :
       {"", R"(<tool_call>{"name": "g", "arguments": {}})", R"({"name": "f", "arguments": {}})",
        R"(<|tool_call|>[{"name": "f", "arguments": {}})", R"([TOOL_CALLS]f[ARG]{})",
        "<tool_call>\n<function=f>\n", R"({"arguments": {}, "name": "f"})"}) {
    CAPTURE(written);
    CHECK_FALSE(model::tool_dialect_of(written, "f").template_writes);
    CHECK(model::tool_dialect_of(written, "f").open == "<tool_call>\n");
  }
  CHECK(tags.template_writes);
  CHECK(bare.arguments_key == "parameters");
  CHECK(bare.mark().empty());
  CHECK_FALSE(bare.many);
  CHECK(list.mark() == "[TOOL_CALLS]");
  CHECK(list.behind_mark() == "[");
  CHECK(tags.mark() == "<tool_call>");
  CHECK(list.mark_tokens() == std::vector<std::string>{"[TOOL_CALLS]"});
  CHECK(tags.mark_tokens()
        == std::vector<std::string>{"<tool_call>", "</tool_call>", "<tool_response>"});
}

TEST_CASE("calls are found in answers, however they are cut") {
  check(tags, "no calls here", "no calls here", {});
  check(tags, "", "", {});
  check(tags, "a < b, <tool> and <tool_calls> without", "a < b, <tool> and <tool_calls> without",
        {});
  check(tags, "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a\"}}\n</tool_call>", "",
        {{"find", "{\"q\": \"a\"}"}});
  check(
      tags,
      "Let me look.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"a\":[1,{\"b\":\"}\\\"]\"}]}}\n</tool_call>",
      "Let me look.", {{"f", "{}"}, {"g", "{\"a\":[1,{\"b\":\"}\\\"]\"}]}"}});
  check(list,
        "Well: [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"x\":1}}, {\"name\": \"g\", "
        "\"arguments\": {}}]",
        "Well:", {{"f", "{\"x\":1}"}, {"g", "{}"}});
  check(model::tool_dialect_of( // Jamba
            "<tool_calls>[\n{\"name\": \"f\", \"arguments\": {}}\n]</tool_calls>", "f"),
        "<tool_calls>[\n{\"name\": \"f\", \"arguments\": {\"x\":1}}, {\"name\": \"g\", "
        "\"arguments\": {}}\n]</tool_calls>",
        "", {{"f", "{\"x\":1}"}, {"g", "{}"}});
  check(bare, "{\"name\": \"f\", \"parameters\": {\"x\": \"{\"}}", "", {{"f", "{\"x\": \"{\"}"}});
  check(bare, "\n I think {not}", "\n I think {not}", {});
}

TEST_CASE("what comes behind a call and is no other one is no part of the answer") {
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  for (const auto* behind : {"\n", "\n<tool_response>", "\n<tool_resp", "\n<tool_call>"})
    check(tags, "So: " + call + behind, "So:", {{"f", "{}"}});
  check(tags, call + "\n" + call + "\n", "", {{"f", "{}"}, {"f", "{}"}});
}

TEST_CASE("a reader tells text from the parts of a call") {
  tool_call_reader reader{tags};
  CHECK(reader.reads_as_text("a"));
  CHECK(reader.reads_as_text("<tool_call>")); // whoever asks for it wants it found
  reader.feed("a <tool");
  CHECK(reader.reads_as_text("s"));
  CHECK_FALSE(reader.reads_as_text("_"));
  CHECK_FALSE(reader.reads_as_text("_call>\n{"));
  reader.feed("_call>");
  CHECK_FALSE(reader.reads_as_text("\n"));
  reader.feed("\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>");
  CHECK_FALSE(reader.reads_as_text("\n"));
}

TEST_CASE("an answer that is cut off has the calls that it had begun") {
  check(tags, "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a", "",
        {{"find", "{\"q\": \"a"}});
  check(tags, "Hm <tool_call>\n{\"name\": \"fi", "Hm", {});
  check(tags, "Hm <tool_ca", "Hm <tool_ca", {});
}
