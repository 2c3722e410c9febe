// What a request writes down of itself while it runs.
#include "actors/gateway/request_list.hpp"
#include "base/json.hpp"
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {

namespace {

using state = request_note::state;

} // namespace

TEST_CASE("a request's note says what it waits for, and what it has") {
  request_world w{completion_body(10, 3, 5), environment{}};
  CHECK(w.note->where == state::waiting);
  CHECK(w.note->prompt_tokens == 10);
  w.admit_all();
  CHECK(w.note->where == state::prefilling);
  w.prefill_all();
  CHECK(w.note->where == state::decoding);
  CHECK(w.note->generated == 1);
  w.say(1);
  CHECK(w.note->generated == 2);
  w.say(2, finish::length);
  CHECK(w.note->where == state::sending);
  CHECK(w.note->recoveries == 0);
}

TEST_CASE("a note tells a pause by a loss from when it was lost until the next token") {
  request_world w;
  w.lost_role = "attention";
  w.admit_all();
  w.prefill_all();
  w.say(1);
  CHECK(w.note->paused_since_ns == 0);
  w.tell(lost_atom_v);
  CHECK(w.note->where == state::recovering);
  CHECK(w.note->paused_since_ns != 0);
  w.rebuild();
  CHECK(w.note->where == state::recovering);
  w.admit_all();
  w.prefill_all();
  w.say(w.books.batches->joined.at(0).generated); // the pause ends with its next token
  CHECK(w.note->where == state::decoding);
  CHECK(w.note->paused_since_ns == 0);
  CHECK(w.note->recoveries == 1);
}

TEST_CASE(
    "a list of requests begins with the longest pause, then with the oldest, and is bounded") {
  const auto one = [](uint64_t number, double seconds, double paused) {
    listed_request x;
    x.number = request_id{number};
    x.id = "id-" + std::to_string(number);
    x.route = net::api_route::completions;
    x.where = paused > 0 ? state::recovering : state::decoding;
    x.seconds = seconds;
    x.paused = paused;
    return x;
  };
  std::vector<listed_request> all{one(1, 5, 0), one(2, 9, 0), one(3, 1, 0.5), one(4, 2, 0.7)};
  const auto json = parse_json(requests_json(most_urgent(all)));
  const auto* rows = json.get_if<json_value::array>();
  REQUIRE(rows != nullptr);
  std::vector<int64_t> order;
  for (const auto& row : *rows) order.push_back(*row.find("number")->get_if<int64_t>());
  CHECK(order == std::vector<int64_t>{4, 3, 2, 1});
  const auto& first = rows->front();
  CHECK(*first.find("state") == json_value{"recovering"});
  CHECK(*first.find("route") == json_value{"/v1/completions"});
  CHECK(*first.find("id") == json_value{"id-4"});
  for (uint64_t i = 5; i < 500; ++i) all.push_back(one(i, static_cast<double>(i), 0));
  CHECK(most_urgent(all).size() == requests_listed_max);
}

} // namespace lamella::actors::test
