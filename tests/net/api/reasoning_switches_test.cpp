// What requests say of reasoning reaches templates that read it.
#include "base/json_writer.hpp"
#include "net/api/api_request.hpp"
#include "net/api/messages_request.hpp"
#include "net/api/responses/responses_request.hpp"

#include <doctest/doctest.h>

#include <set>

namespace lamella::net::test {

namespace {

api_limits reading(std::set<std::string, std::less<>> names) {
  api_limits limits;
  limits.template_reads = [names](std::string_view x) { return names.contains(x); };
  return limits;
}
const auto all = reading({"enable_thinking", "thinking", "reasoning_effort"});

struct told {
  std::string variables;
  std::vector<std::string> ignored;
  bool operator==(const told&) const = default;
};
told of(const chat_request& x) { return {to_json(x.template_kwargs), x.unknown}; }

const std::string turns = R"("messages":[{"role":"user","content":"Why?"}])";

told chat(const std::string& fields, const api_limits& limits = all) {
  return of(parse_chat_request(R"({"model":"m",)" + turns + "," + fields + "}", limits));
}
chat_request message_of(const std::string& fields, const api_limits& limits = all) {
  return parse_messages_request(R"({"model":"m","max_tokens":2048,)" + turns + fields + "}",
                                limits);
}
told message(const std::string& fields, const api_limits& limits = all) {
  return of(message_of(fields, limits));
}
told response(const std::string& fields, const api_limits& limits = all) {
  return of(parse_responses_request(R"({"model":"m","input":"Why?",)" + fields + "}", limits).chat);
}

} // namespace

TEST_CASE("efforts are a variable of templates that read it") {
  CHECK(chat(R"("reasoning_effort":"high")") == told{R"({"reasoning_effort":"high"})", {}});
  CHECK(chat(R"("reasoning_effort":"minimal")") == told{R"({"reasoning_effort":"low"})", {}});
  CHECK(chat(R"("reasoning_effort":null)") == told{"{}", {}});
  CHECK(response(R"("reasoning":{"effort":"xhigh","summary":"auto"})")
        == told{R"({"reasoning_effort":"high"})", {}});
  CHECK(message(R"(,"output_config":{"effort":"medium"})")
        == told{R"({"reasoning_effort":"medium"})", {}});
  // What the client says of the variable itself holds.
  CHECK(chat(R"("reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":"low"})")
        == told{R"({"reasoning_effort":"low"})", {}});
}

TEST_CASE("no effort is no reasoning, or the lowest where there has to be some") {
  const std::string none = R"("reasoning_effort":"none")";
  CHECK(chat(none, reading({"enable_thinking"})) == told{R"({"enable_thinking":false})", {}});
  CHECK(chat(none, reading({"thinking"})) == told{R"({"thinking":false})", {}});
  CHECK(chat(none, reading({"reasoning_effort"})) == told{R"({"reasoning_effort":"low"})", {}});
}

TEST_CASE("templates that do not read an effort leave a field without effect, which is named") {
  const auto nothing = reading({});
  CHECK(chat(R"("reasoning_effort":"low","a":1,"z":1)", nothing)
        == told{"{}", {"a", "reasoning_effort", "z"}});
  CHECK(response(R"("reasoning":{"effort":"low"})", nothing) == told{"{}", {"reasoning.effort"}});
  CHECK(message(R"(,"output_config":{"effort":"low"})", nothing)
        == told{"{}", {"output_config.effort"}});
  CHECK(chat(R"("reasoning_effort":"low")", {}) == told{"{}", {}}); // no template is known
}

TEST_CASE("messages tell reasoning where they are asked to think, and the template is told") {
  CHECK_FALSE(message_of("").params.include_reasoning);
  CHECK(message("") == told{"{}", {}});
  const auto type = [](const std::string& x) {
    return R"(,"thinking":{"type":")" + x + R"(","budget_tokens":1024})";
  };
  CHECK(message_of(type("enabled")).params.include_reasoning);
  CHECK(message(type("enabled")) == told{R"({"enable_thinking":true,"thinking":true})", {}});
  CHECK(message_of(type("adaptive")).params.include_reasoning);
  CHECK(message(type("adaptive")) == told{"{}", {}});
  CHECK_FALSE(message_of(type("disabled")).params.include_reasoning);
  CHECK(message(type("disabled")) == told{R"({"enable_thinking":false,"thinking":false})", {}});
  CHECK(message(type("disabled"), reading({})) == told{"{}", {}});
  const auto counted = parse_count_tokens_request(
      R"({"model":"m",)" + turns + type("disabled") + "}", reading({"enable_thinking"}));
  CHECK(of(counted) == told{R"({"enable_thinking":false})", {}});
}

} // namespace lamella::net::test
