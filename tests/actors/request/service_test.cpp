// What a conversation becomes before it runs.
#include "actors/request/prompt_tokens.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"

#include <doctest/doctest.h>

namespace lamella::actors::test {

TEST_CASE("arguments of an earlier call that are no object do not end its conversation") {
  auto s = tiny_service();
  s.tool_calls = model::tool_dialect_of(R"(<tool_call>{"name": "f", "arguments": {}})", "f");
  const auto prompt_of = [&](const char* show, const std::string& arguments) {
    s.chat = model::chat_template::compile(
        std::string{"{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<"}
        + show + ">{% endfor %}{% endfor %}");
    std::vector<net::chat_message> messages{{"assistant", "so ", {}}};
    messages[0].tool_calls.push_back({"c1", "f", arguments});
    return s.text->decode(chat_tokens(s, messages, {}, {}, net::prompt_end::asks));
  };
  const auto* members = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}";
  const auto* whole = "{{ c.function.arguments | tojson }}";
  CHECK(prompt_of(members, R"({"city":"Bern"})").ends_with("so <city=Bern>"));
  for (const std::string other : {R"({"cut": )", R"("Bern")", "[1]", "null", "not json"}) {
    CAPTURE(other);
    CHECK(prompt_of(members, other).ends_with("so <arguments=" + other + ">"));
    // Where a template takes them as they are, they stay.
    CHECK(prompt_of(whole, other).find("arguments") == std::string::npos);
  }
  CHECK_THROWS_AS(prompt_of("{{ c.nothing.at }}", "{}"), net::api_error);
  CHECK_THROWS_AS(prompt_of("{{ c.nothing.at }}", "[1]"), net::api_error);
}

} // namespace lamella::actors::test
