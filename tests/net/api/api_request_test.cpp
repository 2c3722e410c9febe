// Request bodies: what is taken, what is refused, with which code and which field.
#include "net/api/api_fields.hpp"
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace lamella::net;
using namespace lamella::net::test;

TEST_CASE("a chat with nothing but the needed fields has the published defaults") {
  const chat_request r = parse_chat_request(chat(), {});
  CHECK(r.model == "m");
  REQUIRE(r.messages.size() == 1);
  CHECK(r.messages[0].role == "user");
  CHECK(r.messages[0].content == "hi");
  const generation_params& p = r.params;
  CHECK(p.sampling.temperature == 1);
  CHECK(p.sampling.top_p == 1);
  CHECK(p.sampling.top_k == 0);
  CHECK(p.sampling.min_p == 0);
  CHECK(p.sampling.repetition_penalty == 1);
  CHECK(!p.sampling.seed);
  CHECK(p.n == 1);
  CHECK(!p.max_tokens);
  CHECK(!p.logprobs);
  CHECK(p.skip_special_tokens);
  CHECK_FALSE(p.stream);
  CHECK_FALSE(p.ignore_eos);
  CHECK(r.unknown.empty());
}

TEST_CASE("every field of a chat arrives") {
  const chat_request r = parse_chat_request(
      chat(R"("temperature":0.5,"top_p":0.0,"top_k":-1,"min_p":0.1,"presence_penalty":-2,
        "frequency_penalty":2,"repetition_penalty":1.1,"seed":-9223372036854775808,"n":8,
        "max_tokens":5,"max_completion_tokens":7.0,"min_tokens":3,"stop":["a","é"],
        "stop_token_ids":[5,2],"ignore_eos":true,"skip_special_tokens":false,"logprobs":true,
        "top_logprobs":20,"logit_bias":{"7":-100,"3":1.5},"stream":true,
        "stream_options":{"include_usage":true,"include_obfuscation":false,
        "continuous_usage_stats":true},"user":"u","metadata":{"a":"b"},"store":false,
        "service_tier":"auto","reasoning_effort":"low","verbosity":"low","request_id":"id-1","cache_salt":"s",
        "response_format":{"type":"text"},"tools":[],"tool_choice":"none","prompt_cache_key":"k",
        "chat_template_kwargs":{"enable_thinking":false},"new_field":1,"other":null)"),
      {});
  const generation_params& p = r.params;
  CHECK(p.sampling.temperature == 0.5);
  CHECK(p.sampling.top_p == 0);
  CHECK(p.sampling.top_k == 0);
  CHECK(p.sampling.min_p == 0.1);
  CHECK(p.sampling.presence_penalty == -2);
  CHECK(p.sampling.frequency_penalty == 2);
  CHECK(p.sampling.repetition_penalty == 1.1);
  CHECK(p.sampling.seed == INT64_MIN);
  CHECK(p.sampling.logit_bias == std::vector<std::pair<uint32_t, float>>{{3, 1.5f}, {7, -100.f}});
  CHECK(p.n == 8);
  CHECK(p.max_tokens == 7u); // the newer name wins
  CHECK(p.min_tokens == 3);
  CHECK(p.stop == std::vector<std::string>{"a", "é"});
  CHECK(p.stop_token_ids == std::vector<uint32_t>{5, 2});
  CHECK(p.ignore_eos);
  CHECK_FALSE(p.skip_special_tokens);
  CHECK(p.logprobs == 20u);
  CHECK(p.stream);
  CHECK(p.include_usage);
  CHECK(p.continuous_usage);
  CHECK(p.echo_service_tier);
  CHECK(p.request_id == "id-1");
  CHECK(p.cache_salt == "s");
  CHECK(r.template_kwargs.size() == 1);
  CHECK(r.unknown == std::vector<std::string>{"new_field"});
}

TEST_CASE("null means absent everywhere") {
  const chat_request r = parse_chat_request(
      chat(R"("temperature":null,"top_p":null,"n":null,"stop":null,"max_tokens":null,"seed":null,
        "logprobs":null,"top_logprobs":null,"logit_bias":null,"stream":null,"stream_options":null,
        "tools":null,"response_format":null,"tool_choice":null,"functions":null,"priority":null)"),
      {});
  CHECK(r.params.sampling.temperature == 1);
  CHECK(!r.params.max_tokens);
  CHECK(r.unknown.empty());
  // So do fields that are unknown, and those whose names are internal.
  api_limits strict;
  strict.strict = true;
  const std::string nothing = R"("kv_transfer_params":null,"_x":null,"new_field":null)";
  for (const auto& limits : {api_limits{}, strict}) {
    CHECK(parse_chat_request(chat(nothing), limits).unknown.empty());
    CHECK(legacy_failure(legacy(nothing), limits).status == 0);
  }
}

TEST_CASE("a seed is any number of 64 bits, signed or not, and others are told the range") {
  const auto seed = [](const std::string& text) {
    return parse_chat_request(chat("\"seed\":" + text), api_limits{}).params.sampling.seed;
  };
  CHECK(seed("9223372036854775807") == INT64_MAX);
  CHECK(seed("9223372036854775808") == INT64_MIN); // the same bits
  CHECK(seed("18446744073709551615") == -1);
  CHECK(seed("-1") == -1);
  CHECK(seed("7.0") == 7);
  for (const char* beyond : {"18446744073709551616", "-9223372036854775809", "1e40"}) {
    const auto f = chat_failure(chat(std::string{"\"seed\":"} + beyond));
    CHECK(f.status == 400);
    CHECK(f.message.find("between -9223372036854775808 and 18446744073709551615")
          != std::string::npos);
  }
}

TEST_CASE("values out of range or of the wrong type are 400 and name the field") {
  const std::pair<const char*, const char*> table[] = {
      {R"("temperature":2.1)", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":"1")", "temperature"},
      {R"("temperature":true)", "temperature"},
      {R"("temperature":[1])", "temperature"},
      {R"("top_p":1.1)", "top_p"},
      {R"("top_p":-1)", "top_p"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("top_k":2147483648)", "top_k"},
      {R"("min_p":2)", "min_p"},
      {R"("presence_penalty":2.5)", "presence_penalty"},
      {R"("frequency_penalty":-2.5)", "frequency_penalty"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("repetition_penalty":-1)", "repetition_penalty"},
      {R"("seed":1.5)", "seed"},
      {R"("seed":18446744073709551616)", "seed"},
      {R"("seed":-9223372036854775809)", "seed"},
      {R"("seed":1e40)", "seed"},
      {R"("n":0)", "n"},
      {R"("n":129)", "n"},
      {R"("n":-1)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":-5)", "max_tokens"},
      {R"("max_tokens":1.5)", "max_tokens"},
      {R"("max_tokens":4294967297)", "max_tokens"},
      {R"("max_completion_tokens":0)", "max_completion_tokens"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("min_tokens":6,"max_tokens":5)", "min_tokens"},
      {R"("stop":1)", "stop"},
      {R"("stop":"")", "stop"},
      {R"("stop":["a",""])", "stop[1]"},
      {R"("stop":["a",null])", "stop[1]"},
      {R"("stop":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"])", "stop"},
      {R"("stop_token_ids":[-1])", "stop_token_ids[0]"},
      {R"("stop_token_ids":5)", "stop_token_ids"},
      {R"("logprobs":1)", "logprobs"},
      {R"("top_logprobs":3)", "top_logprobs"},
      {R"("logprobs":false,"top_logprobs":3)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("logit_bias":{"a":1})", "logit_bias"},
      {R"("logit_bias":{"-1":1})", "logit_bias"},
      {R"("logit_bias":{"01":1})", "logit_bias"},
      {R"("logit_bias":{"":1})", "logit_bias"},
      {R"("logit_bias":{"4294967296":1})", "logit_bias"},
      {R"("logit_bias":{"5":101})", "logit_bias.5"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("stream":true,"stream_options":3)", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("ignore_eos":1)", "ignore_eos"},
      {R"("request_id":"a b")", "request_id"},
      {R"("request_id":"")", "request_id"},
      {R"("cache_salt":"")", "cache_salt"},
      {R"("cache_salt":1)", "cache_salt"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs"},
      {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs"},
      {R"("chat_template_kwargs":{"tokenize":true})", "chat_template_kwargs"},
      {R"("chat_template_kwargs":{"a-b":1})", "chat_template_kwargs"},
      {R"("chat_template_kwargs":{"a":{"b":{"c":1}}})", "chat_template_kwargs.a"},
  };
  for (const auto& [fields, param] : table) {
    CAPTURE(fields);
    const failure f = chat_failure(chat(fields));
    CHECK(f.status == 400);
    CHECK(f.code == "invalid_value");
    CHECK(f.param == param);
    CHECK(f.message.find(std::string(param).substr(0, 4)) != std::string::npos);
  }
}

TEST_CASE(
    "variables of templates may have the names of functions, and none that means another thing") {
  const auto request = parse_chat_request(
      chat(R"("chat_template_kwargs":{"range":[1],"raise_exception":"no","namespace":{},"dict":1,)"
           R"("strftime_now":"today","cycler":null,"joiner":true})"),
      {});
  std::string names;
  for (const auto& [name, value] : request.template_kwargs) names += name + " ";
  CHECK(names == "range raise_exception namespace dict strftime_now cycler joiner ");
  for (const auto& [name, why] : std::vector<std::pair<std::string, std::string>>{
           {"messages", "a field of the request"},
           {"tools", "a field of the request"},
           {"add_generation_prompt", "a field of the request"},
           {"continue_final_message", "a field of the request"},
           {"bos_token", "a token of the model"},
           {"tokenize", "no variable"},
           {"1st", "not an identifier"}}) {
    const auto f = chat_failure(chat("\"chat_template_kwargs\":{\"" + name + "\":1}"));
    CHECK(f.status == 400);
    CHECK(f.param == "chat_template_kwargs");
    CHECK_MESSAGE(f.message.find("\"" + name + "\", which is " + why) != std::string::npos,
                  f.message);
  }
}

TEST_CASE("operators lower what one request may ask for") {
  api_limits limits;
  limits.top_logprobs = 2;
  limits.stop_string_bytes = 3;
  limits.stop_strings = 2;
  const auto param = [&](const char* fields) { return chat_failure(chat(fields), limits).param; };
  CHECK(param(R"("logprobs":true,"top_logprobs":2,"stop":["abc","d"])").empty());
  CHECK(param(R"("logprobs":true,"top_logprobs":3)") == "top_logprobs");
  CHECK(param(R"("stop":"abcd")") == "stop");
  CHECK(param(R"("stop":["a","abcd"])") == "stop[1]");
  CHECK(param(R"("stop":["a","b","c"])") == "stop");
  CHECK(chat_failure(chat(R"("stop":"abcd")"), limits).message.find('3') != std::string::npos);
}

TEST_CASE("JSON that is broken or ambiguous is 400 invalid_json") {
  for (const std::string& body :
       {std::string(), std::string("{"), chat(R"("n":1,"n":2)"), chat(R"("temperature":1e400)"),
        chat(R"("temperature":NaN)"), chat(R"("temperature":-Infinity)"),
        chat(R"("user":"\ud800")"), chat("\"user\":\"\xFF\""), chat() + "x",
        "{\"a\":" + repeat("[", 100) + repeat("]", 100) + "}",
        "{\"a\":[" + repeat("1,", 262'144) + "1]}"}) {
    CAPTURE(body.substr(0, 100));
    const failure f = chat_failure(body);
    CHECK(f.status == 400);
    CHECK(f.code == "invalid_json");
  }
  CHECK(chat_failure("[]").code == "invalid_value");
  CHECK(chat_failure("null").status == 400);
}

TEST_CASE("the penalty of repetition has llama.cpp's name, too") {
  const auto penalty = [](const char* fields) {
    return parse_chat_request(chat(fields), {}).params.sampling.repetition_penalty;
  };
  CHECK(penalty(R"("repeat_penalty":1.25)") == 1.25f);
  CHECK(penalty(R"("repeat_penalty":1.25,"repetition_penalty":1.5)") == 1.5f);
  CHECK(chat_failure(chat(R"("repeat_penalty":0)")).param == "repeat_penalty");
}

TEST_CASE("fields that are known but not honoured are refused unless they ask for nothing") {
  for (const char* field :
       {R"("web_search_options":{})", R"("allowed_token_ids":[1])", R"("priority":1)",
        R"("functions":[{}])", R"("best_of":2)", R"("echo":true)", R"("use_beam_search":true)",
        R"("modalities":["audio"])", R"("audio":{})", R"("_internal":1)",
        R"("kv_transfer_params":{})"}) {
    CAPTURE(field);
    const failure f = chat_failure(chat(field));
    CHECK(f.status == 400);
    CHECK(f.code == "unsupported_parameter");
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    CHECK(f.param == name);
  }
  for (const char* field :
       {R"("tools":[])", R"("tool_choice":"auto")", R"("response_format":{"type":"text"})",
        R"("priority":0)", R"("use_beam_search":false)", R"("parallel_tool_calls":true)",
        R"("modalities":["text"])", R"("length_penalty":1.0)"}) {
    CAPTURE(field);
    CHECK(chat_failure(chat(field)).status == 0);
  }
  CHECK(legacy_failure(legacy(R"("suffix":"x")")).code == "unsupported_parameter");
  CHECK(legacy_failure(legacy(R"("suffix":"")")).status == 0);
}

TEST_CASE("log probabilities of prompts are taken whole, bounded and refused in streams") {
  CHECK(parse_chat_request(chat(R"("prompt_logprobs":5)"), {}).params.prompt_logprobs == 5u);
  CHECK(parse_completion_request(legacy(R"("prompt_logprobs":0)"), {}).params.prompt_logprobs
        == 0u);
  for (const char* off : {R"("prompt_logprobs":null)", R"("prompt_logprobs":false)"})
    CHECK_FALSE(parse_chat_request(chat(off), {}).params.prompt_logprobs);
  CHECK(chat_failure(chat(R"("prompt_logprobs":-1)")).param == "prompt_logprobs");
  CHECK(legacy_failure(legacy(R"("prompt_logprobs":21)")).param == "prompt_logprobs");
  CHECK(legacy_failure(legacy(R"("prompt_logprobs":1,"stream":true)")).code
        == "unsupported_parameter");
  const auto both = parse_completion_request(legacy(R"("echo":true,"logprobs":1)"), {});
  CHECK(both.echo);
  CHECK(both.params.logprobs == 1u);
  api_limits limits;
  limits.prompt_logprobs = 120;
  const auto check = [&](uint64_t tokens) {
    return failure_of([&] { check_prompt_logprobs(tokens, 2, 2, limits, "logprobs"); });
  };
  CHECK(check(20).status == 0);
  CHECK(check(21).status == 400);
  CHECK(check(21).param == "logprobs");
  CHECK(check(21).message.find("126 values, at most 120") != std::string::npos);
  limits.prompt_logprobs = 0;
  CHECK(check(1).message.find("limits.prompt_logprobs is 0") != std::string::npos);
}

TEST_CASE("unknown fields are errors only when strict") {
  api_limits strict;
  strict.strict = true;
  const failure f = chat_failure(chat(R"("tempratur":1)"), strict);
  CHECK(f.status == 400);
  CHECK(f.code == "unknown_parameter");
  CHECK(f.param == "tempratur");
  CHECK(parse_chat_request(chat(R"("tempratur":1)"), {}).unknown
        == std::vector<std::string>{"tempratur"});
  CHECK(chat_failure(chat(R"("user":"u","store":true)"), strict).status == 0);
}

TEST_CASE("up to sixteen stop strings are taken, and no stop tokens beside a format") {
  CHECK(parse_chat_request(chat(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d",
        "e","f","g"])"),
                           {})
            .params.stop.size()
        == 16);
  const std::string format = R"("response_format":{"type":"json_object"},)";
  const auto ends = R"("stop":[","],"stop_token_ids":[5])";
  const auto f = chat_failure(chat(format + ends));
  CHECK(f.status == 400);
  CHECK(f.param == "stop_token_ids");
  CHECK(f.message.find("response_format") != std::string::npos);
  CHECK(legacy_failure(legacy(format + ends)).param == "stop_token_ids");
  CHECK(chat_failure(chat(format + R"("stop":[","],"stop_token_ids":[])")).status == 0);
}

TEST_CASE("pairs of fields never fail in any other way than 400") {
  const std::pair<const char*, const char*> fields[] = {{"temperature", "0"},
                                                        {"temperature", "3"},
                                                        {"top_p", "0.5"},
                                                        {"top_k", "-1"},
                                                        {"n", "8"},
                                                        {"n", "0"},
                                                        {"max_tokens", "65536"},
                                                        {"max_tokens", "1"},
                                                        {"min_tokens", "2"},
                                                        {"stop", "\"x\""},
                                                        {"stop", "[]"},
                                                        {"stop", "{}"},
                                                        {"logprobs", "true"},
                                                        {"top_logprobs", "5"},
                                                        {"stream", "true"},
                                                        {"stream_options", "{}"},
                                                        {"logit_bias", "{}"},
                                                        {"seed", "1e3"},
                                                        {"ignore_eos", "true"},
                                                        {"tools", "[]"},
                                                        {"tools", "{}"},
                                                        {"max_completion_tokens", "3"},
                                                        {"_x", "1"},
                                                        {"zzz", "[]"}};
  size_t accepted = 0;
  for (const auto& [a, x] : fields)
    for (const auto& [b, y] : fields) {
      const std::string pair =
          "\"" + std::string(a) + "\":" + x + ",\"" + std::string(b) + "\":" + y;
      CAPTURE(pair);
      const failure f = chat_failure(chat(pair));
      if (f.status == 0) {
        ++accepted;
        continue;
      }
      CHECK(f.status == 400);
      if (std::string(a) == b)
        CHECK(f.code == "invalid_json");
      else
        CHECK((f.param == a || f.param == b));
    }
  CHECK(accepted > 100);
}

TEST_CASE("damaged bodies give a value or a 400, never anything else") {
  const std::string good =
      chat(R"("temperature":0.5,"stop":["a"],"logit_bias":{"5":1},"n":2,"seed":5,"max_tokens":10)");
  std::mt19937 random(29);
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string body = good;
    for (unsigned n = 1 + random() % 3; n; --n) {
      const size_t at = random() % body.size();
      switch (random() % 3) {
      case 0:
        body[at] = static_cast<char>(random());
        break;
      case 1:
        body.erase(at, 1 + random() % 5);
        break;
      default:
        body.insert(at, 1, "{}[]\",:-e9"[random() % 10]);
        break;
      }
    }
    const failure f = chat_failure(body);
    CHECK((f.status == 0 || f.status == 400));
    accepted += f.status == 0;
  }
  CHECK(accepted > 100);
}
