// Queries of a running service: operators' routes know their names, public routes have none.
#include "tests/actors/gateway/served.hpp"

namespace lamella::actors::test {

TEST_CASE("an operator's route refuses a query that it does not know, and names what it takes") {
  served s;
  struct question {
    const char *method, *path, *takes;
  };
  for (const auto& x :
       {question{"POST", "trace", ": for, newest"},
        question{"GET", "events", ": after, since, wait"}, question{"GET", "status", " no query"},
        question{"GET", "pools", " no query"}, question{"GET", "console", " no query"},
        question{"POST", "drain", " no query"}, question{"POST", "reload", " no query"},
        question{"POST", "scale", " no query"}, question{"POST", "chaos", " no query"},
        question{"POST", "drain-worker", " no query"}}) {
    CAPTURE(x.path);
    const auto got = s.admin(x.method, std::string{"/admin/"} + x.path + "?seconds=1");
    CHECK(got.status == 400);
    CHECK(text_at(got.json, "error.code") == "unknown_parameter");
    CHECK(text_at(got.json, "error.param") == "seconds");
    CHECK(text_at(got.json, "error.message")
          == std::string{"unknown query parameter 'seconds': "} + x.method + " /admin/" + x.path
                 + " takes" + x.takes);
  }
  CHECK(s.admin("POST", "/admin/trace?for=0.05&for=9").status == 400);
  CHECK(s.admin("POST", "/admin/trace?for=%zz").status == 400);
  CHECK(s.admin("GET", "/admin/events?after=0&since=5&wait=0").status == 200);
  CHECK(s.get("/v1/models").status == 200); // nothing of it has drained the service
}

TEST_CASE("an operator's route that reads no body refuses one, and does nothing") {
  served s;
  net::http_client operators{s.admin_url()};
  const auto post = [&](const std::string& path, const std::string& body) {
    return answer_of(operators.post(path, body, deadline));
  };
  for (const char* path : {"/admin/drain", "/admin/reload", "/admin/trace?for=0.05"}) {
    CAPTURE(path);
    for (const std::string& body :
         {std::string{R"({"worker":"attention-1"})"}, std::string{"[]"}, std::string{"null"},
          std::string(65'536, '['), std::string(100'000, ' ') + "{ {"}) {
      const auto got = post(path, body);
      CHECK(got.status == 400);
      CHECK(text_at(got.json, "error.message").find("takes no body") != std::string::npos);
    }
  }
  CHECK(s.get("/ready").status == 200); // nothing of it has drained the service
  CHECK(post("/admin/reload", " {\r\n}\t").status == 200);
}

TEST_CASE("a query of a public route is counted, and refused where the API is strict") {
  served s;
  CHECK(s.get("/v1/models?limit=3&beta=true").status == 200);
  CHECK(s.metric(R"(lamella_unknown_params_total{param="?limit"})") == 1);
  CHECK(s.get("/health?now=1").status == 200);
  auto x = tiny_settings();
  x.api.strict = true;
  served strict{x};
  const auto got = strict.get("/v1/models?limit=3");
  CHECK(got.status == 400);
  CHECK(text_at(got.json, "error.param") == "?limit");
  CHECK(strict.get("/v1/models?beta=true").status == 200);
  CHECK(strict.get("/health?now=1").status == 200);
}

} // namespace lamella::actors::test
