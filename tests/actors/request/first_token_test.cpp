// First tokens of prompts whose KV is still on its way (S-M13): written at once, counted once.
#include "actors/protocol/tokens.hpp"
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {
namespace {

using world = request_world;

first_token early(uint32_t index = 0) { return {seq(1), index, world::drawn(index)}; }

} // namespace

TEST_CASE("S-M13 a first token is streamed before its KV has come, and counts once") {
  world w{R"(,"stream":true)"};
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.books.prefills->asked[0].client);
  w.tell(early());
  CHECK(w.exchange->text() == w.text(1));
  CHECK(w.books.batches->joined.empty());
  w.tell(early()); // the prompt was computed once more
  w.tell(early(3));
  CHECK(w.exchange->text() == w.text(1));
  w.prefill_all();
  REQUIRE(w.books.batches->joined.size() == 1);
  CHECK(w.books.batches->joined[0].generated == 1);
  CHECK(w.books.batches->joined[0].position == 10);
  REQUIRE(w.books.kv->filled.size() == 1);
  CHECK(w.books.kv->filled[0].positions == 10);
  w.tell(early()); // late
  for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  CHECK(w.exchange->text() == w.text(6));
  CHECK(w.over);
}

TEST_CASE("S-M13 an answer that ends with its first token is whole before its KV has come") {
  world w{"", 1};
  w.admit_all();
  w.tell(early());
  CHECK(w.exchange->status == 200);
  CHECK(w.exchange->text() == w.text(1));
  CHECK(w.exchange->answers == 1);
  CHECK_FALSE(w.over); // its slots are still written to
  CHECK(w.books.kv->released.empty());
  w.prefill_all();
  CHECK(w.over);
  CHECK(w.exchange->answers == 1);
  CHECK(w.books.batches->joined.empty());
  CHECK(w.books.kv->released.size() == 1);
}

TEST_CASE("S-M13 L-M26 KV that is lost on its way is computed again behind the first token") {
  world w;
  w.admit_all();
  w.tell(early());
  w.lost_role = "prefill";
  w.rebuild();
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.books.prefills->asked[0].rebuild);
  CHECK(w.books.prefills->asked[0].tokens.size() == 10);
  CHECK(w.books.prefills->asked[0].draws == std::vector<uint32_t>{0}); // drawn again, to compare
  w.prefill_all();
  REQUIRE(w.books.batches->joined.size() == 1);
  CHECK(w.books.batches->joined[0].generated == 1);
  for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
  CHECK(w.exchange->text() == w.text(6));
}

TEST_CASE("S-M13 what is said of a prompt comes before its first token") {
  world w{R"(,"echo":true,"logprobs":1,"stream":true)"};
  w.admit_all();
  w.tell(early());
  CHECK(w.exchange->text().empty());
  CHECK_FALSE(w.over);
}

} // namespace lamella::actors::test
