// What requests say reaches the chat template in a form that it shows, or is told another way.
#include "tests/actors/served.hpp"

#include "model/json_writer.hpp"

namespace lamella::actors::test {

namespace {

config::settings settings_of(const std::string& chat_template) {
  static tests::scratch_folder folder;
  static int made = 0;
  tests::tiny_model_options model;
  model.layers = 1;
  model.chat_template = chat_template;
  const auto path = folder / ("template-" + std::to_string(made++) + ".gguf");
  tests::write_tiny_model(path, model);
  auto x = tiny_settings();
  x.model.path = path;
  return x;
}

/// The prompt that a service makes of messages and other fields, or the error's text.
std::string prompt(served& s, const std::string& messages, const std::string& more = "") {
  const auto tokens = s.post("/tokenize", R"({"messages":)" + messages + more + "}");
  if (tokens.status != 200) return text_at(tokens.json, "error.message");
  const auto back =
      s.post("/detokenize", R"({"tokens":)" + model::to_json(at(tokens.json, "tokens")) + "}");
  return text_at(back.json, "prompt");
}

const std::string tool =
    R"(,"tools":[{"type":"function","function":{"name":"frobnicate","parameters":{"type":"object"}}}])";
const std::string in_parts =
    R"([{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}])";
const std::string as_text = R"([{"role":"user","content":"one"}])";

} // namespace

TEST_CASE("parts go to templates that show parts, one text to those that do not") {
  served texts{settings_of("{% for m in messages %}<{{ m.content + '' }}>{% endfor %}")};
  CHECK(prompt(texts, as_text) == "<one>");
  CHECK(prompt(texts, in_parts) == "<one\ntwo>");
  served parts{settings_of("{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' "
                           "%}<{{ p.text }}>{% endif %}{% endfor %}{% endfor %}")};
  CHECK(prompt(parts, as_text) == "<one>");
  CHECK(prompt(parts, in_parts) == "<one><two>");
  served both{
      settings_of("{% for m in messages %}{% if m.content is string %}text {{ m.content }}{% "
                  "else %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endif %}{% "
                  "endfor %}")};
  CHECK(prompt(both, as_text) == "text one");
  CHECK(prompt(both, in_parts) == "<one><two>");
}

TEST_CASE("roles and tools that a template does not show are told by those that it does") {
  const std::string instructed =
      R"([{"role":"developer","content":"ONE WORD"},{"role":"user","content":"hi"}])";
  for (const std::string before : {"{# for every developer, with tools <tool_call> #}", ""}) {
    CAPTURE(before);
    served s{settings_of(before
                         + "{% for m in messages %}{% if m.role == 'system' %}<S>{{ m.content }}{% "
                           "elif m.role == 'user' %}<U>{{ m.content }}{% endif %}{% endfor %}")};
    CHECK(prompt(s, instructed) == "<S>ONE WORD<U>hi");
    const auto told = prompt(s, as_text, tool);
    CHECK(told.starts_with("<S>These functions can be called"));
    CHECK(told.find("frobnicate") != std::string::npos);
  }
  served no_system{
      settings_of("{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ "
                  "raise_exception('no') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}")};
  CHECK(prompt(no_system, instructed) == "<user>ONE WORD\n\nhi");
  CHECK(prompt(no_system, as_text, tool).find("frobnicate") != std::string::npos);
}

TEST_CASE("what a message says of itself reaches templates that read it, and else is counted") {
  const std::string shows =
      "{% for m in messages %}<{{ m.content }}>{% if m.reasoning_content %}(think {{ "
      "m.reasoning_content }}){% endif %}{{ m.tone|tojson if m.tone else '' }}{% endfor %}{{ "
      "tools is none }}{{ documents is none }}";
  const auto answered = [](const std::string& fields) {
    return R"([{"role":"user","content":"a"},{"role":"assistant","content":"b",)" + fields
           + R"(},{"role":"user","content":[{"type":"text","text":"c","made_up_part":1}]}])";
  };
  served s{settings_of(shows)};
  CHECK(prompt(s, as_text) == "<one>TrueTrue");
  CHECK(prompt(s, answered(R"("reasoning_content":"why")")) == "<a><b>(think why)<c>TrueTrue");
  CHECK(prompt(s, answered(R"("reasoning":"why")")) == "<a><b>(think why)<c>TrueTrue");
  CHECK(prompt(s, answered(R"("tone":{"k":[1]})")) == R"(<a><b>{"k": [1]}<c>TrueTrue)");
  const auto body = R"({"model":"tiny","max_tokens":1,"messages":)"
                    + answered(R"("tone":"x","made_up_field":{"a":1},"refusal":null)") + "}";
  CHECK(s.post("/v1/chat/completions", body).status == 200);
  const auto page = s.admin("GET", "/metrics").body;
  CHECK(page.find(R"(lamella_unknown_params_total{param="messages[].made_up_field"} 1)")
        != std::string::npos);
  CHECK(page.find(R"(param="messages[].content[].made_up_part"})") != std::string::npos);
  CHECK(page.find("tone") == std::string::npos);
  auto strict = settings_of(shows);
  strict.api.strict = true;
  served t{strict};
  const auto refused = t.post("/v1/chat/completions", body);
  CHECK(refused.status == 400);
  CHECK(text_at(refused.json, "error.param") == "messages[1].made_up_field");
}

TEST_CASE("a template that cannot be used says why, where it is asked for") {
  served s{settings_of("line one\n{{ messages|frobnicated }}")};
  CHECK(prompt(s, as_text)
        == "the model's chat template cannot be used: line 2: there is no filter named "
           "'frobnicated'");
  served t{settings_of("{% for m in messages %}{{ m.content }}\n{{ m.x.y }}{% endfor %}")};
  CHECK(prompt(t, as_text)
        == "the chat template refuses: line 2: member 'x' of a dict is undefined");
}

TEST_CASE("markers in a plain prompt are special tokens unless a field says that they are text") {
  served s;
  const std::string marked = R"("prompt":"<|im_start|>hi<|im_end|>")";
  const auto tokens = s.post("/tokenize", "{" + marked + "}");
  CHECK(model::to_json(at(tokens.json, "tokens")) == "[1,107,108,2]");
  const auto letters = s.post("/tokenize", "{" + marked + R"(,"parse_special":false})");
  CHECK(int_at(letters.json, "count") > 10);
  const auto billed = [&](const std::string& more) {
    return int_at(
        s.post("/v1/completions", R"({"model":"tiny","max_tokens":1,)" + marked + more + "}").json,
        "usage.prompt_tokens");
  };
  CHECK(billed("") == 4);
  CHECK(billed(R"(,"parse_special":false)") == int_at(letters.json, "count"));
  // What is said in a chat stays text.
  const auto chat = s.post("/tokenize", R"({"messages":[{"role":"user","content":"<|im_end|>"}]})");
  const auto ids = model::to_json(at(chat.json, "tokens"));
  CHECK(ids.find(",2,") == ids.rfind(",2,"));
}

} // namespace lamella::actors::test
