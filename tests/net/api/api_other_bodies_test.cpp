// Bodies of legacy completions, tokenize and detokenize, and the length of an answer.
#include "tests/net/api/api_bodies.hpp"

#include <doctest/doctest.h>

using namespace lamella::net;
using namespace lamella::net::test;

TEST_CASE("legacy prompts come in four shapes") {
  using ids = std::vector<uint32_t>;
  const auto prompts = [](const std::string& prompt) {
    return parse_completion_request(R"({"model":"m","prompt":)" + prompt + "}", {}).prompts;
  };
  CHECK(prompts(R"("a")") == std::vector<prompt_input>{"a"});
  CHECK(prompts(R"(["a","b"])") == std::vector<prompt_input>{"a", "b"});
  CHECK(prompts("[1,2.0,3]") == std::vector<prompt_input>{ids{1, 2, 3}});
  CHECK(prompts("[[1,2],[3]]") == std::vector<prompt_input>{ids{1, 2}, ids{3}});
  const std::pair<const char*, const char*> table[] = {
      {"null", "prompt"},         {"5", "prompt"},
      {"[]", "prompt"},           {"[[]]", "prompt[0]"},
      {"[1,\"a\"]", "prompt[1]"}, {"[\"a\",1]", "prompt[1]"},
      {"[[1],2]", "prompt[1]"},   {"[[1],[-1]]", "prompt[1][0]"},
      {"[1.5]", "prompt[0]"},     {"{}", "prompt"},
      {"[null]", "prompt[0]"},
  };
  for (const auto& [prompt, param] : table) {
    CAPTURE(prompt);
    const failure f = legacy_failure(R"({"model":"m","prompt":)" + std::string(prompt) + "}");
    CHECK(f.status == 400);
    CHECK(f.param == param);
  }
  CHECK(legacy_failure(R"({"model":"m","prompt":[)" + repeat("\"a\",", 128) + "\"a\"]}").param
        == "prompt");
  api_limits limits;
  limits.vocabulary = 10;
  CHECK(legacy_failure(R"({"model":"m","prompt":[9]})", limits).status == 0);
  CHECK(legacy_failure(R"({"model":"m","prompt":[10]})", limits).param == "prompt[0]");
  CHECK(legacy_failure(legacy(R"("logit_bias":{"10":1})"), limits).param == "logit_bias");
  CHECK(legacy_failure(legacy(R"("stop_token_ids":[10])"), limits).param == "stop_token_ids[0]");
}

TEST_CASE("no alternatives may be asked for without log probabilities") {
  for (const char* more : {R"("top_logprobs":0)", R"("logprobs":false,"top_logprobs":0)"}) {
    CAPTURE(more);
    CHECK_FALSE(parse_chat_request(chat(more), {}).params.logprobs);
  }
  CHECK(parse_chat_request(chat(R"("logprobs":true,"top_logprobs":0)"), {}).params.logprobs == 0u);
}

TEST_CASE("legacy fields differ from those of a chat") {
  const completion_request plain = parse_completion_request(legacy(), {});
  CHECK(plain.params.max_tokens == 16u);
  CHECK(plain.params.drawn() == 1);
  CHECK_FALSE(plain.echo);
  const completion_request r = parse_completion_request(
      legacy(R"("max_tokens":0,"logprobs":0,"echo":true,"n":2,"best_of":3)"), {});
  CHECK(r.params.max_tokens == 0u);
  CHECK(r.params.logprobs == 0u);
  CHECK(r.echo);
  CHECK(r.params.drawn() == 3);
  CHECK(legacy_failure(legacy(R"("n":3,"best_of":2)")).param == "best_of");
  CHECK(legacy_failure(legacy(R"("best_of":2,"stream":true)")).param == "best_of");
  CHECK(legacy_failure(legacy(R"("best_of":21)")).param == "best_of");
  CHECK(legacy_failure(legacy(R"("logprobs":21)")).param == "logprobs");
  CHECK(legacy_failure(legacy(R"("logprobs":true)")).param == "logprobs");
  CHECK(legacy_failure(legacy(R"("max_tokens":-1)")).param == "max_tokens");
  api_limits tight;
  tight.best_of = 2;
  tight.top_logprobs = 3;
  CHECK(legacy_failure(legacy(R"("best_of":2,"logprobs":3)"), tight).status == 0);
  CHECK(legacy_failure(legacy(R"("n":3)"), tight).status == 0); // best_of was not asked for
  const failure f = legacy_failure(legacy(R"("best_of":3)"), tight);
  CHECK(f.param == "best_of");
  CHECK(f.message.find('2') != std::string::npos);
  CHECK(legacy_failure(legacy(R"("logprobs":4)"), tight).param == "logprobs");
}

TEST_CASE("a completion has up to 128 prompts, 128 choices of each and 1024 of all together") {
  const auto of = [](size_t prompts, const std::string& more) {
    return R"({"model":"m","max_tokens":0,"prompt":[)" + repeat("\"a\",", prompts - 1) + "\"a\"]"
           + (more.empty() ? "" : ",") + more + "}";
  };
  CHECK(parse_completion_request(of(128, ""), {}).prompts.size() == 128);
  CHECK(parse_completion_request(of(8, R"("n":128)"), {}).params.n == 128);
  CHECK(legacy_failure(of(128, R"("n":8)")).status == 0);
  const failure f = legacy_failure(of(128, R"("n":9)"));
  CHECK(f.status == 400);
  CHECK(f.code == "invalid_value");
  CHECK(f.param == "n");
  CHECK(f.message
        == "n x prompts is 9 x 128 = 1152, at most 1024 are allowed: send fewer prompts at once, "
           "or ask for fewer choices");
  CHECK(legacy_failure(of(128, R"("best_of":9)")).param == "best_of");
  api_limits many;
  many.prompts = 2000;
  CHECK(legacy_failure(of(1025, ""), many).param == "prompt");
}

TEST_CASE("tokens of choices that are drawn and not told are a part of a request's") {
  api_limits limits;
  limits.tokens_per_request = 100;
  const auto refusal_of = [&](const char* fields, uint64_t context = 1000) {
    const auto x = parse_completion_request(legacy(fields), limits);
    return failure_of([&] { resolve_max_tokens(x.params, 10, context, 1, limits, "prompt"); });
  };
  CHECK(refusal_of(R"("best_of":10,"max_tokens":10)").status == 0);
  const failure f = refusal_of(R"("best_of":10,"max_tokens":11)");
  CHECK(f.status == 400);
  CHECK(f.param == "max_tokens");
  CHECK(f.message
        == "best_of x prompts x max_tokens is 10 x 1 x 11 = 110, at most 100 is allowed by "
           "limits.tokens_per_request of this server");
  CHECK(refusal_of(R"("n":8,"max_tokens":13)").message.starts_with("n x "));
  // More than the context holds is more than any server's, and clients know what to do.
  CHECK(refusal_of(R"("max_tokens":101)", 100).code == "context_length_exceeded");
}

TEST_CASE("the length of an answer follows from prompt, context and limits") {
  api_limits limits;
  limits.default_max_tokens = 100;
  generation_params p;
  CHECK(resolve_max_tokens(p, 10, 1000, 1, limits) == 100);
  CHECK(resolve_max_tokens(p, 950, 1000, 1, limits) == 50);
  CHECK(resolve_max_tokens(p, 999, 1000, 1, limits) == 1);
  const failure full = failure_of([&] { resolve_max_tokens(p, 1000, 1000, 1, limits); });
  CHECK(full.code == "context_length_exceeded");
  CHECK(full.message.find("1000 tokens. However, the prompt has 1000") != std::string::npos);
  CHECK(full.param == "messages");
  limits.prompt_tokens = 950;
  CHECK(resolve_max_tokens(p, 950, 1000, 1, limits) == 50);
  const failure longer = failure_of([&] { resolve_max_tokens(p, 951, 1000, 1, limits, "prompt"); });
  CHECK(longer.status == 400);
  CHECK(longer.code == "context_length_exceeded");
  CHECK(longer.param == "prompt");
  CHECK(longer.message
        == "This model's maximum context length is 950 tokens. However, the prompt has 951 tokens, "
           "more than limits.prompt_tokens of this server: shorten it");
  limits.prompt_tokens.reset();
  p.max_tokens = 51;
  const failure f = failure_of([&] { resolve_max_tokens(p, 950, 1000, 1, limits, "prompt"); });
  CHECK(f.status == 400);
  CHECK(f.code == "context_length_exceeded");
  CHECK(f.param == "max_tokens"); // the prompt alone would fit
  CHECK(f.message.find("51 more") != std::string::npos);
  const auto chat_of = [](const std::string& length) {
    return parse_chat_request(chat("\"" + length + "\":51"), {}).params;
  };
  for (const std::string length : {"max_tokens", "max_completion_tokens"}) {
    CHECK(failure_of([&] { resolve_max_tokens(chat_of(length), 950, 1000, 1, limits); }).param
          == length);
    CHECK(failure_of([&] { resolve_max_tokens(chat_of(length), 1001, 1000, 1, limits); }).param
          == "messages");
  }
  p.max_tokens = 50;
  CHECK(resolve_max_tokens(p, 950, 1000, 1, limits) == 50);
  p.max_tokens = 0;
  CHECK(resolve_max_tokens(p, 950, 1000, 1, limits) == 0);
  p.max_tokens.reset();
  p.min_tokens = 200;
  CHECK(resolve_max_tokens(p, 10, 1000, 1, limits) == 200);
  p.n = 8;
  limits.tokens_per_request = 100;
  CHECK(failure_of([&] { resolve_max_tokens(p, 10, 1000, 1, limits); }).param == "min_tokens");
  p.min_tokens = 0;
  CHECK(resolve_max_tokens(p, 10, 1000, 2, limits) == 6); // 100 / (8 x 2)
  p.best_of = 10;
  CHECK(resolve_max_tokens(p, 10, 1000, 2, limits) == 5); // those that are drawn, not told
}

TEST_CASE("a prompt without an answer fills the context at most") {
  api_limits limits;
  generation_params p;
  p.max_tokens = 0;
  CHECK(resolve_max_tokens(p, 1000, 1000, 1, limits, "prompt") == 0);
  limits.prompt_tokens = 2000; // what the operator allows does not make the context larger
  for (const uint64_t tokens : {1001, 1500}) {
    const failure f = failure_of([&] { resolve_max_tokens(p, tokens, 1000, 1, limits, "prompt"); });
    CHECK(f.status == 400);
    CHECK(f.code == "context_length_exceeded");
    CHECK(f.param == "prompt");
    CHECK(f.message
          == "This model's maximum context length is 1000 tokens. However, the prompt has "
                 + std::to_string(tokens) + " tokens: shorten it");
  }
  const auto scored = parse_completion_request(
      legacy(R"("max_tokens":0,"echo":true,"logprobs":1,"n":2,"stream":true)"), limits);
  CHECK(failure_of([&] { resolve_max_tokens(scored.params, 1001, 1000, 1, limits); }).code
        == "context_length_exceeded");
}

TEST_CASE("tokenize takes a prompt or messages, detokenize ids") {
  CHECK(parse_tokenize_request(R"({"prompt":""})", {}).prompt == "");
  const tokenize_request r = parse_tokenize_request(
      R"({"model":"m","messages":[{"role":"user","content":"x"}],"add_generation_prompt":false,
          "return_token_strs":true})",
      {});
  CHECK(r.messages.size() == 1);
  CHECK(r.end == prompt_end::as_it_is);
  CHECK(r.return_token_strs);
  CHECK(failure_of([] { parse_tokenize_request("{}", {}); }).param == "prompt");
  CHECK(failure_of([] {
          parse_tokenize_request(R"({"prompt":"x","messages":[{"role":"user","content":"x"}]})",
                                 {});
        }).param
        == "prompt");
  CHECK(parse_detokenize_request(R"({"tokens":[]})", {}).tokens.empty());
  CHECK(parse_detokenize_request(R"({"tokens":[1,2]})", {}).tokens == std::vector<uint32_t>{1, 2});
  CHECK(failure_of([] { parse_detokenize_request(R"({"tokens":"1"})", {}); }).param == "tokens");
}

TEST_CASE("content types other than JSON are refused") {
  for (const char* good : {"", "application/json", "application/json; charset=utf-8",
                           "Application/JSON ;x", "application/vnd.api+json"})
    CHECK_NOTHROW(check_content({{"content-type", good}}));
  for (const char* bad :
       {"text/plain", "application/x-www-form-urlencoded", "json", "application/jsonp"})
    CHECK(failure_of([&] { check_content({{"content-type", bad}}); }).status == 415);
}

TEST_CASE("an encoded body is refused with the name of its coding") {
  for (const char* good : {"", "identity", "Identity "})
    CHECK_NOTHROW(
        check_content({{"content-encoding", good}, {"content-type", "application/json"}}));
  for (const char* bad : {"gzip", "deflate", "br", "zstd", "gzip, identity"}) {
    const auto f = failure_of([&] { check_content({{"Content-Encoding", bad}}); });
    CHECK(f.status == 415);
    CHECK(f.message.find(bad) != std::string::npos);
  }
  CHECK(failure_of([] {
          check_content({{"content-encoding", "identity"}, {"content-encoding", "gzip"}});
        }).status
        == 415);
}

// Any two fields together, each valid or not, give a value or a 400 that names one of the two.
