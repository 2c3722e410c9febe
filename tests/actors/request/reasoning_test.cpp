// Chats of models that reason: the reasoning is told apart, and formats and calls begin behind it.
// Keywords of schemas that mean nothing are told.
#include "tests/actors/gateway/served.hpp"

#include "actors/request/choice.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"

namespace lamella::actors::test {

namespace {

/// A model whose prompts end with `end`, and that has reasoned before where there is none.
config::settings reasoning_settings(const std::string& name, const std::string& end) {
  static tests::scratch_folder folder;
  tests::tiny_model_options model;
  model.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ "
                        "m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
                        "{% if add_generation_prompt %}<|im_start|>assistant\n"
                        + end + "{% endif %}";
  const auto path = folder / (name + ".gguf");
  if (!std::filesystem::exists(path)) tests::write_tiny_model(path, model);
  auto x = tiny_settings();
  x.model.path = path;
  return x;
}

std::string chat_of(const std::string& more) {
  return R"({"model":"tiny","messages":[{"role":"user","content":"Why?"}],"max_tokens":24,"seed":3,)"
         + more + "}";
}

struct told {
  std::string reasoning, text;
  uint32_t calls = 0;
  uint64_t reasoning_tokens = 0;
};

/// What a choice tells of an answer of byte tokens.
told read(const std::string& answer, model::reasoning_start start,
          const net::generation_params& params = {}, bool has_tools = false) {
  const auto service = tiny_service();
  const model::answer_reasoning how{{"<think>", "</think>"}, start};
  choice c{*service.text, params, {}, has_tools ? &service.tool_calls : nullptr, {}, &how};
  for (const char byte : answer) {
    sampled_token drawn;
    drawn.token = 3 + static_cast<unsigned char>(byte);
    c.push(drawn, finish::none);
  }
  c.close(finish::length);
  const auto piece = c.take();
  return {piece.reasoning, piece.text, c.calls(), c.reasoning_tokens()};
}

} // namespace

TEST_CASE("a choice tells reasoning and text apart, and looks for calls and stops in the text") {
  using enum model::reasoning_start;
  const auto plain = read("<think>ab</think>\n\nc", open);
  CHECK(plain.reasoning == "ab");
  CHECK(plain.text == "c");
  CHECK(plain.reasoning_tokens == 10); // behind the mark, up to the end of the other
  net::generation_params params;
  params.stop = {"b"};
  const auto stopped = read("ab</think>cbd", begun, params);
  CHECK(stopped.reasoning == "ab");
  CHECK(stopped.text == "c");
  params.include_reasoning = false;
  CHECK(read("ab</think>c", begun, params).reasoning.empty());
  CHECK(read("ab</think>c", begun, params).text == "c");
  const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  const auto with_tools = read("<think>" + call + "</think>" + call, open, {}, true);
  CHECK(with_tools.reasoning == call);
  CHECK(with_tools.calls == 1);
  CHECK(with_tools.text.empty());
}

TEST_CASE("a choice that reasons behind its text says where, in whatever pieces it is taken") {
  const auto service = tiny_service();
  model::answer_reasoning how;
  how.marks.form = model::answer_form::channels;
  how.start = model::reasoning_start::open;
  const std::string answer =
      "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>analysis"
      "<|message|>why<|end|><|start|>assistant<|channel|>final<|message|>Yes";
  for (const bool at_once : {true, false}) {
    CAPTURE(at_once);
    choice c{*service.text, net::generation_params{}, {}, nullptr, {}, &how};
    std::string said;
    const auto take = [&] {
      const auto piece = c.take();
      for (const auto& part : net::parts_of(piece.reasoning, piece.text, piece.ends)) {
        if (!part.reasoning.empty()) said += "(" + std::string{part.reasoning} + ")";
        said += part.text;
      }
    };
    for (const char byte : answer) {
      sampled_token drawn;
      drawn.token = 3 + static_cast<unsigned char>(byte);
      c.push(drawn, finish::none);
      if (!at_once) take();
    }
    c.close(finish::length);
    take();
    CHECK(said == (at_once ? "I look.(why)\n\nYes" : "I look.(w)(h)(y)\n\nYes"));
  }
}

TEST_CASE("reasoning that the prompt has begun is told as such, whole and in streams") {
  served s{reasoning_settings("begun", "<think>\n")};
  const auto whole = s.post("/v1/chat/completions", chat_of(R"("temperature":1)"));
  REQUIRE_MESSAGE(whole.status == 200, whole.body);
  const auto reasoning = text_at(whole.json, "choices.0.message.reasoning_content");
  CHECK_FALSE(reasoning.empty());
  CHECK(at(whole.json, "choices.0.message.content").is_null());
  CHECK(int_at(whole.json, "usage.completion_tokens_details.reasoning_tokens")
        == int_at(whole.json, "usage.completion_tokens"));
  const auto streamed =
      s.stream("/v1/chat/completions", chat_of(R"("temperature":1,"stream":true)"));
  std::string pieces;
  for (const auto& x : streamed.chunks)
    if (const auto piece = at(x, "choices.0.delta.reasoning_content"); !piece.is_null())
      pieces += *piece.get_if<std::string>();
  CHECK(pieces == reasoning);
  CHECK(streamed.text.empty());
  const auto quiet =
      s.post("/v1/chat/completions", chat_of(R"("temperature":1,"include_reasoning":false)"));
  CHECK(at(quiet.json, "choices.0.message.reasoning_content").is_null());
  const auto held = s.post("/v1/chat/completions", chat_of(R"("guided_choice":["yes"])"));
  REQUIRE_MESSAGE(held.status == 200, held.body);
  CHECK_FALSE(text_at(held.json, "choices.0.message.reasoning_content").empty());
  CHECK(text_at(held.json, "choices.0.message.content") != "yes"); // it still reasons
}

TEST_CASE("responses and messages tell reasoning in items and blocks of its own") {
  served s{reasoning_settings("begun", "<think>\n")};
  const auto response =
      s.post("/v1/responses",
             R"({"model":"tiny","input":"Why?","max_output_tokens":24,"seed":3,"temperature":1})");
  REQUIRE_MESSAGE(response.status == 200, response.body);
  CHECK(text_at(response.json, "output.0.type") == "reasoning");
  const auto reasoning = text_at(response.json, "output.0.content.0.text");
  CHECK_FALSE(reasoning.empty());
  CHECK(int_at(response.json, "usage.output_tokens_details.reasoning_tokens")
        == int_at(response.json, "usage.output_tokens"));
  const std::string asked =
      R"({"model":"tiny","messages":[{"role":"user","content":"Why?"}],"max_tokens":24,"seed":3,)"
      R"("temperature":1)";
  const auto message = s.post("/v1/messages", asked + R"(,"thinking":{"type":"adaptive"}})");
  REQUIRE_MESSAGE(message.status == 200, message.body);
  CHECK(text_at(message.json, "content.0.type") == "thinking");
  CHECK(text_at(message.json, "content.0.thinking") == reasoning);
  for (const std::string untold : {"", R"(,"thinking":{"type":"disabled"})"}) {
    const auto quiet = s.post("/v1/messages", asked + untold + "}");
    REQUIRE_MESSAGE(quiet.status == 200, quiet.body);
    CHECK(at(quiet.json, "content.0.type").is_null());
  }
}

TEST_CASE("a format is all of an answer whose prompt has ended the reasoning") {
  served s{reasoning_settings("closed", "<think>\n\n</think>\n\n")};
  const auto x = s.post("/v1/chat/completions", chat_of(R"("guided_choice":["yes"])"));
  REQUIRE_MESSAGE(x.status == 200, x.body);
  CHECK(text_at(x.json, "choices.0.message.content") == "yes");
  CHECK(at(x.json, "choices.0.message.reasoning_content").is_null());
}

TEST_CASE("an answer that goes on within the reasoning of its beginning is told as reasoning") {
  served s{reasoning_settings("goes_on", "<think>\n")};
  const auto answer = [&](const std::string& beginning) {
    const auto x = s.post("/v1/chat/completions",
                          R"({"model":"tiny","messages":[{"role":"user","content":"Why?"},)"
                          R"({"role":"assistant","prefix":true,"content":")"
                              + beginning + R"("}],"max_tokens":24,"seed":3,"temperature":1})");
    REQUIRE_MESSAGE(x.status == 200, x.body);
    const bool reasons = !at(x.json, "choices.0.message.reasoning_content").is_null();
    const bool says = !at(x.json, "choices.0.message.content").is_null();
    CHECK(reasons != says);
    return std::string{reasons ? "reasoning" : "text"};
  };
  const std::string far(40, 'x'); // the mark is not among the last tokens of the prompt
  CHECK(answer("<think>") == "reasoning");
  CHECK(answer(R"(<think>\nOkay, the user)") == "reasoning");
  CHECK(answer(R"(\n<think>)" + far) == "reasoning");
  CHECK(answer("<think>" + far + R"(</think>\n\nBecause)") == "text");
  CHECK(answer("<think></think>Because" + far) == "text");
  CHECK(answer("Because") == "text");
  CHECK(answer("Because <think> is a mark") == "text");
  const auto message = s.post(
      "/v1/messages", R"({"model":"tiny","messages":[{"role":"user","content":"Why?"},)"
                      R"({"role":"assistant","content":"<think>\nOkay, the user wants to know"}],)"
                      R"("max_tokens":24,"seed":3,"temperature":1,)"
                      R"("thinking":{"type":"enabled"}})");
  REQUIRE_MESSAGE(message.status == 200, message.body);
  CHECK(text_at(message.json, "content.0.type") == "thinking");
}

TEST_CASE("fields that mean nothing stand in a header, those without effect do not") {
  served s;
  const auto header_of = [&](const std::string& fields) {
    const auto x = s.post("/v1/chat/completions", chat_of(fields));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    return std::string{x.headers.get("x-lamella-ignored-fields")};
  };
  CHECK(header_of(R"("n_predict":4,"user":"u","mirostat":0,"a\r\nb":1)") == "mirostat, n_predict");
  CHECK(header_of(R"("user":"u")").empty());
}

TEST_CASE("answers that tell of tokens name the fields that mean nothing, too") {
  served s;
  const auto header_of = [&](const std::string& path, const std::string& body) {
    const auto x = s.post(path, body);
    REQUIRE_MESSAGE(x.status == 200, x.body);
    return std::string{x.headers.get("x-lamella-ignored-fields")};
  };
  const std::string counts = "/v1/messages/count_tokens";
  const std::string hi = R"({"model":"tiny","messages":[{"role":"user","content":"Hi")";
  for (const std::string& path : {std::string{"/tokenize"}, counts}) {
    CAPTURE(path);
    CHECK(header_of(path, hi + R"(,"x":1}],"a":1,"b":null})") == "a, messages[].x");
    CHECK(header_of(path, hi + "}]}").empty());
  }
  CHECK(header_of("/detokenize", R"({"tokens":[3],"a":1})") == "a");
}

TEST_CASE("keywords of schemas that mean nothing stand in a header, or are refused where strict") {
  const std::string schema =
      R"({"type":"object","x-unit":1,"properties":{"a":{"const":1,"self":{}}}})";
  const auto body = chat_of(R"("guided_json":)" + schema);
  served s;
  const auto x = s.post("/v1/chat/completions", body);
  REQUIRE_MESSAGE(x.status == 200, x.body);
  CHECK(x.headers.get("x-lamella-ignored-keywords") == "x-unit, self");
  CHECK(s.post("/v1/chat/completions", chat_of(R"("guided_json":{"const":1})"))
            .headers.get("x-lamella-ignored-keywords")
            .empty());
  auto settings = tiny_settings();
  settings.api.strict = true;
  served strict{settings};
  const auto refused = strict.post("/v1/chat/completions", body);
  CHECK(refused.status == 400);
  CHECK(text_at(refused.json, "error.code") == "invalid_schema");
  CHECK(text_at(refused.json, "error.message").find("/x-unit") != std::string::npos);
}

} // namespace lamella::actors::test
