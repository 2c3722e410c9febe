// Events of a service, from the node to those who read them.
#include "actors/node/pipeline_parts.hpp"
#include "actors/shared/events.hpp"
#include "tests/actors/gateway/served.hpp"

#include <future>

namespace lamella::actors::test {

namespace {

/// Path of those that come after now: services of other tests have told before.
std::string from_now(const std::string& more = {}) {
  return "/admin/events?after=" + std::to_string(actors::events().after(0).newest) + more;
}

/// Subject of the first event of a kind; empty: there is none.
std::string subject_of(const json_value& page, const std::string& kind) {
  for (size_t i = 0; i < size_at(page, "events"); ++i) {
    const auto number = "events." + std::to_string(i);
    if (text_at(page, number + ".kind") == kind) return text_at(page, number + ".subject");
  }
  return {};
}

int scale(served& s, const std::string& members) {
  return net::http_client{s.admin_url()}
      .post("/admin/scale", R"({"pool":"attention","members":)" + members + "}", deadline)
      .status;
}

} // namespace

TEST_CASE("GET /admin/events tells of a pool that changes its size, and metrics count it") {
  served s;
  const auto path = from_now();
  CHECK(scale(s, "2") == 409); // by heads, of which there are three
  const auto nowhere = net::http_client{s.admin_url()}.post(
      "/admin/scale", R"({"pool":"kv","members":1})", deadline);
  CHECK(nowhere.status == 409);
  CHECK(text_at(parse_json(nowhere.body), "error.param") == "pool");
  CHECK(text_at(parse_json(nowhere.body), "error.message").starts_with("there is no pool 'kv'"));
  CHECK(scale(s, "3") == 202);
  CHECK(eventually(
      [&] { return text_at(s.admin("GET", "/admin/pools").json, "pools.1.state") == "done"; }));
  const auto page = s.admin("GET", path);
  CHECK(page.status == 200);
  CHECK(int_at(page.json, "version") == 1);
  CHECK(int_at(page.json, "missed") == 0);
  for (const auto* kind : {"pool_refused", "pool_resizing", "pool_resized"}) {
    CAPTURE(kind);
    CHECK(subject_of(page.json, kind) == "attention");
  }
  for (const auto* kind :
       {"epoch_opened", "epoch_taken_over", "epoch_closed", "kv_move_begun", "kv_moved"}) {
    CAPTURE(kind);
    CHECK(subject_of(page.json, kind).starts_with("epoch "));
  }
  CHECK(s.metric("lamella_pool_changes_total") == 2);
  CHECK(s.metric("lamella_launches_stopped_seconds_count") == 1);
  CHECK(s.metric("lamella_kv_move_seconds_count") == 1);
  const auto metrics = s.node().parts().metrics->scrape().body;
  CHECK(metrics.find("lamella_pool_target_members{pool=\"attention\"} 3\n") != std::string::npos);
}

TEST_CASE("A reader that waits gets the next event when it comes") {
  served s;
  const auto path = from_now("&wait=60");
  auto answer = std::async(std::launch::async, [&] { return s.admin("GET", path); });
  CHECK(eventually([] { return actors::events().waiting() == 1; }));
  tell(event_kind::pool_wish, {{"pool", "model"}, {"wish", 2}});
  const auto page = answer.get();
  CHECK(page.status == 200);
  CHECK(subject_of(page.json, "pool_wish") == "model");
  CHECK(actors::events().waiting() == 0);
}

TEST_CASE("A reader that waits in vain gets an empty page, and one that leaves is forgotten") {
  served s;
  CHECK(size_at(s.admin("GET", from_now("&wait=1")).json, "events") == 0);
  bool has_left = false;
  while (!has_left) { // or an event of the service itself came first
    REQUIRE(eventually([] { return actors::events().waiting() == 0; })); // none of before
    net::http_client client{s.admin_url()};
    const auto path = from_now("&wait=60");
    auto left = std::async(std::launch::async, [&] {
      try {
        client.get(path, deadline);
        return false;
      } catch (const net::http_call_error&) {
        return true;
      }
    });
    CHECK(eventually([&] {
      return actors::events().waiting() == 1
             || left.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
    }));
    client.abort();
    has_left = left.get();
  }
  CHECK(eventually([] { return actors::events().waiting() == 0; }));
}

TEST_CASE("A question for events with a wrong number is refused, and says which") {
  served s;
  for (const std::string wrong : {"after=-1", "after=x", "after=", "wait=61", "since=1.5"}) {
    const auto got = s.admin("GET", "/admin/events?" + wrong);
    CAPTURE(wrong);
    CHECK(got.status == 400);
    CHECK(text_at(got.json, "error.param") == wrong.substr(0, wrong.find('=')));
  }
  CHECK(s.admin("POST", "/admin/events").status == 405);
  CHECK(s.get("/admin/events").status == 404); // the public listener
}

} // namespace lamella::actors::test
