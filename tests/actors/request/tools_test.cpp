// Tools from request to answer: what the prompt tells, calls that are held to their schemas, whole
// and in streams. The model's weights are random, so calls are right because they are held to be.
#include "tests/actors/gateway/served.hpp"

#include "base/json_writer.hpp"

#include <set>

namespace lamella::actors::test {

namespace {

const std::string tools = R"("tools":[
  {"type":"function","function":{"name":"get_weather","description":"The weather of a city.",
    "parameters":{"type":"object","properties":{"city":{"enum":["Paris","Oslo"]},
    "days":{"type":"integer","minimum":1,"maximum":9}},"required":["city","days"]}}},
  {"type":"function","function":{"name":"now"}}])";

/// Texts of the tiny vocabulary are about as many tokens as bytes.
config::settings roomy_settings() {
  static tests::scratch_folder folder;
  tests::tiny_model_options model;
  model.layers = 3;
  model.context = 4096;
  const auto path = folder / "roomy.gguf";
  if (!std::filesystem::exists(path)) tests::write_tiny_model(path, model);
  auto x = tiny_settings();
  x.model.path = path;
  return x;
}

std::string chat_of(const std::string& fields, uint32_t seed,
                    const std::string& messages = R"([{"role":"user","content":"Sunny?"}])") {
  return R"({"model":"tiny","messages":)" + messages
         + R"(,"max_tokens":600,"temperature":1,"seed":)" + std::to_string(seed) + "," + fields
         + "}";
}

void check_call(const json_value& call) {
  CHECK(text_at(call, "type") == "function");
  CHECK(text_at(call, "id").starts_with("call_"));
  const auto name = text_at(call, "function.name");
  const auto arguments = parse_json(text_at(call, "function.arguments"));
  if (name == "now") {
    CHECK(arguments == json_value(json_value::object{}));
  } else {
    CHECK(name == "get_weather");
    const auto city = text_at(arguments, "city");
    CHECK((city == "Paris" || city == "Oslo"));
    const auto days = int_at(arguments, "days");
    CHECK((days >= 1 && days <= 9));
  }
}

/// The message that a stream of chunks adds up to, as clients put it together.
json_value message_of(const std::vector<json_value>& chunks) {
  std::string content;
  json_value::array calls;
  std::vector<std::array<std::string, 3>> parts; // id, name, arguments
  for (const auto& x : chunks) {
    const auto delta = at(x, "choices.0.delta");
    if (const auto piece = at(delta, "content"); piece.get_if<std::string>() != nullptr)
      content += *piece.get_if<std::string>();
    for (size_t i = 0; i < size_at(delta, "tool_calls"); ++i) {
      const auto call = at(delta, "tool_calls." + std::to_string(i));
      const auto index = static_cast<size_t>(int_at(call, "index"));
      if (index == parts.size()) {
        parts.push_back({text_at(call, "id"), text_at(call, "function.name"), ""});
        CHECK(text_at(call, "type") == "function");
      } else {
        CHECK(at(call, "id").is_null());
      }
      REQUIRE(index < parts.size());
      parts[index][2] += text_at(call, "function.arguments");
    }
  }
  for (const auto& p : parts)
    calls.push_back(
        json_value::object{{"id", p[0]},
                           {"type", "function"},
                           {"function", json_value::object{{"name", p[1]}, {"arguments", p[2]}}}});
  json_value::object message{{"role", "assistant"}};
  message.emplace_back("content", content.empty() && !calls.empty() ? json_value{} : content);
  message.emplace_back("refusal", json_value{});
  if (!calls.empty()) message.emplace_back("tool_calls", std::move(calls));
  return message;
}

} // namespace

TEST_CASE("a call that is required comes, of a tool there is, with arguments of its schema") {
  served s{roomy_settings()};
  std::set<std::string> names;
  size_t complete = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto x =
        s.post("/v1/chat/completions", chat_of(tools + R"(,"tool_choice":"required")", seed));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    const auto reason = text_at(x.json, "choices.0.finish_reason");
    CHECK(at(x.json, "choices.0.message.content").is_null());
    if (reason != "tool_calls") continue;
    ++complete;
    const auto calls = size_at(x.json, "choices.0.message.tool_calls");
    REQUIRE(calls > 0);
    for (size_t i = 0; i < calls; ++i) {
      const auto call = at(x.json, "choices.0.message.tool_calls." + std::to_string(i));
      check_call(call);
      names.insert(text_at(call, "function.name"));
    }
  }
  CHECK(complete > 5);
  CHECK(names.size() == 2);
}

TEST_CASE("a function that is named is called, and once") {
  served s{roomy_settings()};
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const auto x = s.post(
        "/v1/chat/completions",
        chat_of(tools + R"(,"tool_choice":{"type":"function","function":{"name":"get_weather"}})",
                seed));
    REQUIRE(x.status == 200);
    CHECK(text_at(x.json, "choices.0.finish_reason") == "tool_calls");
    REQUIRE(size_at(x.json, "choices.0.message.tool_calls") == 1);
    check_call(at(x.json, "choices.0.message.tool_calls.0"));
    CHECK(text_at(x.json, "choices.0.message.tool_calls.0.function.name") == "get_weather");
  }
}

TEST_CASE("a stream of calls adds up to the whole answer") {
  served s{roomy_settings()};
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    const auto choice = seed % 3 == 0 ? "" : R"(,"tool_choice":"required")";
    const auto whole = s.post("/v1/chat/completions", chat_of(tools + choice, seed));
    const auto streamed =
        s.stream("/v1/chat/completions", chat_of(tools + choice + R"(,"stream":true)", seed));
    REQUIRE(whole.status == 200);
    auto message = at(whole.json, "choices.0.message");
    auto other = message_of(streamed.chunks);
    // Ids differ from request to request.
    const auto anonymous = [](const json_value& x) {
      auto text = to_json(x);
      for (size_t i = 0; (i = text.find("call_", i)) != std::string::npos && i + 29 <= text.size();)
        text.erase(i, 29);
      return text;
    };
    CHECK(anonymous(message) == anonymous(other));
    CHECK(text_at(streamed.chunks.back(), "choices.0.finish_reason")
          == text_at(whole.json, "choices.0.finish_reason"));
  }
}

TEST_CASE("an answer may do without a call, and is text then") {
  served s{roomy_settings()};
  size_t texts = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const auto x = s.post("/v1/chat/completions", chat_of(tools, seed));
    REQUIRE(x.status == 200);
    if (size_at(x.json, "choices.0.message.tool_calls") > 0) continue;
    ++texts;
    CHECK(at(x.json, "choices.0.message.tool_calls").is_null());
    CHECK(at(x.json, "choices.0.message.content").get_if<std::string>() != nullptr);
    CHECK(text_at(x.json, "choices.0.finish_reason") != "tool_calls");
  }
  CHECK(texts > 0);
  // With a format the text has it.
  const auto x =
      s.post("/v1/chat/completions",
             chat_of(tools + R"(,"response_format":{"type":"json_schema","json_schema":{"name":"n",
              "schema":{"enum":["yes","no"]}}})",
                     3));
  REQUIRE(x.status == 200);
  if (size_at(x.json, "choices.0.message.tool_calls") == 0) {
    const auto text = text_at(x.json, "choices.0.message.content");
    CHECK((text == "\"yes\"" || text == "\"no\""));
  }
}

TEST_CASE("the prompt tells of tools, calls and results, and counts them alike everywhere") {
  served s{roomy_settings()};
  const std::string history =
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Sunny?"},
          {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
           "function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\", \"days\": 1}"}}]},
          {"role":"tool","tool_call_id":"call_1","content":"rain"}])";
  const auto x = s.post("/v1/chat/completions", chat_of(tools, 1, history));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  const auto tokens = s.post("/tokenize", R"({"messages":)" + history + "," + tools + "}");
  REQUIRE_MESSAGE(tokens.status == 200, tokens.body);
  CHECK(int_at(tokens.json, "count") == int_at(x.json, "usage.prompt_tokens"));
  const auto back =
      s.post("/detokenize", R"({"tokens":)" + to_json(at(tokens.json, "tokens")) + "}");
  const auto prompt = text_at(back.json, "prompt");
  for (const auto* words : {"Be brief.", "The weather of a city.", "<tool_call>", "rain",
                            "\"days\": 1", "\"name\":\"now\""})
    CHECK_MESSAGE(prompt.find(words) != std::string::npos, words << " in " << prompt);
  // Without tools the prompt is as it was.
  const auto plain = s.post("/tokenize", R"({"messages":[{"role":"user","content":"Sunny?"}]})");
  const auto none = s.post("/tokenize", R"({"messages":[{"role":"user","content":"Sunny?"}],)"
                                            + tools + R"(,"tool_choice":"none"})");
  CHECK(int_at(plain.json, "count") == int_at(none.json, "count"));
}

TEST_CASE("a strict tool whose schema cannot be kept to is refused, others are any object") {
  served s{roomy_settings()};
  const auto with = [&](const std::string& strict) {
    return s.post("/v1/chat/completions",
                  chat_of(R"("tools":[{"type":"function","function":{"name":"f",
                     "parameters":{"type":"object","properties":{"a":{"propertyDependencies":{}}}})"
                              + strict + R"(}}],"tool_choice":"required")",
                          1));
  };
  const auto refused = with(R"(,"strict":true)");
  CHECK(refused.status == 400);
  CHECK(text_at(refused.json, "error.code") == "invalid_schema");
  CHECK(text_at(refused.json, "error.param") == "tools[0].function.parameters");
  CHECK(text_at(refused.json, "error.message").find("/properties/a/propertyDependencies")
        != std::string::npos);
  CHECK(with("").status == 200);
  const auto none =
      s.post("/v1/chat/completions", chat_of(tools.substr(0, tools.size() - 1)
                                                 + R"(,{"type":"function","function":{"name":"f",
                             "parameters":{"type":["string","null"]}}}],"tool_choice":{
                             "type":"function","function":{"name":"f"}})",
                                             1));
  CHECK(none.status == 400);
  CHECK(text_at(none.json, "error.param") == "tools[2].function.parameters");
}

TEST_CASE("a tool of any schema is called with an object, and calls end with white space too") {
  served s{roomy_settings()};
  const auto ask = [&](const std::string& schema, const std::string& bias, uint32_t seed) {
    return s.post("/v1/chat/completions",
                  chat_of(R"("tools":[{"type":"function","function":{"name":"f","parameters":)"
                              + schema + R"(}}],"tool_choice":"required","logit_bias":{)" + bias
                              + "}",
                          seed));
  };
  // A byte's token is 3 and the byte: 128 closes an object, 13 is a line feed; 2 ends the answer.
  for (const auto* schema : {"{}", R"({"type":["object","null"]})", R"({"enum":["a",{"k":1}]})"})
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      const auto x = ask(schema, R"("128":100,"2":90)", seed);
      REQUIRE_MESSAGE(x.status == 200, x.body);
      CHECK(text_at(x.json, "choices.0.finish_reason") == "tool_calls");
      const auto arguments =
          parse_json(text_at(x.json, "choices.0.message.tool_calls.0.function.arguments"));
      CHECK(arguments.get_if<json_value::object>() != nullptr);
    }
  // Always a line feed where there may be one, then the end rather than a letter.
  const auto feeds = ask(R"({"enum":[{"k":1}]})", R"("13":100,"2":50)", 1);
  REQUIRE(feeds.status == 200);
  CHECK(text_at(feeds.json, "choices.0.finish_reason") == "tool_calls");
  CHECK(size_at(feeds.json, "choices.0.message.tool_calls") == 1);
}

} // namespace lamella::actors::test
