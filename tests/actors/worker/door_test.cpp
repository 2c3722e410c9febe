// DOOR on virtual time: who gets in, and what those are told who do not.
#include "actors/protocol/join.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/traces.hpp"
#include "tests/actors/membership/membership_world.hpp"

namespace lamella::actors::test {

TEST_CASE_FIXTURE(membership_world,
                  "Nobody gets in without the secret, with an old nonce, or with one twice") {
  const auto ask_it = question();
  const auto challenge = ask<join_challenge>(gate, ask_it);
  settle();
  REQUIRE((challenge->came && !challenge->error));
  const auto proof = worker_proof(secret, ask_it, challenge->value);
  // A proof by another secret uses the nonce up.
  const auto wrong = ask<join_grant>(
      gate, join_proof{challenge->value.nonce,
                       worker_proof(net::shared_secret::random(), ask_it, challenge->value)});
  settle();
  CHECK(wrong->error == ec::join_denied);
  const auto again = ask<join_grant>(gate, join_proof{challenge->value.nonce, proof});
  settle();
  CHECK(again->error == ec::deadline);
  // Of another role, over another nonce, too late.
  const auto second = ask<join_challenge>(gate, ask_it);
  settle();
  auto other_role = ask_it;
  other_role.role = "attention";
  const auto forged = ask<join_grant>(
      gate, join_proof{second->value.nonce, worker_proof(secret, other_role, second->value)});
  settle();
  CHECK(forged->error == ec::join_denied);
  const auto third = ask<join_challenge>(gate, ask_it);
  settle();
  advance(6s, 1s);
  const auto late = ask<join_grant>(
      gate, join_proof{third->value.nonce, worker_proof(secret, ask_it, third->value)});
  settle();
  CHECK(late->error == ec::deadline); // it may try again
  // Facts without a join.
  const auto facts =
      ask<bool>(gate, worker_facts{make_worker(std::make_shared<worker_book>(), true), "1",
                                   "avx512", "3 layers", 77, "", ""});
  settle();
  CHECK(facts->error == ec::join_refused);
  CHECK(missing.size() == 1); // no seat was ever touched
}

TEST_CASE_FIXTURE(membership_world,
                  "A worker in a crowd is told to come again, and is not refused") {
  std::shared_ptr<reply<join_challenge>> last;
  for (size_t i = 0; i <= scheduler::join_guard::challenges_max; ++i) {
    last = ask<join_challenge>(gate, question("model"));
    settle();
    CHECK((!last->error || i == scheduler::join_guard::challenges_max));
  }
  CHECK(last->error == ec::queue_full);
  advance(6s, 1s);
  last = ask<join_challenge>(gate, question("model"));
  settle();
  CHECK(!last->error);
}

TEST_CASE_FIXTURE(membership_world,
                  "A pool of child processes takes nobody else, whatever they call themselves") {
  const auto child = net::shared_secret::random();
  door_config terms{secret, "cluster", "1", 100, 1000, members, [this] {
                      auto n = std::to_string(++nonces);
                      return std::string(nonce_bytes - n.size(), '0') + n;
                    }};
  terms.of_children = [](const std::string& pool) { return pool == "attention"; };
  terms.child_secret = child;
  const auto other = spawn(actors::door, std::move(terms));
  settle();
  const auto join = [&](const net::shared_secret& by, const std::string& role) {
    auto x = question(role);
    x.name = role + "-0"; // as the service calls its children
    x.preferred = 0;
    const auto challenge = ask<join_challenge>(other, x);
    settle();
    REQUIRE((challenge->came && !challenge->error));
    const auto answer = ask<join_grant>(
        other, join_proof{challenge->value.nonce, worker_proof(by, x, challenge->value)});
    settle();
    return answer;
  };
  const auto stranger = join(secret, "attention");
  CHECK(stranger->error == ec::join_refused);
  CHECK(says(system.render(stranger->error), "accepts only workers that the service starts"));
  CHECK(!join(child, "attention")->error);
  CHECK(join(child, "model")->error == ec::join_denied);
  CHECK(!join(secret, "model")->error);
}

TEST_CASE_FIXTURE(membership_world, "Wrong proofs block their node for a minute") {
  for (int i = 0; i < 5; ++i) {
    const auto challenge = ask<join_challenge>(gate, question());
    settle();
    REQUIRE(!challenge->error);
    ask<join_grant>(gate, join_proof{challenge->value.nonce, std::string(32, 'x')});
    settle();
  }
  const auto blocked = ask<join_challenge>(gate, question());
  settle();
  CHECK(blocked->error == ec::join_denied);
  CHECK(says(system.render(blocked->error), "retry in 60 s"));
  advance(61s, 1s);
  const auto open = ask<join_challenge>(gate, question());
  settle();
  CHECK(!open->error);
}

TEST_CASE_FIXTURE(membership_world,
                  "What differs before anything is proved is said with both values") {
  const auto refused = [&](join_ask x, const std::string& part) {
    const auto answer = ask<join_challenge>(gate, x);
    settle();
    REQUIRE(answer->error == ec::join_refused);
    const auto text = system.render(answer->error);
    CHECK_MESSAGE(says(text, part), text);
  };
  auto x = question();
  x.protocol = 9;
  refused(x, "the service has " + std::to_string(join_protocol) + ", the worker 9");
  x = question();
  x.version = "0.9";
  refused(x, "the service has 1, the worker 0.9");
  x.version = "\"\n";
  refused(x, "an invalid one");
  x = question();
  x.dead_ms = 0;
  refused(x, "the service has 100 and 1000, the worker 100 and 0");
  refused(question("gateway"), "no pool is named 'gateway'");
  for (const auto& bad : {std::string(65, 'n'), std::string{"a b"}, std::string{"a\"b"}}) {
    x = question();
    x.name = bad;
    refused(x, "malformed");
  }
  x = question();
  x.nonce.pop_back();
  refused(x, "malformed");
}

TEST_CASE_FIXTURE(membership_world, "Challenges that nobody answers are bounded and run out") {
  for (int i = 0; i < 200; ++i) ask<join_challenge>(gate, question());
  settle();
  const auto full = ask<join_challenge>(gate, question());
  settle();
  CHECK(says(system.render(full->error), "too many workers are joining"));
  advance(6s, 1s);
  CHECK(*join("model").result == "in");
}

TEST_CASE_FIXTURE(membership_world,
                  "Wrong model: refused with both digests, and the seat is free again") {
  auto wrong = join("model", 78);
  CHECK(says(*wrong.result, "the service has 000000000000004d, the worker 000000000000004e"));
  CHECK(says(missing.back(), "model/0"));
  CHECK(*join("model").result == "in");
  CHECK(*join("attention", 0).result == "in"); // a shard has no weights
}

} // namespace lamella::actors::test
