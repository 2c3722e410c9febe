// A request that ends whatever serves it is found and failed alone; the others get their tokens,
// and the restarts it costs do not end the process.
#include "actors/protocol/tokens.hpp"
#include "tests/actors/gateway/served.hpp"

#include <atomic>
#include <map>
#include <set>

namespace lamella::actors::test {

namespace {

constexpr uint32_t requests = 8;

std::vector<std::string> bodies() {
  std::vector<std::string> result;
  for (uint32_t i = 0; i < requests; ++i)
    result.push_back(R"({"model":"tiny","messages":[{"role":"user","content":")"
                     + std::string(1 + 5 * i, static_cast<char>('a' + i))
                     + R"("}],"max_tokens":60,"ignore_eos":true,"logprobs":true,"seed":)"
                     + std::to_string(i) + "}");
  return result;
}

/// The tokens of one byte that an answer drew, and the first place of each.
std::map<uint32_t, size_t> drawn(const answer& x) {
  std::map<uint32_t, size_t> places;
  const auto count = size_at(x.json, "choices.0.logprobs.content");
  for (size_t i = 0; i < count; ++i) {
    const auto at = "choices.0.logprobs.content." + std::to_string(i) + ".bytes";
    constexpr uint32_t first_byte = 3; // of the tiny vocabulary
    if (size_at(x.json, at) == 1)
      places.emplace(first_byte + static_cast<uint32_t>(int_at(x.json, at + ".0")), i);
  }
  return places;
}

/// A token that one answer alone draws, late, and that no prompt has; and the answer's number.
std::pair<uint32_t, size_t> poison_in(const std::vector<answer>& answers) {
  std::map<uint32_t, std::set<size_t>> who;
  for (size_t i = 0; i < answers.size(); ++i)
    for (const auto& [token, place] : drawn(answers[i])) who[token].insert(i);
  for (const auto& [token, those] : who) {
    constexpr uint32_t ascii_end = 3 + 128;
    if (those.size() == 1 && token >= ascii_end && drawn(answers[*those.begin()])[token] >= 12)
      return {token, *those.begin()};
  }
  FAIL("no token is drawn by one answer alone");
  return {};
}

void check_poisoned(const answer& x) {
  CHECK_MESSAGE(x.status == 500, x.body);
  CHECK(text_at(x.json, "error.code") == "internal_error");
  CHECK(text_at(x.json, "error.lamella.detail.reason") == "request_poisoned");
  CHECK(x.headers.get("x-should-retry") == "false");
}

void check_others(const std::vector<answer>& answers, const std::vector<answer>& undisturbed,
                  size_t poisoned) {
  for (size_t i = 0; i < answers.size(); ++i) {
    CAPTURE(i);
    if (i == poisoned) {
      check_poisoned(answers[i]);
    } else {
      CHECK_MESSAGE(answers[i].status == 200, answers[i].body);
      CHECK(at(answers[i].json, "choices") == at(undisturbed[i].json, "choices"));
    }
  }
}

} // namespace

TEST_CASE("A request that kills when it has drawn a token is failed alone") {
  uint32_t replicas = 1;
  std::string where;
  SUBCASE("one replica: the others wait") { where = "worker.token"; }
  SUBCASE("two replicas") {
    where = "worker.token";
    replicas = 2;
  }
  auto settings = tiny_settings();
  settings.pools.model.members = replicas;
  std::vector<answer> undisturbed;
  {
    served s{settings};
    undisturbed = s.post_all("/v1/chat/completions", bodies());
  }
  for (const auto& x : undisturbed) REQUIRE_MESSAGE(x.status == 200, x.body);
  const auto [token, poisoned] = poison_in(undisturbed);
  std::atomic<int> ends{0};
  served s{settings};
  s.node().on_end([&](bool) { ++ends; });
  const armed one{where + "=1:error:" + std::to_string(token)};
  check_others(s.post_all("/v1/chat/completions", bodies()), undisturbed, poisoned);
  CHECK(s.metric("lamella_requests_poisoned_total") == 1);
  // Two ends alone make a culprit; where others ran with it, two ends before made it a suspect.
  CHECK(s.metric("lamella_failovers_total") >= 2);
  CHECK(ends == 0);
  CHECK(eventually([&] { return s.idle(); }));
  // And again at once: what it costs is not held against the pipeline.
  check_others(s.post_all("/v1/chat/completions", bodies()), undisturbed, poisoned);
  CHECK(s.metric("lamella_requests_poisoned_total") == 2);
  CHECK(ends == 0);
  CHECK(eventually([&] { return s.idle(); }));
}

TEST_CASE("Several requests that kill with their prompts are all failed, whatever they kill") {
  std::string where;
  SUBCASE("a replica") { where = "worker.token"; }
  SUBCASE("a shard") { where = "shard.token"; }
  auto settings = tiny_settings();
  settings.pools.attention.members = 3;
  const auto with = [](const char* content, uint32_t i) {
    return R"({"model":"tiny","messages":[{"role":"user","content":")" + std::string{content}
           + R"("}],"max_tokens":60,"ignore_eos":true,"logit_bias":{"94":-100},"seed":)"
           + std::to_string(i) + "}";
  };
  std::vector<std::string> wanted;
  for (uint32_t i = 0; i < 9; ++i) wanted.push_back(with(i % 4 == 2 ? "a [ b" : "a ( b", i));
  std::vector<answer> undisturbed;
  {
    served s{settings};
    undisturbed = s.post_all("/v1/chat/completions", wanted);
  }
  std::atomic<int> ends{0};
  served s{settings};
  s.node().on_end([&](bool) { ++ends; });
  const armed one{where + "=1:error:94"}; // "["
  const auto answers = s.post_all("/v1/chat/completions", wanted);
  for (uint32_t i = 0; i < 9; ++i) {
    CAPTURE(i);
    if (i % 4 == 2)
      check_poisoned(answers[i]);
    else
      CHECK(at(answers[i].json, "choices") == at(undisturbed[i].json, "choices"));
  }
  CHECK(s.metric("lamella_requests_poisoned_total") == 2);
  CHECK(ends == 0);
  CHECK(eventually([&] { return s.idle(); }));
}

} // namespace lamella::actors::test
