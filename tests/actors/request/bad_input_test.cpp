// What strangers send: a clear error, never a 5xx, and the service answers afterwards (issue 2,
// "Bad input gets").
#include "actors/shared/build_info.hpp"
#include "tests/actors/gateway/served.hpp"
#include "tests/net/http/raw_client.hpp"

namespace lamella::actors::test {
using lamella::test::raw_client;

namespace {

void check_alive(served& s) {
  const auto x = s.post("/v1/completions",
                        R"({"model":"tiny","prompt":"hello","max_tokens":2,"ignore_eos":true})");
  CHECK_MESSAGE(x.status == 200, x.body);
}

} // namespace

TEST_CASE("Bodies that are wrong get 4xx with a message, and nothing else breaks") {
  served s;
  const std::string chat = R"({"model":"tiny","messages":[{"role":"user","content":"x"}])";
  const std::string text = R"({"model":"tiny","prompt":"x")";
  struct row {
    std::string body;
    int status;
    std::string code;
  };
  const std::vector<row> rows{
      {"", 400, "invalid_json"},
      {"{", 400, "invalid_json"},
      {"[]", 400, ""},
      {"null", 400, ""},
      {text + R"(,"temperature":NaN})", 400, "invalid_json"},
      {text + R"(,"temperature":Infinity})", 400, "invalid_json"},
      {text + R"(,"temperature":1e400})", 400, "invalid_json"},
      {text + R"(,"temperature":-1})", 400, "invalid_value"},
      {text + R"(,"temperature":"1"})", 400, "invalid_value"},
      {text + R"(,"top_p":2})", 400, "invalid_value"},
      {text + R"(,"n":0})", 400, "invalid_value"},
      {text + R"(,"n":100000})", 400, "invalid_value"},
      {text + R"(,"max_tokens":-5})", 400, "invalid_value"},
      {text + R"(,"max_tokens":99999999999999999999})", 400, ""},
      {text + R"(,"max_tokens":1,"max_tokens":2})", 400, "invalid_json"},
      {text + R"(,"stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"]})",
       400, "invalid_value"},
      {text + R"(,"stop":""})", 400, "invalid_value"},
      {text + R"(,"logit_bias":{"999999":1}})", 400, "invalid_value"},
      {text + R"(,"seed":1.5})", 400, "invalid_value"},
      {text + R"(,"grammar":"root ::= x"})", 400, "invalid_value"},
      {text + R"(,"allowed_token_ids":[1]})", 400, "unsupported_parameter"},
      {text + R"(,"guided_regex":"(a"})", 400, "invalid_value"},
      {text + R"(,"guided_json":{"type":"objet"}})", 400, "invalid_schema"},
      {text + R"(,"guided_json":{"anyOf":[{"$ref":"#"}]}})", 400, "invalid_schema"},
      {text + R"(,"prompt_logprobs":1,"stream":true})", 400, "unsupported_parameter"},
      {text + R"(,"user":"\ud800"})", 400, "invalid_json"},
      {text + ",\"user\":\"\xff\"}", 400, "invalid_json"},
      {R"({"model":"tiny","prompt":[]})", 400, "invalid_value"},
      {R"({"model":"tiny","prompt":""})", 400, "invalid_value"},
      {R"({"model":"tiny","prompt":[100000]})", 400, "invalid_value"},
      {R"({"model":"tiny","prompt":[-1]})", 400, "invalid_value"},
      {R"({"model":"tiny"})", 400, ""},
      {R"({"model":"other","prompt":"x"})", 404, "model_not_found"},
      {R"({"prompt":"x"})", 400, ""},
      {R"({"model":"tiny","prompt":)" + token_list(600, 1) + "}", 400, "context_length_exceeded"},
      {text + R"(,"max_tokens":600})", 400, "context_length_exceeded"},
      {R"({"model":"tiny","echo":true,"logprobs":1,"max_tokens":0,"prompt":)" + token_list(600, 1)
           + "}",
       400, "context_length_exceeded"},
      {text + ",\"user\":" + std::string(100, '[') + std::string(100, ']') + "}", 400,
       "invalid_json"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.body.substr(0, 120));
    const auto x = s.post("/v1/completions", row.body);
    CHECK(x.status == row.status);
    CHECK(text_at(x.json, "error.message").size() > 10);
    if (!row.code.empty()) CHECK(text_at(x.json, "error.code") == row.code);
  }
  const std::vector<row> chats{
      {R"({"model":"tiny","messages":[]})", 400, "invalid_value"},
      {R"({"model":"tiny","messages":[{"role":"king","content":"x"}]})", 400, "invalid_value"},
      {R"({"model":"tiny","messages":"x"})", 400, "invalid_value"},
      {chat + R"(,"tools":[{"type":"function"}]})", 400, "invalid_value"},
      {chat + R"(,"top_logprobs":5})", 400, "invalid_value"},
      {chat + R"(,"stream_options":{"include_usage":true}})", 400, "invalid_value"},
  };
  for (const auto& row : chats) {
    CAPTURE(row.body);
    const auto x = s.post("/v1/chat/completions", row.body);
    CHECK(x.status == row.status);
    CHECK(text_at(x.json, "error.code") == row.code);
  }
  check_alive(s);
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("A prompt over the context names both numbers") {
  served s;
  const auto x = s.post("/v1/completions", R"({"model":"tiny","prompt":)" + token_list(500, 1)
                                               + R"(,"max_tokens":33})");
  CHECK(x.status == 400);
  const auto message = text_at(x.json, "error.message");
  CHECK(message.find("500") != std::string::npos);
  CHECK(message.find("33") != std::string::npos);
  CHECK(message.find("512") != std::string::npos);
}

TEST_CASE("A service says what it was built of") {
  served s;
  const auto told = s.get("/version");
  CHECK(told.status == 200);
  CHECK(text_at(told.json, "version") == LAMELLA_VERSION);
  CHECK(text_at(told.json, "commit") == build_commit());
  CHECK(text_at(told.json, "build_date") == build_date());
  CHECK(build_date().size() == std::string_view{"2026-11-24T03:02:51Z"}.size());
}

TEST_CASE("OPTIONS tells the methods of a route and asks for no key") {
  auto x = tiny_settings();
  tests::scratch_folder folder;
  std::ofstream{folder / "keys"} << "first-key\n";
  x.http.api_keys_file = folder / "keys";
  served s{x};
  for (const auto& [path, allow] : {std::pair{"/v1/completions", "POST, OPTIONS"},
                                    {"/v1/models", "GET, HEAD, OPTIONS"},
                                    {"/health", "GET, HEAD, OPTIONS"}}) {
    CAPTURE(path);
    const auto told = s.options(path);
    CHECK(told.status == 204);
    CHECK(told.headers.get("allow") == allow);
    CHECK(told.body.empty());
  }
  CHECK(s.options("/v1/nothing").status == 404);
}

TEST_CASE("A page of an origin that is named uses the public API alone") {
  auto x = tiny_settings();
  x.http.cors_origins = {"http://localhost:3000"};
  served s{x};
  const net::http_headers of_page{{"origin", "http://localhost:3000"}};
  const auto allowed = [](const answer& a) {
    return a.headers.get("access-control-allow-origin") == "http://localhost:3000";
  };
  const std::string body = R"({"model":"tiny","prompt":"hello","max_tokens":2})";
  const auto answered = s.post("/v1/completions", body, of_page);
  CHECK(answered.status == 200);
  CHECK(allowed(answered));
  CHECK(allowed(s.post("/v1/completions", "{", of_page)));
  CHECK_FALSE(allowed(s.admin("GET", "/admin/status", of_page)));
}

TEST_CASE("A page in an operator's browser changes nothing where the admin listener has no keys") {
  served s;
  const net::http_headers of_page{{"origin", "http://evil.example"}};
  for (const char* path : {"/admin/drain", "/admin/reload", "/admin/chaos"}) {
    CAPTURE(path);
    CHECK(s.admin("POST", path, of_page).status == 403);
  }
  CHECK(s.admin("GET", "/admin/status", of_page).status == 200);
  CHECK(s.get("/ready").status == 200);
  CHECK(s.admin("POST", "/admin/reload").status == 200);
}

TEST_CASE("What one request may ask for is what limits.* say") {
  auto settings = tiny_settings();
  settings.limits.prompt_tokens = 30;
  settings.limits.best_of = 2;
  settings.limits.top_logprobs = 1;
  settings.limits.stop_string_bytes = 3;
  served s{settings};
  const auto ask = [&](uint32_t prompt, const std::string& more) {
    return s.post("/v1/completions", R"({"model":"tiny","max_tokens":2,"prompt":)"
                                         + token_list(prompt, 1) + more + "}");
  };
  CHECK(ask(30, R"(,"best_of":2,"logprobs":1,"stop":"abc")").status == 200);
  const auto longer = ask(31, "");
  CHECK(longer.status == 400);
  CHECK(text_at(longer.json, "error.code") == "context_length_exceeded");
  CHECK(text_at(longer.json, "error.message").find("limits.prompt_tokens") != std::string::npos);
  for (const char* more : {R"(,"best_of":3)", R"(,"logprobs":2)", R"(,"stop":"abcd")"}) {
    CAPTURE(more);
    const auto x = ask(30, more);
    CHECK(x.status == 400);
    CHECK(text_at(x.json, "error.code") == "invalid_value");
  }
}

TEST_CASE("A conversation of megabytes is refused by its tokens, not by what its template writes") {
  served s;
  const auto x =
      s.post("/v1/chat/completions", R"({"model":"tiny","messages":[{"role":"user","content":")"
                                         + std::string(1'500'000, 'a') + R"("}]})");
  CHECK(x.status == 400);
  CHECK(text_at(x.json, "error.code") == "context_length_exceeded");
}

TEST_CASE("More choices than the pool has room for are refused for good, with the numbers") {
  auto settings = tiny_settings();
  settings.kv.bytes =
      200 * 576; // 576 bytes: 3 layers, 3 KV heads, 16 dims, K and V of 2 bytes each
  served s{settings};
  REQUIRE(s.node().server()->slots == 200);
  const auto ask = [&](const char* n) {
    return s.post("/v1/completions", R"({"model":"tiny","prompt":")" + std::string(50, 'a')
                                         + R"(","max_tokens":2,"n":)" + n + "}");
  };
  const auto x = ask("8");
  CHECK(x.status == 400);
  CHECK(text_at(x.json, "error.code") == "context_length_exceeded");
  CHECK(text_at(x.json, "error.message").find("needed, 200 and") != std::string::npos);
  CHECK(ask("1").status == 200);
}

TEST_CASE("What a KV cache smaller than the context holds is told as max_model_len, and holds") {
  auto settings = tiny_settings();
  settings.kv.bytes = 200 * 576; // as above
  served s{settings};
  const auto most = int_at(s.get("/v1/models").json, "data.0.max_model_len");
  CHECK(most > 100);
  CHECK(most < 200);
  CHECK(int_at(s.get("/v1/models/tiny").json, "max_model_len") == most);
  const auto tokens = s.post("/tokenize", R"({"model":"tiny","prompt":"abcdef"})");
  CHECK(int_at(tokens.json, "max_model_len") == most);
  CHECK(int_at(s.get("/tokenizer_info").json, "model_max_length") == most);
  const auto ask = [&](int64_t answer) {
    return s.post("/v1/completions", R"({"model":"tiny","prompt":"abcdef","ignore_eos":true,)"
                                     R"("max_tokens":)"
                                         + std::to_string(answer) + "}");
  };
  const auto rest = most - int_at(tokens.json, "count");
  const auto whole = ask(rest);
  CHECK(whole.status == 200);
  CHECK(int_at(whole.json, "usage.completion_tokens") == rest);
  CHECK(ask(rest + 1).status == 400);
}

TEST_CASE("A2 request actor, crash: it alone gets an error, and all it held is given back") {
  served s;
  std::vector<std::string> wanted;
  for (const auto* prompt : {"one", "and two", "three, in the end"})
    wanted.push_back(R"({"model":"tiny","prompt":")" + std::string{prompt}
                     + R"(","max_tokens":40,"ignore_eos":true,"seed":7})");
  const auto undisturbed = s.post_all("/v1/completions", wanted);
  {
    const armed one{"request.token=0.025:error"}; // the 40th of their 120 tokens alone
    const auto answers = s.post_all("/v1/completions", wanted);
    size_t failed = 0;
    for (size_t i = 0; i < answers.size(); ++i) {
      CAPTURE(i);
      if (answers[i].status == 200) {
        CHECK(at(answers[i].json, "choices") == at(undisturbed[i].json, "choices"));
        continue;
      }
      ++failed;
      CHECK(answers[i].status == 500);
      CHECK(text_at(answers[i].json, "error.code") == "internal_error");
    }
    CHECK(failed == 1);
  }
  CHECK(eventually([&] { return s.idle(); }));
  CHECK(s.metric("lamella_failovers_total") == 0);
  check_alive(s);
}

TEST_CASE("Routes, methods and types that do not exist are named") {
  served s;
  CHECK(s.get("/v1/nothing").status == 404);
  CHECK(s.get("/v1/chat/completions").status == 405);
  const auto embedded = s.post("/v1/embeddings", R"({"model":"tiny","input":"x"})");
  CHECK(embedded.status == 400);
  CHECK(text_at(embedded.json, "error.code") == "unsupported_endpoint");
  CHECK(text_at(embedded.json, "error.message").find("/v1/chat/completions") != std::string::npos);
  CHECK(s.get("/v1/embeddings").status == 405);
  CHECK(text_at(s.post("/v1/rerank", "{}").json, "error.message").find("rank")
        != std::string::npos);
  CHECK(s.post("/v1/completions", "a=b", {{"content-type", "application/x-www-form-urlencoded"}})
            .status
        == 415);
  const auto packed = s.post("/v1/completions", "\x1F\x8B", {{"content-encoding", "gzip"}});
  CHECK(packed.status == 415);
  CHECK(packed.headers.get("accept-encoding") == "identity");
  CHECK(text_at(packed.json, "error.message").find("gzip") != std::string::npos);
  CHECK(text_at(s.post("/api/chat", "{}").json, "error.message").find("/v1/chat/completions")
        != std::string::npos);
  CHECK(s.get("/v1/models/other").status == 404);
  CHECK(s.get("/v1/models/tiny").status == 200);
  CHECK(s.post("/detokenize", R"({"model":"tiny","tokens":[99999999]})").status == 400);
  check_alive(s);
}

TEST_CASE("Half requests, huge headers, huge bodies and noise end with their connection") {
  auto settings = tiny_settings();
  settings.http.max_body_bytes = 1 << 16;
  served s{settings};
  const auto port = s.node().http_port();
  {
    raw_client half{port};
    half.send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"model\"");
    half.reset();
  }
  {
    raw_client big{port};
    big.send("GET /v1/models HTTP/1.1\r\nhost: x\r\n");
    bool open = true;
    const std::string field = "x-filler: " + std::string(8000, 'a') + "\r\n";
    for (int i = 0; i < 640 && open; ++i) open = big.send(field); // 5 MB, unless it says no before
    const auto said = big.read_all();
    CHECK((said.empty() || said.find(" 431 ") != std::string::npos
           || said.find(" 400 ") != std::string::npos));
  }
  {
    raw_client large{port};
    large.send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
               "content-length: 100000000\r\n\r\n");
    CHECK(large.read_answer().find(" 413 ") != std::string::npos);
  }
  {
    raw_client noise{port};
    std::string bytes;
    tests::splitmix random{42};
    for (int i = 0; i < 4000; ++i) bytes += static_cast<char>(random.next());
    noise.send(bytes);
    noise.half_close();
    CHECK(noise.read_all().find(" 5") == std::string::npos);
  }
  check_alive(s);
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("A node that cannot start says why, with the exit code of the reason") {
  const auto refuse = [](config::settings x, int code, const std::string& words) {
    CAPTURE(words);
    try {
      served s{x};
      FAIL_CHECK("it started");
    } catch (const actors::start_error& e) {
      CHECK(e.exit_code == code);
      CHECK_MESSAGE(std::string{e.what()}.find(words) != std::string::npos, e.what());
    }
  };
  auto missing = tiny_settings();
  missing.model.path = "/nowhere/model.gguf";
  refuse(missing, 66, "/nowhere/model.gguf");
  auto small = tiny_settings();
  small.kv.bytes = 576 * 100;
  refuse(small, 78, "kv.bytes");
  auto uneven = tiny_settings();
  uneven.pools.attention.members = 2;
  refuse(uneven, 78, "pools.attention.members");
  auto longer = tiny_settings();
  longer.model.context_tokens = 100000;
  refuse(longer, 78, "model.context_tokens");
  served first;
  auto taken = tiny_settings();
  taken.http.listen = "127.0.0.1:" + std::to_string(first.node().http_port());
  refuse(taken, 69, std::to_string(first.node().http_port()));
}

} // namespace lamella::actors::test
