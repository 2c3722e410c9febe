// A planned change: the next generation is prepared while the present one runs.
#include "actors/node/supervisor.hpp"
#include "actors/protocol/epochs.hpp"
#include "tests/actors/stand_ins.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;

namespace {

struct world : stage {
  std::vector<caf::strong_actor_ptr> children; ///< of the newest generation that was started
  std::vector<uint64_t> started, ended;        ///< generations
  std::vector<owed<int>> renewals;             ///< answered with the outcome
  caf::actor gate;
  std::vector<std::function<bool()>> goes_on;
  uint32_t troubles = 0, abandoned = 0;
  caf::actor root;

  world() {
    gate = spawn([this](caf::event_based_actor* self) -> caf::behavior {
      return {[this, self](int) -> caf::result<int> {
        auto promise = self->make_response_promise<int>();
        renewals.push_back({promise, self});
        return promise;
      }};
    });
    actors::subtree tree;
    tree.name = "tree";
    tree.start = [this](caf::event_based_actor* self, uint64_t generation) {
      started.push_back(generation);
      return children = make(self, generation);
    };
    tree.renew = [this](caf::event_based_actor* self, uint64_t generation, std::function<bool()> on,
                        std::function<void(renewal)> done) {
      goes_on.push_back(std::move(on));
      self->request(gate, caf::infinite, 0).then([=, this](int outcome) {
        renewal x{static_cast<renewal::outcome>(outcome), {}, "because"};
        if (x.what == renewal::outcome::taken) x.children = children = make(self, generation);
        done(std::move(x));
      });
      return [this] { ++abandoned; };
    };
    tree.on_trouble = [this](bool, const std::string&, std::optional<net::failover_cause>) {
      ++troubles;
    };
    root = spawn(actors::supervisor, std::move(tree), scheduler::restart_policy{3, 30s});
    settle();
  }
  ~world() {
    caf::anon_send_exit(root, caf::exit_reason::user_shutdown);
    settle();
    end_all();
  }

  std::vector<caf::strong_actor_ptr> make(caf::event_based_actor* self, uint64_t generation) {
    auto child = self->spawn([this, generation](caf::event_based_actor* me) -> caf::behavior {
      me->attach_functor([this, generation](const caf::error&) { ended.push_back(generation); });
      return {[](int) {}};
    });
    return {caf::actor_cast<caf::strong_actor_ptr>(child)};
  }
  void due() {
    caf::anon_send(root, epoch_due{1, "a worker can be used"});
    settle();
  }
  void come(renewal::outcome what) {
    renewals.back().deliver(static_cast<int>(what));
    settle();
  }
  void kill_child() {
    const auto victim = caf::actor_cast<caf::actor>(children.front());
    caf::anon_send_exit(victim, caf::exit_reason::kill);
    settle();
  }
};

using generations = std::vector<uint64_t>;

} // namespace

TEST_CASE_FIXTURE(world, "L-M25 the next generation takes over, and the one before ends then") {
  due();
  REQUIRE(renewals.size() == 1);
  CHECK(ended.empty());
  due(); // told again meanwhile: once more, later
  CHECK(renewals.size() == 1);
  come(renewal::outcome::taken);
  CHECK(ended == generations{1});
  CHECK(troubles == 0);
  CHECK(renewals.size() == 2);
  come(renewal::outcome::stays);
  kill_child(); // the new one is watched
  CHECK(troubles == 1);
  advance(1s, 10ms);
  CHECK(started.size() == 2);
}

TEST_CASE_FIXTURE(world, "L-M25 a generation that does not take over changes nothing") {
  due();
  come(renewal::outcome::stays);
  CHECK(ended.empty());
  CHECK(troubles == 0);
  due();
  CHECK(renewals.size() == 2);
}

TEST_CASE_FIXTURE(world, "L-M26 one that breaks off when the present one has stopped: all anew") {
  due();
  come(renewal::outcome::broken);
  CHECK(abandoned == 0);
  CHECK(ended == generations{1});
  CHECK(troubles == 1);
  CHECK(started.size() == 2);
}

TEST_CASE_FIXTURE(world, "L-M26 a failure while the next one is prepared is a failure like any") {
  due();
  REQUIRE(goes_on.front()());
  kill_child();
  CHECK(troubles == 1);
  CHECK_FALSE(goes_on.front()());
  CHECK(abandoned == 1);
  come(renewal::outcome::stays); // nobody hears it any more
  advance(1s, 10ms);
  CHECK(started.size() == 2);
  CHECK(ended == generations{1});
}

} // namespace lamella::actors::test
