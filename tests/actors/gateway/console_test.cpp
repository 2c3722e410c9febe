// The pages for browsers, and what the console asks: who gets it, how often it is made.
#include "actors/gateway/console_board.hpp"
#include "actors/gateway/gateway_console.hpp"
#include "tests/actors/gateway/fake_exchange.hpp"
#include "tests/actors/gateway/served.hpp"

#include <atomic>
#include <fstream>

#include <sys/stat.h>

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

std::string message_of(const answer& x) { return text_at(x.json, "error.message"); }

bool is_own(const char* host, const char* origin) {
  net::http_request x;
  x.headers.add("host", host);
  if (origin) x.headers.add("origin", origin);
  return is_of_console(x);
}

} // namespace

TEST_CASE("The console is at / of the admin listener, the chat at / of the public one") {
  served s;
  const auto console = s.admin("GET", "/");
  CHECK(console.status == 200);
  CHECK(console.headers.get("content-type") == "text/html; charset=utf-8");
  CHECK(console.headers.get("content-security-policy").starts_with("default-src 'none'"));
  CHECK(console.body.find("Lamella console") != std::string::npos);
  const auto chat = s.get("/");
  CHECK(chat.status == 200);
  CHECK(chat.body.find("Lamella chat") != std::string::npos);
  CHECK(s.admin("GET", "/chat").body == chat.body);
  CHECK(s.admin("GET", "/ui/console.js").headers.get("content-type")
        == "text/javascript; charset=utf-8");
  CHECK(s.admin("HEAD", "/").body.empty());
  CHECK(s.admin("POST", "/").status == 405);
  CHECK(s.options("/").headers.get("allow") == "GET, HEAD, OPTIONS");
  CHECK(s.get("/ui/console.js").status == 404);
  CHECK(s.get("/chat").status == 404);
  CHECK(message_of(s.get("/ui/none.js"))
        == "there is no route GET \"/ui/none.js\": the page of this listener is /");
  CHECK(message_of(s.admin("GET", "/ui/none.js"))
        == "there is no route GET \"/ui/none.js\": the pages of this listener are / and /chat");
}

TEST_CASE("Where http.ui is off, the public listener has no page and says so") {
  auto x = tiny_settings();
  x.http.ui = false;
  served s{x};
  for (const char* path : {"/", "/ui/chat.js"}) {
    CAPTURE(path);
    const auto refused = s.get(path);
    CHECK(refused.status == 404);
    CHECK(message_of(refused).find("http.ui") != std::string::npos);
  }
  CHECK(s.admin("GET", "/").status == 200);
  CHECK(s.admin("GET", "/chat").status == 200);
}

TEST_CASE("/admin/console has all that the console draws") {
  served s;
  s.post("/v1/completions", completion_body(4, 6, 1));
  const auto page = s.admin("GET", "/admin/console");
  REQUIRE(page.status == 200);
  CHECK(page.headers.get("cache-control") == "no-store");
  CHECK(int_at(page.json, "version") == 1);
  CHECK(text_at(page.json, "model") == "tiny");
  CHECK(text_at(page.json, "health.status") == "ok");
  CHECK(size_at(page.json, "status.workers") > 0);
  CHECK(size_at(page.json, "status.pools") == 1);
  CHECK(size_at(page.json, "changes") > 0);
  CHECK(int_at(page.json, "newest_event") > 0);
  const auto samples = text_at(page.json, "samples");
  for (const char* name :
       {"vllm:generation_tokens_total{", "vllm:time_to_first_token_seconds_bucket{",
        "vllm:inter_token_latency_seconds_bucket{", "lamella_requests_recovered_total{"})
    CHECK_MESSAGE(samples.find(name) != std::string::npos, name);
  CHECK(samples.find("lamella_iteration_seconds") == std::string::npos);
  CHECK(page.body.size() < 32'000);
  CHECK(int_at(page.json, "all_requests") == 0);
  CHECK(size_at(page.json, "requests") == 0);
  CHECK(s.admin("POST", "/admin/console").status == 405);
  CHECK(s.get("/admin/console").status == 404);
}

TEST_CASE("Pages need no key, what they ask needs one") {
  tests::scratch_folder folder;
  const auto keys = folder / "keys.txt";
  std::ofstream{keys} << "key-of-an-operator\n";
  REQUIRE(::chmod(keys.c_str(), 0600) == 0);
  auto x = tiny_settings();
  x.admin.api_keys_file = x.http.api_keys_file = keys;
  served s{x};
  CHECK(s.get("/").status == 200);
  CHECK(s.admin("GET", "/").status == 200);
  CHECK(s.admin("GET", "/admin/console").status == 401);
  CHECK(s.admin("GET", "/admin/console", {{"authorization", "Bearer wrong"}}).status == 401);
  CHECK(s.admin("GET", "/admin/console", {{"authorization", "Bearer key-of-an-operator"}}).status
        == 200);
}

TEST_CASE("The console's own page gives orders where no key is needed, no other page does") {
  served s;
  const auto host = "127.0.0.1:" + std::to_string(s.node().admin_port());
  const auto reload = [&](const std::string& origin) {
    return s.admin("POST", "/admin/reload", {{"origin", origin}}).status;
  };
  CHECK(reload("http://" + host) == 200);
  CHECK(reload("http://127.0.0.1:1") == 403);
  CHECK(reload("null") == 403);

  CHECK(is_own("localhost:8001", "http://localhost:8001"));
  CHECK(is_own("127.0.0.2:8001", "http://127.0.0.2:8001"));
  CHECK(is_own("[::1]:8001", "http://[::1]:8001"));
  CHECK_FALSE(is_own("localhost:8001", nullptr));
  CHECK_FALSE(is_own("localhost:8001", "http://localhost:8000"));
  // A name that leads here now may have led elsewhere when the page was loaded.
  for (const char* name : {"evil.example:8001", "127.0.0.1.evil.example", "localhost.evil.example",
                           "127.evil.example", "[::1]evil.example", "10.0.0.1:8001", ""})
    CHECK_FALSE_MESSAGE(is_own(name, ("http://" + std::string{name}).c_str()), name);
}

TEST_CASE("200 consoles that ask at once are all answered, while requests run") {
  served s;
  net::http_client_loop loop;
  std::atomic<int> pages{0}, answers{0};
  const auto ask = [&](const net::http_url& where, const char* method, const char* path,
                       std::string body, std::atomic<int>& good) {
    net::http_call_request x;
    x.method = method;
    x.path = path;
    x.body = std::move(body);
    x.connect_timeout = x.idle_timeout = deadline;
    net::http_call_events on;
    on.on_done = [&good](const net::http_reply& reply) { good += reply.status == 200; };
    on.on_error = [](const net::http_call_error& e) { FAIL_CHECK(e.what()); };
    loop.call(where, std::move(x), std::move(on));
  };
  for (int i = 0; i < 200; ++i) ask(s.admin_url(), "GET", "/admin/console", "", pages);
  for (uint32_t i = 0; i < 8; ++i)
    ask(s.url(), "POST", "/v1/completions", completion_body(5, 20, i), answers);
  loop.run();
  CHECK(pages == 200);
  CHECK(answers == 8);
}

TEST_CASE("However many consoles ask, a page is made once a moment") {
  console_board board;
  const console_board::time_point now{};
  std::vector<std::shared_ptr<fake_exchange>> consoles;
  size_t makers = 0;
  for (int i = 0; i < 200; ++i) {
    consoles.push_back(std::make_shared<fake_exchange>(""));
    if (board.ask(consoles.back(), now)) ++makers;
  }
  CHECK(makers == 1);
  for (const auto& each : consoles) CHECK(each->answers == 0);
  board.show("{\"n\":1}", now);
  for (const auto& each : consoles) {
    CHECK(each->answers == 1);
    CHECK(each->body == "{\"n\":1}");
  }

  const auto young = std::make_shared<fake_exchange>("");
  CHECK_FALSE(board.ask(young, now + console_board::lifetime - 1ms));
  CHECK(young->body == "{\"n\":1}");
  const auto late = std::make_shared<fake_exchange>("");
  CHECK(board.ask(late, now + console_board::lifetime));
  CHECK(late->answers == 0);
  board.show("{\"n\":2}", now + console_board::lifetime);
  CHECK(late->body == "{\"n\":2}");
  CHECK(young->answers == 1);
}

} // namespace lamella::actors::test
