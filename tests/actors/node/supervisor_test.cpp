#include "actors/node/supervisor.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/supervisors.hpp"
#include "tests/actors/stage.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

struct world : stage {
  std::vector<uint64_t> generations;
  std::vector<bool> troubles;
  std::set<std::optional<net::failover_cause>> causes; ///< of these
  std::set<std::string> roles;                         ///< and who had them
  std::vector<caf::strong_actor_ptr> children;         ///< of the newest generation
  std::vector<uint32_t> ended; ///< number of the child, in the order of the ends
  bool throws = false;
  int spent = 0; ///< attempts that others' devices failed
  caf::actor root;

  /// `apart`: the peers of the children are WORKERs.
  explicit world(uint32_t restarts = 3, bool apart = true) {
    actors::subtree tree;
    tree.on_fault = [] { return suspect_board::budget::counts; };
    tree.blames_workers = [apart] { return apart; };
    tree.on_spent = [this] { ++spent; };
    tree.name = "tree";
    tree.start = [this](caf::event_based_actor* self, uint64_t generation) {
      generations.push_back(generation);
      if (throws) throw std::runtime_error("no memory");
      children.clear();
      for (uint32_t i = 0; i < 3; ++i) {
        auto child = self->spawn([this, i](caf::event_based_actor* me) -> caf::behavior {
          me->attach_functor([this, i](const caf::error&) { ended.push_back(i); });
          return {[](int) {}};
        });
        children.push_back(caf::actor_cast<caf::strong_actor_ptr>(child));
      }
      return children;
    };
    tree.facts_of = [this](const caf::actor_addr& x) {
      const bool second = caf::actor_cast<caf::actor_addr>(children.at(1)) == x;
      return child_facts{"worker", second ? "attention" : "model"};
    };
    tree.on_trouble = [this](bool given_up, const std::string& role,
                             std::optional<net::failover_cause> cause) {
      troubles.push_back(given_up);
      causes.insert(cause);
      roles.insert(role);
    };
    root = spawn(actors::supervisor, std::move(tree), scheduler::restart_policy{restarts, 30s});
    settle();
  }
  ~world() {
    if (root)
      caf::anon_send_exit(root, caf::exit_reason::user_shutdown); // takes its children along
    settle();
    end_all();
  }
  void kill(size_t child, caf::exit_reason why = caf::exit_reason::kill) {
    auto victim = children.at(child);
    caf::anon_send_exit(victim, why);
    settle();
  }
  bool root_ended = false;
  void watch() {
    root->attach_functor([this](const caf::error&) { root_ended = true; });
  }
};

} // namespace

TEST_CASE("When one child ends, all are ended and started anew after a delay") {
  world w;
  REQUIRE(w.generations == std::vector<uint64_t>{1});
  const auto before = w.children;
  w.kill(1);
  CHECK(w.troubles == std::vector<bool>{false});
  CHECK(w.ended.size() == 3);
  CHECK(w.generations.size() == 1); // not at once
  w.advance(13ms);                  // 10 ms and a spread of 20 %
  REQUIRE(w.generations == std::vector<uint64_t>{1, 2});
  for (size_t i = 0; i < 3; ++i) CHECK(w.children[i] != before[i]);
  w.advance(10s, 100ms);
  CHECK(w.generations.size() == 2); // the ends of the old ones are no new trouble
}

TEST_CASE("reliability A8: a supervisor tells whom it has, and how many restarts are used up") {
  world w{3};
  const auto status = [&] {
    auto answer = w.ask<supervisor_status>(w.root, status_atom_v);
    w.settle();
    return answer->value;
  };
  auto x = status();
  CHECK(x.name == "tree");
  CHECK(x.strategy == "one_for_all");
  CHECK(x.restarts.allowed == 3);
  CHECK(x.restarts.used == 0);
  CHECK(x.restarts.window_s == 30);
  REQUIRE(x.children.size() == 2);
  CHECK(x.children[0].role == "model");
  CHECK(x.children[0].count == 2);
  CHECK(x.children[1].role == "attention");
  CHECK(x.children[1].count == 1);
  w.kill(0);
  x = status();
  CHECK(x.restarts.used == 1);
  CHECK(x.children.empty()); // until they are there again
  w.advance(20ms);
  CHECK(status().children.size() == 2);
  w.advance(31s, 1s);
  CHECK(status().restarts.used == 0); // long ago
}

TEST_CASE("A child that ends normally is missed like any other") {
  world w;
  w.kill(0, caf::exit_reason::user_shutdown);
  w.advance(20ms);
  CHECK(w.generations.size() == 2);
}

TEST_CASE("L-M25 links to be made anew, and peers that are gone, count for nothing, but take their "
          "time") {
  using cause = net::failover_cause;
  caf::error why;
  std::optional<cause> counts;
  const auto is = [&](const caf::error& x, std::optional<cause> as) {
    why = x;
    counts = as;
  };
  SUBCASE("a link was cut") { is(caf::make_error(ec::link_cut), cause::partition); }
  SUBCASE("nothing came in time") { is(caf::make_error(ec::attempts_silent), cause::deadline); }
  SUBCASE("rows are not what was sent") { is(caf::make_error(ec::rows_differ), cause::integrity); }
  SUBCASE("attempts are spent") { is(caf::make_error(ec::attempts_spent), cause::fault); }
  SUBCASE("told before the loss of the worker is") { is(caf::sec::request_receiver_down, {}); }
  world w{1};
  for (uint32_t i = 0; i < 6; ++i) {
    const auto victim = caf::actor_cast<caf::actor>(w.children.at(0));
    caf::anon_send(victim, caf::exit_msg{victim->address(), why});
    w.settle();
    CHECK(w.generations.size() == i + 1);
    w.advance(1s, 10ms);
    CHECK(w.generations.size() == i + 2);
  }
  CHECK(w.troubles == std::vector<bool>(6, false));
  CHECK(w.causes == std::set{counts});
  CHECK(w.roles == std::set<std::string>{"model"});
  CHECK(w.spent == (why == ec::attempts_spent ? 6 : 0)); // who ran may be the reason
}

TEST_CASE("Where no WORKER can be the reason, a peer that is gone has failed; an exception is a "
          "fault anywhere") {
  bool apart = false;
  caf::error why;
  SUBCASE("gone") { why = caf::sec::request_receiver_down; }
  SUBCASE("attempts at an iteration are spent") { why = caf::make_error(ec::attempts_spent); }
  SUBCASE("an exception") {
    apart = true;
    why = caf::make_error(ec::actor_failed);
  }
  world w{1, apart};
  w.watch();
  for (int i = 0; i < 2; ++i) {
    const auto victim = caf::actor_cast<caf::actor>(w.children.at(0));
    caf::anon_send(victim, caf::exit_msg{victim->address(), why});
    w.settle();
    w.advance(1s, 10ms);
  }
  CHECK(w.root_ended);
}

// Found by reading: a restart that was put off ran after a loss had already started everything
// anew, and nobody ever ended the generation in between.
TEST_CASE("A restart that was overtaken by a loss does not start a second generation") {
  world w;
  w.kill(1);
  CHECK(w.generations.size() == 1);
  caf::anon_send(w.root, epoch_lost{1, "model", "model/0 lost"});
  w.settle();
  REQUIRE(w.generations == std::vector<uint64_t>{1, 2});
  w.ended.clear();
  w.advance(10s, 100ms);
  CHECK(w.generations == std::vector<uint64_t>{1, 2});
  CHECK(w.ended.empty());
}

TEST_CASE("The delay doubles, and more ends than the policy allows end the supervisor") {
  world w{3};
  w.watch();
  const caf::timespan delays[]{13ms, 25ms, 49ms};
  for (const auto delay : delays) {
    const auto count = w.generations.size();
    w.kill(2);
    w.advance(delay / 2);
    CHECK(w.generations.size() == count);
    w.advance(delay / 2 + caf::timespan{1ms});
    CHECK(w.generations.size() == count + 1);
  }
  w.kill(0);
  CHECK(w.troubles == std::vector<bool>{false, false, false, true});
  CHECK(w.root_ended);
  CHECK(w.ended.size() == 12); // nobody is left
  w.advance(10s, 100ms);
  CHECK(w.generations.size() == 4);
}

TEST_CASE("Ends further apart than the window never add up") {
  world w{2};
  w.watch();
  for (int i = 0; i < 6; ++i) {
    w.kill(0);
    w.advance(31s, 100ms);
  }
  CHECK(w.generations.size() == 7);
  CHECK_FALSE(w.root_ended);
}

TEST_CASE("A start that throws counts as an end and is tried again") {
  world w{3};
  w.throws = true;
  w.kill(0);
  w.advance(20ms);
  CHECK(w.generations.size() == 2);
  w.throws = false;
  w.advance(30ms);
  REQUIRE(w.generations.size() == 3);
  CHECK(w.children.size() == 3);
  CHECK(w.troubles == std::vector<bool>{false, false});
}

TEST_CASE("On exit the children go first, and none is started again") {
  world w;
  w.watch();
  caf::anon_send_exit(w.root, caf::exit_reason::user_shutdown);
  w.settle();
  CHECK(w.root_ended);
  CHECK(w.ended.size() == 3);
  CHECK(w.troubles.empty());
  w.advance(1s, 10ms);
  CHECK(w.generations.size() == 1);
}

} // namespace lamella::actors::test
