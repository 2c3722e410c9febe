// What requests say reaches the chat template in a form that it shows, or is told another way.
#include "actors/request/chat/chat_input.hpp"
#include "actors/request/prompt_tokens.hpp"
#include "base/json_writer.hpp"
#include "net/http/api_error.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"

#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

namespace lamella::actors::test {

namespace {

service with_template(const std::string& source) {
  spdlog::set_level(spdlog::level::off);
  auto s = tiny_service();
  use_chat_template(s, source);
  if (s.chat)
    s.rules.limits.template_reads = [chat = *s.chat](std::string_view x) { return chat.reads(x); };
  return s;
}

/// The prompt that a service makes of messages and other fields, or the error's text.
std::string prompt(const service& s, const std::string& messages, const std::string& more = "") {
  try {
    const auto answer = parse_json(tokenize(s, R"({"messages":)" + messages + more + "}").body);
    std::vector<model::token_id> ids;
    for (const auto& id : *answer.find("tokens")->get_if<json_value::array>())
      ids.push_back(static_cast<model::token_id>(*id.get_if<int64_t>()));
    return s.text->decode(ids);
  } catch (const net::api_error& e) {
    return e.message;
  }
}

const std::string one_user = R"([{"role":"user","content":"hello there"}])";
const std::string tool =
    R"(,"tools":[{"type":"function","function":{"name":"frobnicate","parameters":{"type":"object"}}}])";
const std::string in_parts =
    R"([{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}])";
const std::string as_text = R"([{"role":"user","content":"one"}])";
const std::string instructed =
    R"([{"role":"developer","content":"ONE WORD"},{"role":"user","content":"hi"}])";

} // namespace

TEST_CASE("a template that leaves out what users say is no answer to them") {
  const auto hides =
      with_template("{% for m in messages %}<{{ m.role }}>{{ m.content.text }}{% endfor %}");
  REQUIRE(hides.chat);
  CHECK(hides.chat_hides_users);
  const auto answered = [](const service& s, const std::string& role) {
    net::chat_message message;
    message.role = role;
    message.content = "hello there";
    try {
      return std::to_string(chat_tokens(s, {message}, {}, {}, net::prompt_end::asks, 1'000).size());
    } catch (const net::api_error& e) {
      return e.message;
    }
  };
  CHECK(answered(hides, "user").find("leaves out what users say") != std::string::npos);
  CHECK(answered(hides, "system").size() < 4);
  CHECK(prompt(hides, one_user) == "<user>"); // /tokenize shows what the template makes
  const auto shows =
      with_template("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  CHECK_FALSE(shows.chat_hides_users);
  CHECK(answered(shows, "user").size() < 4);
  CHECK(prompt(shows, one_user) == "<user>hello there");
}

TEST_CASE("parts go to templates that show parts, one text to those that do not") {
  const auto texts = with_template("{% for m in messages %}<{{ m.content + '' }}>{% endfor %}");
  CHECK(prompt(texts, as_text) == "<one>");
  CHECK(prompt(texts, in_parts) == "<one\ntwo>");
  const auto parts =
      with_template("{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}<{{ "
                    "p.text }}>{% endif %}{% endfor %}{% endfor %}");
  CHECK(prompt(parts, as_text) == "<one>");
  CHECK(prompt(parts, in_parts) == "<one><two>");
  const auto both = with_template(
      "{% for m in messages %}{% if m.content is string %}text {{ m.content }}{% else "
      "%}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endif %}{% endfor %}");
  CHECK(prompt(both, as_text) == "text one");
  CHECK(prompt(both, in_parts) == "<one><two>");
}

TEST_CASE("roles and tools that a template does not show are told by those that it does") {
  for (const std::string before : {"{# for every developer, with tools <tool_call> #}", ""}) {
    CAPTURE(before);
    const auto s = with_template(
        before
        + "{% for m in messages %}{% if m.role == 'system' %}<S>{{ m.content }}{% elif "
          "m.role == 'user' %}<U>{{ m.content }}{% endif %}{% endfor %}");
    CHECK(prompt(s, instructed) == "<S>ONE WORD<U>hi");
    const auto told = prompt(s, as_text, tool);
    CHECK(told.starts_with("<S>These functions can be called"));
    CHECK(told.find("frobnicate") != std::string::npos);
  }
  const auto no_system =
      with_template("{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ "
                    "raise_exception('no') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  CHECK(prompt(no_system, instructed) == "<user>ONE WORD\n\nhi");
  CHECK(prompt(no_system, as_text, tool).find("frobnicate") != std::string::npos);
  const auto generic =
      with_template("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  CHECK(prompt(generic, instructed) == "<system>ONE WORD<user>hi");
}

TEST_CASE(
    "tools reach templates that ask for them, but for those that teach a form we do not read") {
  const std::string words = "{% for m in messages %}{{ m.content }}{% endfor %}";
  const auto asks =
      with_template("{% if tools is not none %}TOOLS {{ tools | length }}{% endif %}" + words);
  CHECK(prompt(asks, as_text, tool).starts_with("TOOLS 1"));
  CHECK(prompt(asks, as_text, tool).find("frobnicate") != std::string::npos); // explained as well
  CHECK(prompt(asks, as_text) == "one");
  const auto lists =
      with_template("{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}" + words);
  CHECK(prompt(lists, as_text, tool).starts_with("[frobnicate]"));
  const std::string calls =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "<call {{ c.function.name }}{% for k, v in c.function.arguments.items() %} "
      "{{ k }}={{ v }}{% endfor %}>{% endfor %}{% endfor %}";
  const auto teaches =
      with_template("{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}" + calls);
  CHECK_FALSE(prompt(teaches, as_text, tool).starts_with("[frobnicate]"));
  CHECK(prompt(teaches, as_text, tool).find("frobnicate") != std::string::npos);
  // Earlier calls of a chat without tools stand as the template writes them.
  const std::string called =
      R"([{"role":"user","content":"u"},{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function",)"
      R"("function":{"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}])";
  CHECK(prompt(teaches, called) == "ua<call f x=1>r");
}

TEST_CASE("what a message says of itself reaches templates that read it") {
  const auto s = with_template(
      "{% for m in messages %}<{{ m.content }}>{% if m.reasoning_content %}(think {{ "
      "m.reasoning_content }}){% endif %}{{ m.tone|tojson if m.tone else '' }}{% endfor %}{{ tools "
      "is none }}{{ documents is none }}");
  const auto answered = [](const std::string& fields) {
    return R"([{"role":"user","content":"a"},{"role":"assistant","content":"b",)" + fields + "}]";
  };
  CHECK(prompt(s, as_text) == "<one>TrueTrue");
  CHECK(prompt(s, answered(R"("reasoning_content":"why")")) == "<a><b>(think why)TrueTrue");
  CHECK(prompt(s, answered(R"("reasoning":"why")")) == "<a><b>(think why)TrueTrue");
  CHECK(prompt(s, answered(R"("tone":{"k":[1]})")) == R"(<a><b>{"k": [1]}TrueTrue)");
}

TEST_CASE("calls have ids of the form that a template shows as their names") {
  const auto s = with_template(
      "{% for t in tools or [] %}{{ t|tojson }}{% endfor %}{% for m in messages %}{{ m.content }}"
      "{% if m.tool_calls %}<|tool_calls_section_begin|>{% for c in m.tool_calls %}"
      "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>"
      "{{ c.function.arguments|tojson }}<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>"
      "{% endif %}{% if m.role == 'tool' %}({{ m.tool_call_id }}){% endif %}{% endfor %}");
  CHECK(s.chat_can.ids == model::call_ids::functions);
  const auto call = [](const std::string& id) {
    return R"({"role":"assistant","content":"","tool_calls":[{"id":")" + id
           + R"(","type":"function","function":{"name":"frobnicate","arguments":"{\"x\":1}"}}]},)"
             R"({"role":"tool","tool_call_id":")"
           + id + R"(","content":"r"},)";
  };
  const auto text =
      prompt(s, "[" + call("call_a") + call("b") + R"({"role":"user","content":"go"}])");
  const auto shown = [](const std::string& id) {
    return "<|tool_calls_section_begin|><|tool_call_begin|>" + id
           + "<|tool_call_argument_begin|>{\"x\": 1}<|tool_call_end|><|tool_calls_section_end|>r("
           + id + ")";
  };
  CHECK(text == shown("functions.frobnicate:0") + shown("functions.frobnicate:1") + "go");
}

namespace {

/// A template of strict turns, as some models have it: one system message, then a user and an
/// assistant in turns, beside calls and results of nine letters, one call in each answer.
const std::string strict =
    "{% set ns = namespace(turn=0) %}"
    "{% for m in messages %}{% if m.role == 'system' %}"
    "{% if not loop.first %}{{ raise_exception('system first') }}{% endif %}<S>{{ m.content }}"
    "{% elif m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
    "{% if (m.role == 'user') != (ns.turn % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}"
    "{% set ns.turn = ns.turn + 1 %}{{ '<U>' if m.role == 'user' else '<A>' }}{{ m.content }}"
    "{% elif m.role == 'assistant' %}{% if m.tool_calls|length != 1 %}"
    "{{ raise_exception('one call') }}{% endif %}{% for c in m.tool_calls %}"
    "{% if c.id|length != 9 %}{{ raise_exception('nine letters') }}{% endif %}"
    "<C>{{ m.content }}{{ c.function.name }} {{ c.function.arguments|tojson }} {{ c.id }}"
    "{% endfor %}{% else %}<R>{{ m.content }} {{ m.tool_call_id }}{% endif %}{% endfor %}";

std::string turn(const std::string& role, const std::string& content) {
  return R"({"role":")" + role + R"(","content":")" + content + R"("})";
}
std::string calls(const std::vector<std::string>& ids) {
  std::string text;
  for (const auto& id : ids)
    text += std::string{text.empty() ? "" : ","} + R"({"id":")" + id
            + R"(","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}})";
  return R"({"role":"assistant","content":"ok ","tool_calls":[)" + text + "]}";
}
std::string result(const std::string& id, const std::string& content) {
  return R"({"role":"tool","tool_call_id":")" + id + R"(","content":")" + content + R"("})";
}
std::string all(const std::vector<std::string>& messages) {
  std::string text;
  for (const auto& m : messages) text += (text.empty() ? "" : ",") + m;
  return "[" + text + "]";
}

} // namespace

TEST_CASE("turns that a template refuses are told in turns that it takes") {
  const auto s = with_template(strict);
  const auto& can = s.chat_can;
  CHECK(can.ids == model::call_ids::nine_letters);
  CHECK_FALSE((can.takes_two_users || can.takes_two_answers || can.takes_user_behind_result
               || can.takes_two_systems || can.takes_late_system || can.takes_two_calls));
  const auto u = [](const std::string& x) { return turn("user", x); };
  const auto a = [](const std::string& x) { return turn("assistant", x); };
  CHECK(prompt(s, all({u("a"), u("b")})) == "<U>a\n\nb");
  CHECK(prompt(s, all({u("a"), a("b"), a("c"), u("d")})) == "<U>a<A>b\n\nc<U>d");
  CHECK(prompt(s, all({turn("system", "i"), turn("developer", "j"), u("a")})) == "<S>i\n\nj<U>a");
  CHECK(prompt(s, all({turn("system", "i"), u("a"), a("b"), turn("system", "j"), u("c")}))
        == "<S>i<U>a<A>b<U>j\n\nc");
  CHECK(prompt(s, all({u("a"), calls(std::vector<std::string>{"call_0123456789abcdef"}),
                       result("call_0123456789abcdef", "r"), u("b")}))
        == "<U>a<C>ok f {\"x\": 1} call00000<R>r\n\nb call00000");
  CHECK(
      prompt(s, all({u("a"), calls(std::vector<std::string>{"one", "two"}), result("two", "r2"),
                     result("one", "r1")}))
      == "<U>a<C>ok f {\"x\": 1} call00000<R>r1 call00000<C>f {\"x\": 1} call00001<R>r2 call00001");
}

TEST_CASE("turns that a template takes stay as they are") {
  const auto s = with_template(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name }} {{ c.function.arguments|tojson }} {{ c.id }}{% endfor %}{% endfor %}");
  const auto& can = s.chat_can;
  CHECK(can.ids == model::call_ids::any);
  CHECK((can.takes_two_users && can.takes_two_answers && can.takes_user_behind_result
         && can.takes_two_systems && can.takes_late_system && can.takes_two_calls));
  CHECK(prompt(s, all({turn("user", "a"), turn("system", "i"), turn("user", "b")}))
        == "<user>a<system>i<user>b");
}

TEST_CASE("results are told in the order of their calls, which a template may show without ids") {
  const auto all_said = all({turn("user", "a"), calls({"one", "two"}), result("two", "r2"),
                             result("other", "r3"), result("one", "r1"), turn("user", "b")});
  const char* const plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
  const char* const shown =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name }} {{ c.function.arguments|tojson }} {{ c.id }}{% endfor %}{% endfor %}";
  for (const char* const text : {plain, shown}) {
    CAPTURE(text);
    const auto said = prompt(with_template(text), all_said);
    CAPTURE(said);
    const auto first = said.find("r1"), second = said.find("r2"), unknown = said.find("r3");
    REQUIRE(unknown != std::string::npos);
    CHECK(first < second);
    CHECK(second < unknown);
  }
}

TEST_CASE("a template that cannot be used says why, where it is asked for") {
  CHECK(prompt(with_template("line one\n{{ messages|frobnicated }}"), as_text)
        == "the model's chat template cannot be used: line 2: there is no filter named "
           "'frobnicated'");
  CHECK(prompt(with_template("{% for m in messages %}{{ m.content }}\n{{ m.x.y }}{% endfor %}"),
               as_text)
        == "the chat template rejects the messages: line 2: member 'x' of a dict is undefined");
  CHECK(prompt(with_template("{{ raise_exception('only two turns') }}"), as_text)
        == "the chat template rejects the messages: only two turns");
  CHECK(prompt(with_template(""), as_text)
        == "the model has no chat template; use /v1/completions");
}

TEST_CASE("integers beyond 64 bits reach templates with their digits") {
  const auto calls =
      with_template("{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ "
                    "c.function.name }} "
                    "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}{{ id }}");
  const std::string called =
      R"([{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function",)"
      R"("function":{"name":"f","arguments":"{\"id\":12345678901234567890123,)"
      R"(\"n\":18446744073709551615}"}}]}])";
  CHECK(prompt(calls, called, R"(,"chat_template_kwargs":{"id":-98765432109876543210})")
        == R"(af {"id": 12345678901234567890123, "n": 18446744073709551615}-98765432109876543210)");
  const auto tools =
      with_template("{% for m in messages %}{{ m.content }}{% endfor %}{{ tools|tojson }}");
  const auto told = prompt(tools, as_text,
                           R"(,"tools":[{"type":"function","function":{"name":"f",)"
                           R"("parameters":{"const":100000000000000000001}}}])");
  CHECK_MESSAGE(told.find(R"({"const": 100000000000000000001})") != told.npos, told);
}

TEST_CASE("what is nested as deeply as JSON may be reaches templates") {
  const auto nested = [](size_t depth) {
    std::string text = "1";
    for (size_t i = 0; i < depth; ++i) text = R"({"a": )" + text + "}";
    return text;
  };
  const auto tools = with_template("{{ tools|tojson }}{% for m in messages %}{% endfor %}");
  // A body, its tools, one of them, its function and that one's parameters are around it.
  CHECK(prompt(tools, R"([{"role":"user","content":"x"}])",
               R"(,"tools":[{"type":"function","function":{"name":"f","parameters":)" + nested(96)
                   + "}}]")
            .find(nested(96))
        != std::string::npos);
  const auto calls = with_template(
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.name }} {{ c.function.arguments|tojson }}{% endfor %}{% endfor %}");
  CHECK(prompt(calls, R"([{"role":"user","content":"x"},{"role":"assistant","tool_calls":[
                {"id":"a","type":"function","function":{"name":"f","arguments":)"
                          + to_json(json_value{nested(100)}) + "}}]}]")
        == "xf " + nested(100));
}

TEST_CASE("markers in a plain prompt are special tokens unless a field says that they are text") {
  const auto s = tiny_service();
  const auto ids = [&](const std::string& body) {
    return to_json(*parse_json(tokenize(s, body).body).find("tokens"));
  };
  const std::string marked = R"("prompt":"<|im_start|>hi<|im_end|>")";
  const auto letters = ids("{" + marked + R"(,"parse_special":false})");
  CHECK(ids("{" + marked + "}") == "[1,107,108,2]");
  CHECK(ids("{" + marked + R"(,"parse_special":true})") == "[1,107,108,2]");
  CHECK(letters.find("[1,") == std::string::npos);
  CHECK(letters.size() > 40);
}

TEST_CASE("an answer goes on with the last message as the template shows it") {
  const std::string go_on = R"(,"continue_final_message":true)";
  const std::string said =
      R"([{"role":"user","content":"q"},{"role":"assistant","content":"It is "}])";
  const std::string in_two = R"([{"role":"user","content":"q"},{"role":"assistant","content":[
      {"type":"text","text":"It"},{"type":"text","text":"is"}]}])";
  const std::string each = "{% for m in messages %}<{{ m.role }}>";
  const std::string end =
      "</{{ m.role }}>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

  CHECK(prompt(with_template(each + "{{ m.content }}" + end), said, go_on)
        == "<user>q</user><assistant>It is ");
  CHECK(prompt(with_template(each + "{{ m.content | trim }}" + end), said, go_on)
        == "<user>q</user><assistant>It is ");
  const auto of_parts =
      with_template(each + "{% for p in m.content %}[{{ p.text }}]{% endfor %}" + end);
  CHECK(prompt(of_parts, in_two, go_on) == "<user>[q]</user><assistant>[It][is");
  CHECK(prompt(with_template("{% if m %}{% endif %}" + each + "{{ m.content }}" + end), said)
        == "<user>q</user><assistant>It is </assistant><assistant>");
  CHECK(prompt(with_template("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}"
                             "{% endif %}{% endfor %}"),
               said, go_on)
            .find("does not show the last message")
        != std::string::npos);
}

} // namespace lamella::actors::test
