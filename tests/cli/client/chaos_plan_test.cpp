// Whom `lamella chaos` injures.
#include "cli/client/chaos_plan.hpp"
#include "cli/commands.hpp"

#include <doctest/doctest.h>

#include <set>

namespace lamella::tests {

namespace {

const auto status = parse_json(R"({"version":1,
  "workers":[{"name":"b","role":"model","seat":"model/1","pid":12,"host":"h"},
             {"name":"a","role":"model","seat":"model/0","pid":11,"host":"h"},
             {"name":"p","role":"prefill","seat":"prefill/0","pid":7,"host":"h"},
             {"name":"c","role":"attention","seat":"attention/0","pid":7,"host":"other"}],
  "missing":[{"role":"attention","seat":"attention/1","incarnation":3}],
  "gateway":{"requests":0,"host":"h","pid":7}})");

std::vector<std::string> drawn(const std::string& target, uint64_t seed, size_t count = 40) {
  cli::chaos_plan plan{cli::worker_seats(status), target, seed};
  std::vector<std::string> seats;
  for (size_t i = 0; i < count; ++i) seats.push_back(plan.next());
  return seats;
}

std::set<std::string> set_of(const std::vector<std::string>& x) { return {x.begin(), x.end()}; }

} // namespace

TEST_CASE("The same seed injures the same seats in the same order, and another seed others") {
  CHECK(drawn("", 7) == drawn("", 7));
  CHECK(drawn("", 7) != drawn("", 8));
  // Also a seat that nobody has just now; never one of the service's own process.
  CHECK(set_of(drawn("", 7))
        == std::set<std::string>{"attention/0", "attention/1", "model/0", "model/1"});
}

TEST_CASE("A target is a seat, a role or a worker's name; another one is told with those known") {
  CHECK(set_of(drawn("model", 1)) == std::set<std::string>{"model/0", "model/1"});
  CHECK(set_of(drawn("attention/1", 1)) == std::set<std::string>{"attention/1"});
  CHECK(set_of(drawn("model/b", 1)) == std::set<std::string>{"model/1"});
  for (const char* wrong : {"prefill", "modle", "model/2"}) {
    CAPTURE(wrong);
    try {
      drawn(wrong, 1);
      FAIL_CHECK("it was taken");
    } catch (const cli::command_error& e) {
      CHECK(std::string{e.what()}.find(wrong) != std::string::npos);
      CHECK(e.problems().front().hint.find(
                "attention, attention/0, attention/1, attention/c, model, model/0, "
                "model/1, model/a, model/b")
            != std::string::npos);
    }
  }
}

TEST_CASE("Where the service tells of no worker process it is left to say so itself") {
  cli::chaos_plan plan{{}, "model", 3};
  CHECK(plan.next() == "model");
}

} // namespace lamella::tests
