// Bodies are read, and formats compiled, beside the actors: what may happen to a request meanwhile.
#include "tests/actors/request/request_world.hpp"

namespace lamella::actors::test {

namespace {

/// A request whose body has not been read yet.
struct unread : request_world {
  explicit unread(const std::string& body)
      : request_world{body, environment{}, 65'536, std::make_shared<aside_book>()} {
    REQUIRE(held->jobs.size() == 1);
    CHECK(books.scheduler->asked.empty());
  }
};

std::string text_body(const std::string& prompt, const std::string& more = {}) {
  return R"({"model":"tiny","prompt":")" + prompt + R"(","max_tokens":6)" + more + "}";
}

} // namespace

TEST_CASE("A request is admitted once its body is read, by lanes of its size") {
  for (const bool large : {false, true}) {
    auto body = completion_body(10, 6, 5);
    if (large) body.insert(1, std::string(brief_bytes_max, ' '));
    unread w{body};
    CHECK(w.run_job() == (large ? aside_lane::bulky : aside_lane::brief));
    CHECK(w.exchange->request().body.empty()); // its memory is for others
    REQUIRE(w.books.scheduler->asked.size() == 1);
    w.admit_all();
    w.prefill_all();
    for (uint32_t i = 1; i < 6; ++i) w.say(i, i == 5 ? finish::length : finish::none);
    REQUIRE(w.held->jobs.size() == 1); // the answer is written aside, too
    CHECK_FALSE(w.over);
    w.run_job();
    CHECK(w.exchange->text() == w.text(6));
    CHECK(w.over);
  }
}

TEST_CASE("Of a body that is read too late for its client nothing is asked") {
  const auto nothing_asked = [](unread& w) {
    CHECK(w.over);
    while (!w.held->jobs.empty()) w.run_job();
    CHECK(w.books.scheduler->asked.empty());
    CHECK(w.books.scheduler->withdrawn.empty());
    CHECK(w.books.kv->released.empty());
  };
  SUBCASE("the client left") {
    unread w{completion_body(10, 6, 5)};
    w.exchange->disconnect();
    w.settle();
    nothing_asked(w);
    CHECK_FALSE(w.exchange->request().body.empty()); // not even read
  }
  SUBCASE("its time is over") {
    unread w{completion_body(10, 6, 5)};
    w.advance(601s, 1s);
    CHECK(w.exchange->status == 408);
    nothing_asked(w);
    CHECK(w.exchange->answers == 1);
  }
  SUBCASE("the service ends") {
    unread w{completion_body(10, 6, 5)};
    w.tell(drain_atom_v);
    CHECK(w.exchange->status == 503);
    nothing_asked(w);
    CHECK(w.exchange->answers == 1);
  }
}

TEST_CASE("A body that is read while the pipeline is rebuilt asks the new one, once") {
  for (const bool lost_first : {false, true}) {
    unread w{completion_body(10, 6, 5)};
    if (lost_first) w.tell(lost_atom_v);
    w.rebuild();
    w.run_job();
    CHECK(w.old_books.scheduler->asked.empty());
    CHECK(w.books.scheduler->asked.size() == 1);
    CHECK_FALSE(w.pauses->look(w.sched.clock().now()).recovering);
  }
}

TEST_CASE("Formats are compiled in a lane of their own, and once") {
  const std::string schema = R"(,"guided_json":{"type":"array","items":{"type":"integer"}})";
  unread w{completion_body(10, 6, 5, schema)};
  CHECK(w.run_job() == aside_lane::brief);
  CHECK(w.books.scheduler->asked.empty());
  REQUIRE(w.held->jobs.size() == 1);
  CHECK(w.run_job() == aside_lane::formats);
  CHECK(w.books.scheduler->asked.size() == 1);
  // Whoever left before is not compiled for.
  unread left{completion_body(10, 6, 5, R"(,"guided_regex":"a{1000}")")};
  left.run_job();
  left.exchange->disconnect();
  left.settle();
  CHECK(left.over);
  CHECK(left.run_job() == aside_lane::formats);
  CHECK(left.books.scheduler->asked.empty());
}

TEST_CASE("A store finds a format again once it is made, and makes it once") {
  const auto s = tiny_service();
  net::output_format format;
  format.what = net::output_format::kind::regex;
  format.text = "[ab]{3}";
  format.field = "guided_regex";
  std::shared_ptr<model::output_constraint> found;
  CHECK(s.constraints->find(nullptr, {}, found));
  CHECK(found == nullptr);
  CHECK_FALSE(s.constraints->find(&format, {}, found));
  const auto made = s.constraints->make(&format, {}, s.tool_calls);
  CHECK(s.constraints->make(&format, {}, s.tool_calls) == made);
  CHECK(s.constraints->find(&format, {}, found));
  CHECK(found == made);
}

TEST_CASE("What is refused is refused before it is compiled, cut into tokens or asked for") {
  SUBCASE("a format beside a prompt that does not fit") {
    unread w{completion_body(600, 6, 5, R"(,"guided_json":{"type":"integer"})")};
    w.run_job();
    CHECK(w.held->jobs.empty());
    CHECK(w.exchange->status == 400);
    CHECK(w.over);
  }
  SUBCASE("a text with more bytes than its tokens could have") {
    unread w{text_body(std::string(100'000, ' '))};
    w.run_job();
    CHECK(w.exchange->status == 400);
    CHECK(w.exchange->body.find("at least") != std::string::npos);
    CHECK(w.exchange->body.find("context_length_exceeded") != std::string::npos);
  }
  SUBCASE("a text with bytes for the longest tokens, which it is not made of") {
    const auto s = tiny_service();
    const auto room = longest_prompt(s) * s.text->longest_token();
    unread w{text_body(std::string(room, 'x'))};
    w.run_job();
    CHECK(w.exchange->status == 400);
    CHECK(w.exchange->body.find("the prompt has ") != std::string::npos);
    CHECK(w.exchange->body.find("at least") == std::string::npos);
  }
}

TEST_CASE("What a response repeats is a part of the memory for bodies until it is complete") {
  const std::string tools =
      R"([{"type":"function","name":"f","description":")" + std::string(20'000, 'd') + R"("}])";
  const auto body = R"({"model":"tiny","input":"Hi","max_output_tokens":6,"tool_choice":"none",)"
                    R"("store":false,"tools":)"
                    + tools + "}";
  for (const bool fits : {true, false}) {
    CAPTURE(fits);
    request_world w{body,
                    environment{},
                    65'536,
                    std::make_shared<aside_book>(),
                    nullptr,
                    {},
                    net::api_route::responses};
    const auto memory = std::make_shared<byte_budget>(fits ? size_t{1} << 20 : 10'000);
    w.exchange->limit_memory(memory);
    w.run_job();
    CHECK(w.exchange->status == (fits ? 0 : 503));
    CHECK((memory->held() >= tools.size()) == fits);
    CHECK(memory->held() < 2 * tools.size()); // text, not values
    w.exchange->disconnect();
    w.settle();
    if (fits) w.books.scheduler->promises.front().deliver(caf::make_error(ec::cancelled));
    w.settle();
    CHECK(w.over);
    CHECK(memory->held() == 0);
  }
}

TEST_CASE("A message of no tokens has its prompt computed, for those that come after it") {
  request_world w{R"({"model":"tiny","max_tokens":0,"messages":[{"role":"user","content":"Hi"}]})",
                  environment{},
                  65'536,
                  nullptr,
                  nullptr,
                  {},
                  net::api_route::messages};
  REQUIRE(w.books.scheduler->asked.size() == 1);
  w.admit_all();
  REQUIRE(w.books.prefills->asked.size() == 1);
  CHECK(w.exchange->answers == 0);
  w.prefill_all();
  CHECK(w.exchange->status == 200);
  const auto got = parse_json(w.exchange->body);
  CHECK(got.find("content")->get_if<json_value::array>()->empty());
  CHECK(*got.find("stop_reason")->get_if<std::string>() == "max_tokens");
  CHECK(*got.find("usage")->find("output_tokens")->get_if<int64_t>() == 0);
  CHECK(w.books.batches->joined.empty());
  CHECK(w.books.kv->released == std::vector<sequence_id>{seq(1)});
  CHECK(w.over);
}

TEST_CASE("The least tokens of a text are no more than it has") {
  const auto s = tiny_service();
  tests::splitmix random{7};
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (size_t n = random.below(200); n > 0; --n)
      text += random.below(3) == 0 ? ' ' : static_cast<char>(random.below(96) + 32);
    CHECK(s.text->fewest_tokens(text) <= s.text->encode(text, model::special::forbidden).size());
  }
}

TEST_CASE("Jobs of a lane run in their order, and wait for none of another lane") {
  struct world : stage {
    ~world() { end_all(); }
  } w;
  const auto all = w.spawn(aside, aside_config{1, false});
  std::string said;
  for (const char* x : {"a", "b", "c"})
    caf::anon_send(all, aside_job{aside_lane::bulky, [&said, x] { said += x; }});
  caf::anon_send(all, aside_job{aside_lane::brief, [&said] { said += "1"; }});
  caf::anon_send(all, aside_job{aside_lane::bulky, [] { throw std::runtime_error{"a job's"}; }});
  caf::anon_send(all, aside_job{aside_lane::bulky, [&said] { said += "d"; }});
  w.settle();
  CHECK(std::string{said}.erase(said.find('1'), 1) == "abcd");
  CHECK(said.find('1') < 3); // not behind all of them
}

} // namespace lamella::actors::test
