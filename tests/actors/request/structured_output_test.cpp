// Answers that are held to a format: what they are, that they are the same however they are
// computed, and what is refused. The model's weights are random, so nothing but the format makes
// them right.
#include "base/json_writer.hpp"
#include "tests/actors/gateway/served.hpp"

#include <set>

namespace lamella::actors::test {

namespace {

const char* const person = R"({"type":"object","properties":{"name":{"type":"string","maxLength":6},
    "age":{"type":"integer","minimum":0,"maximum":130},"tags":{"type":"array","maxItems":3,
    "items":{"enum":["red","green","blue"]}},"boss":{"anyOf":[{"type":"null"},{"$ref":"#"}]}},
    "required":["name","age","tags"],"additionalProperties":false})";

std::string body_of(const std::string& format, uint32_t seed, const std::string& more = "") {
  return R"({"model":"tiny","prompt":)" + token_list(5 + seed % 60, seed) + R"(,"max_tokens":200,)"
         + format + R"(,"seed":)" + std::to_string(seed) + more + "}";
}

std::string schema_format(const std::string& schema) {
  return R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" + schema
         + "}}";
}

/// What the schema says, once more and by hand.
void check_person(const json_value& x, int depth = 0) {
  const auto* members = x.get_if<json_value::object>();
  REQUIRE(members != nullptr);
  for (const auto& [key, value] : *members)
    CHECK(std::set<std::string>{"name", "age", "tags", "boss"}.contains(key));
  CHECK(at(x, "name").get_if<std::string>() != nullptr);
  const auto age = int_at(x, "age");
  CHECK((age >= 0 && age <= 130));
  const auto tags = at(x, "tags");
  REQUIRE(tags.get_if<json_value::array>() != nullptr);
  CHECK(size_at(x, "tags") <= 3);
  for (size_t i = 0; i < size_at(x, "tags"); ++i)
    CHECK(std::set<std::string>{"red", "green", "blue"}.contains(
        text_at(x, "tags." + std::to_string(i))));
  if (const auto* boss = x.find("boss"); boss != nullptr && !boss->is_null())
    check_person(*boss, depth + 1);
}

/// Bodies that ask for several formats, some of which others ask for as well.
std::vector<std::string> bodies(uint32_t count) {
  const std::string formats[]{schema_format(person), R"_("guided_regex":"(ab|[c-y]z?){20,40}")_",
                              R"("guided_choice":["yes","no","maybe"])",
                              schema_format(R"({"type":"array","items":{"type":"integer"},
                                  "minItems":3,"maxItems":9})")};
  std::vector<std::string> result;
  for (uint32_t i = 0; i < count; ++i)
    result.push_back(body_of(formats[i % 4], i + 1, R"(,"logprobs":1)"));
  return result;
}

std::vector<std::string> texts_of(const std::vector<answer>& answers) {
  std::vector<std::string> texts;
  for (const auto& x : answers) {
    REQUIRE_MESSAGE(x.status == 200, x.body);
    texts.push_back(to_json(at(x.json, "choices")));
  }
  return texts;
}

/// One at a time, in one process with one shard.
const std::vector<std::string>& alone() {
  static const auto result = [] {
    served s;
    std::vector<answer> answers;
    for (const auto& body : bodies(24)) answers.push_back(s.post("/v1/completions", body));
    return texts_of(answers);
  }();
  return result;
}

} // namespace

TEST_CASE("an answer is what its schema says, and complete when it says that it is") {
  served s;
  int complete = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    const auto x = s.post("/v1/completions", body_of(schema_format(person), seed));
    REQUIRE_MESSAGE(x.status == 200, x.body);
    if (text_at(x.json, "choices.0.finish_reason") != "stop") continue;
    ++complete;
    const auto text = text_at(x.json, "choices.0.text");
    CAPTURE(text);
    check_person(parse_json(text));
  }
  CHECK(complete > 10);
}

TEST_CASE("an answer is one of the choices, all of a regular expression, or any object") {
  served s;
  std::set<std::string> seen;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto x =
        s.post("/v1/completions", body_of(R"("guided_choice":["yes","no","not yet"])", seed));
    CHECK(text_at(x.json, "choices.0.finish_reason") == "stop");
    seen.insert(text_at(x.json, "choices.0.text"));
    const auto y =
        s.post("/v1/completions",
               body_of(R"("structured_outputs":{"regex":"\\d{4}-\\d{2}-\\d{2}"})", seed));
    const auto date = text_at(y.json, "choices.0.text");
    CHECK_MESSAGE((date.size() == 10 && date[4] == '-' && date[7] == '-'), date);
  }
  CHECK(seen.size() > 1);
  for (const auto& text : seen) CHECK(std::set<std::string>{"yes", "no", "not yet"}.contains(text));
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const auto x =
        s.post("/v1/completions", body_of(R"("response_format":{"type":"json_object"})", seed));
    const auto text = text_at(x.json, "choices.0.text");
    CHECK(text.starts_with("{"));
    if (text_at(x.json, "choices.0.finish_reason") == "stop")
      CHECK_NOTHROW_MESSAGE(parse_json(text, {.depth = 300}), text);
  }
}

TEST_CASE("a stop string ends an answer within its format") {
  served s;
  for (const char* stream : {"false", "true"}) {
    CAPTURE(stream);
    const auto x = s.post("/v1/completions",
                          R"({"model":"tiny","prompt":"Hi","max_tokens":50,"stop":["-"],"stream":)"
                              + std::string{stream} + R"(,"guided_regex":"\\d{4}-\\d{2}"})");
    REQUIRE_MESSAGE(x.status == 200, x.body);
    CHECK(x.body.find(R"("finish_reason":"stop","stop_reason":"-")") != x.body.npos);
    if (stream == std::string{"true"}) continue;
    const auto text = text_at(x.json, "choices.0.text");
    CHECK(text.size() == 4);
    CHECK(text.find_first_not_of("0123456789") == text.npos);
  }
  // One that the format has no room for ends nothing.
  const auto x = s.post("/v1/completions", R"({"model":"tiny","prompt":"Hi","max_tokens":50,
      "stop":["x"],"guided_regex":"\\d{4}-\\d{2}"})");
  CHECK(text_at(x.json, "choices.0.text").size() == 7);
  CHECK(at(x.json, "choices.0.stop_reason").is_null());
}

TEST_CASE("an answer is a text of a grammar in EBNF or Lark, which is refused where it is none") {
  served s;
  for (uint32_t seed = 1; seed <= 10; ++seed)
    for (
        const auto* field :
        {R"("guided_grammar":"root ::= \"<\" [a-c]{2} (root | \"-\") \">\"")",
         R"("structured_outputs":{"grammar":"start: \"<\" /[a-c]{2}/ (start | \"-\") \">\"\n"})"}) {
      const auto x = s.post("/v1/completions", body_of(field, seed));
      const auto text = text_at(x.json, "choices.0.text");
      CHECK_MESSAGE(
          (text.size() > 3 && text[0] == '<' && text.find_first_not_of("<abc->") == text.npos),
          text);
      if (text_at(x.json, "choices.0.finish_reason") != "stop") continue;
      const auto middle = text.find('-');
      REQUIRE(middle != text.npos);
      CHECK(text.substr(middle + 1) == std::string(middle / 3, '>'));
    }
  const auto x = s.post("/v1/completions", body_of(R"("guided_grammar":"root ::= x")", 1));
  CHECK(x.status == 400);
  CHECK(text_at(x.json, "error.param") == "guided_grammar");
  CHECK(text_at(x.json, "error.message")
        == "guided_grammar: line 1, column 10: there is no rule x");
}

TEST_CASE("choices, streams and chats of a format say the same") {
  served s;
  const auto body =
      R"({"model":"tiny","messages":[{"role":"user","content":"Who?"}],"max_tokens":200,
                        "seed":7,"n":3,)"
      + schema_format(person);
  const auto whole = s.post("/v1/chat/completions", body + "}");
  REQUIRE_MESSAGE(whole.status == 200, whole.body);
  CHECK(size_at(whole.json, "choices") == 3);
  const auto streamed = s.stream("/v1/chat/completions", body + R"(,"stream":true})");
  CHECK(streamed.text == text_at(whole.json, "choices.0.message.content"));
}

TEST_CASE("held answers have the same bits alone, together, cut and after failures") {
  const auto expected = alone();
  SUBCASE("together") {
    served s;
    CHECK(texts_of(s.post_all("/v1/completions", bodies(24))) == expected);
  }
  SUBCASE("over three shards, two replicas and small chunks") {
    auto x = tiny_settings();
    x.pools.attention.members = 3;
    x.pools.model.members = 2;
    x.batching.batches = 2;
    served s{x};
    CHECK(texts_of(s.post_all("/v1/completions", bodies(24))) == expected);
  }
  SUBCASE("when iterations fail and run again") {
    served s;
    const armed failing{"batch.commit=0.2:error"};
    CHECK(texts_of(s.post_all("/v1/completions", bodies(24))) == expected);
  }
  SUBCASE("when sequences are preempted") {
    auto x = tiny_settings();
    x.kv.bytes = 700 * 576; // fewer slots than all of them want
    served s{x};
    CHECK(texts_of(s.post_all("/v1/completions", bodies(24))) == expected);
  }
}

TEST_CASE("what nothing can be held to is refused, with the field that asks for it") {
  served s;
  struct row {
    std::string format;
    const char* code;
    const char* param;
    const char* words;
  };
  for (const auto& x : {
           row{schema_format(R"({"type":"object","properties":{"a":{"type":"strin"}}})"),
               "invalid_schema", "response_format.json_schema.schema", "/properties/a/type"},
           row{R"("guided_json":{"$ref":"#"})", "invalid_schema", "guided_json", "met again"},
           row{R"_("guided_regex":"a(?=b)")_", "invalid_value", "guided_regex", "look-around"},
           row{R"_("guided_regex":"[ab]*a[ab]{10000}")_", "invalid_schema", "guided_regex",
               "give repeated parts a distinct beginning"},
           row{R"_("guided_regex":"((((a{1000}){1000}){1000}))")_", "", "", ""},
       }) {
    const auto reply = s.post("/v1/completions", body_of(x.format, 1));
    CAPTURE(x.format);
    if (*x.code == '\0') { // of huge counts
      CHECK(reply.status == 200);
      continue;
    }
    CHECK(reply.status == 400);
    CHECK(text_at(reply.json, "error.code") == x.code);
    CHECK(text_at(reply.json, "error.param") == x.param);
    CHECK(text_at(reply.json, "error.message").find(x.words) != std::string::npos);
  }
}

TEST_CASE("formats of ambiguous counts are served, and change nothing for others") {
  served s;
  auto all = bodies(8);
  const std::vector<std::string> ambiguous{"(a{1,1000}){1000}", ".{0,5000}\\\\d.{0,5000}",
                                           "(.*a.{50,60}){2,40}"};
  for (uint32_t i = 0; i < ambiguous.size(); ++i)
    all.push_back(body_of(R"("guided_regex":")" + ambiguous[i] + "\"", 100 + i));
  const auto answers = s.post_all("/v1/completions", all);
  for (size_t i = 0; i < answers.size(); ++i) {
    REQUIRE_MESSAGE(answers[i].status == 200, answers[i].body);
    if (i < 8) CHECK(to_json(at(answers[i].json, "choices")) == alone()[i]);
  }
  CHECK(text_at(answers[8].json, "choices.0.text").find_first_not_of('a') == std::string::npos);
  CHECK(eventually([&] { return s.idle(); }));
}

} // namespace lamella::actors::test
