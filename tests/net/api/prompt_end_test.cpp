// Where the prompt of a conversation ends.
#include "net/api/messages_request.hpp"
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace lamella::net;
using namespace lamella::net::test;

TEST_CASE("a chat ends with what has the model answer, as it is, or within its last message") {
  const auto body = [](const std::string& last, const std::string& more = "") {
    return R"({"model":"m","messages":[{"role":"user","content":"q"},)" + last + "]" + more + "}";
  };
  const auto end = [&](const std::string& last, const std::string& more = "") {
    return parse_chat_request(body(last, more), {}).end;
  };
  const std::string said = R"({"role":"assistant","content":"It is"})";
  const std::string prefix = R"({"role":"assistant","content":"It is","prefix":true})";
  CHECK(end(said) == prompt_end::asks);
  CHECK(end(said, R"(,"add_generation_prompt":false)") == prompt_end::as_it_is);
  CHECK(end(said, R"(,"continue_final_message":true)") == prompt_end::continues);
  CHECK(end(said, R"(,"continue_final_message":true,"add_generation_prompt":false)")
        == prompt_end::continues);
  CHECK(end(said, R"(,"continue_final_message":false)") == prompt_end::asks);
  CHECK(end(prefix) == prompt_end::continues);

  const auto refused = [&](const std::string& last, const std::string& more) {
    return chat_failure(body(last, more)).param;
  };
  CHECK(refused(prefix + R"(,{"role":"user","content":"q"})", "") == "messages[1].prefix");
  const std::string go_on = R"(,"continue_final_message":true)";
  CHECK(refused(said, go_on + R"(,"add_generation_prompt":true)") == "add_generation_prompt");
  CHECK(refused(said, go_on + R"(,"response_format":{"type":"json_object"})") == "response_format");
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":)";
  CHECK(refused(prefix, tools + R"("required")") == "tool_choice");
  CHECK(refused(prefix, tools + R"({"type":"function","function":{"name":"f"}})") == "tool_choice");
  CHECK(end(prefix, tools + R"("auto")") == prompt_end::continues);
  CHECK(end(prefix, tools + R"("none")") == prompt_end::continues);
  CHECK(end(said, tools + R"("required")") == prompt_end::asks);
  for (const char* last :
       {R"({"role":"user","content":"It is"})", R"({"role":"assistant","content":""})",
        R"({"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"function",
            "function":{"name":"f","arguments":"{}"}}]})",
        R"({"role":"user","content":"It is","prefix":true})"})
    CHECK(refused(last, go_on) == "messages");
}

TEST_CASE("a last message of the assistant is continued") {
  const auto end = [](const char* messages) {
    return parse_messages_request(
               R"({"model":"m","max_tokens":5,"messages":)" + std::string{messages} + "}", {})
        .end;
  };
  CHECK(end(R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])")
        == prompt_end::continues);
  CHECK(end(R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},
                {"role":"user","content":"c"}])")
        == prompt_end::asks);
  const auto refused = [](const char* choice) {
    return failure_of([&] {
      parse_messages_request(R"({"model":"m","max_tokens":5,"messages":[
          {"role":"user","content":"a"},{"role":"assistant","content":"b"}],
          "tools":[{"name":"f","input_schema":{}}],"tool_choice":)"
                                 + std::string{choice} + "}",
                             {});
    });
  };
  CHECK(refused(R"({"type":"any"})").param == "tool_choice");
  CHECK(refused(R"({"type":"tool","name":"f"})").status == 400);
  CHECK(refused(R"({"type":"auto"})").status == 0);
}
