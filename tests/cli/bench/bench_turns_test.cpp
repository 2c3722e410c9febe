// `lamella bench serve` with conversations of several turns, and with traces whose prompts begin
// alike.
#include "cli/bench/load/workload.hpp"
#include "tests/cli/bench/fake_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace lamella;
using tests::common_words;
using tests::fake_model;
using tests::scratch_folder;

namespace {

/// A conversation of three turns, one of one, one of two.
void write_set(const scratch_folder& folder) {
  const auto turn = [](const char* q, const char* a) {
    return std::string{R"({"from":"human","value":")"} + q + R"("},{"from":"gpt","value":")" + a
           + "\"}";
  };
  std::ofstream{folder / "set.json"}
      << R"([{"conversations":[)" << turn("q one", "a b c") << "," << turn("q two", "a b") << ","
      << turn("q three", "a b c d") << R"(]},{"conversations":[)" << turn("r one", "a")
      << R"(]},{"conversations":[)" << turn("s one", "a b") << "," << turn("s two", "a") << "]}]";
}

json_value read_json(const std::filesystem::path& file) {
  std::ifstream in{file};
  return parse_json(std::string{std::istreambuf_iterator<char>{in}, {}});
}

std::vector<int64_t> numbers_at(const json_value& x, const char* name) {
  std::vector<int64_t> all;
  for (const auto& each : *x.find(name)->get_if<json_value::array>())
    all.push_back(*each.get_if<int64_t>());
  return all;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("each turn of a conversation carries the answers that the server gave before it") {
  const scratch_folder folder;
  write_set(folder);
  fake_model server;
  const auto run = server.bench(folder, "--endpoint chat --dataset set.json --turns 3 --requests 3 "
                                        "--concurrency 1 --save r.json");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const auto asked = server.requests();
  REQUIRE(asked.size() == 7); // the first one warms up
  const auto answer = fake_model::answer_of;
  CHECK(asked[1].said == texts{"q one"});
  CHECK(asked[2].said == texts{"q one", answer(1, 3), "q two"});
  CHECK(asked[3].said == texts{"q one", answer(1, 3), "q two", answer(2, 2), "q three"});
  CHECK(asked[3].max_tokens == 4);
  CHECK(asked[4].said == texts{"r one"});
  CHECK(asked[6].said == texts{"s one", answer(5, 2), "s two"});
  const auto told = read_json(folder / "r.json");
  CHECK(numbers_at(told, "turns") == std::vector<int64_t>{1, 2, 3, 1, 1, 2});
  CHECK(numbers_at(told, "conversations") == std::vector<int64_t>{0, 0, 0, 1, 2, 2});
  const auto cached = numbers_at(told, "cached_lens");
  CHECK(cached[2] == 7); // what turn 2 said, without the answer to it
  CHECK(has(run.out, "Conversations:                           3 "));
  CHECK(has(run.out, "Mean TTFT of later turns (ms):"));
  CHECK_FALSE(has(run.out, "use another --seed"));
}

TEST_CASE("without --turns the first question is asked alone, and a number of them is a bound") {
  const scratch_folder folder;
  write_set(folder);
  for (const auto& [words, requests] : {std::pair{"", 3}, {"--turns 1", 3}, {"--turns 2", 5}}) {
    CAPTURE(words);
    fake_model server;
    const auto run = server.bench(folder, std::string{"--endpoint chat --dataset set.json "} + words
                                              + " --requests 3");
    CHECK(run.code == 0);
    CHECK(server.requests().size() == static_cast<size_t>(requests) + 1);
  }
}

TEST_CASE("a turn that fails ends its conversation, and the user goes on to the next one") {
  const scratch_folder folder;
  write_set(folder);
  fake_model server;
  server.fail(2);
  const auto run = server.bench(folder, "--endpoint chat --dataset set.json --turns 3 --requests 3 "
                                        "--concurrency 1 --save r.json");
  CHECK(run.code == 1);
  CHECK(server.requests().size() == 6); // turn 3 is not asked
  CHECK(numbers_at(read_json(folder / "r.json"), "turns") == std::vector<int64_t>{1, 2, 1, 1, 2});
  CHECK(has(run.out, "500 broken"));
}

TEST_CASE(
    "conversations of an open loop arrive by the rate, and their turns take part in the bound") {
  const scratch_folder folder;
  write_set(folder);
  fake_model server;
  const auto run =
      server.bench(folder, "--endpoint chat --dataset set.json --turns 3 --requests 6 --rate 1000 "
                           "--max-in-flight 1 --think-time 0.001 --json");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(server.requests().size() == 13);
  const auto told = parse_json(run.out);
  CHECK(*told.find("completed")->get_if<int64_t>() == 12);
  CHECK(*told.find("lamella")->find("turns")->find("conversations")->get_if<int64_t>() == 6);
  CHECK_FALSE(has(run.out, "SATURATED"));
}

TEST_CASE(
    "runs of a sweep go on behind the conversations of those before, not behind their turns") {
  const scratch_folder folder;
  write_set(folder);
  fake_model server;
  const auto run = server.bench(
      folder, "--endpoint chat --dataset set.json --turns 3 --requests 1 --rates 100,200");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const auto asked = server.requests();
  REQUIRE(asked.size() == 5);
  CHECK(asked[1].said == texts{"q one"});
  CHECK(asked[4].said == texts{"r one"});
}

TEST_CASE("a conversation ends before the turn that would not fit the model's context") {
  const scratch_folder folder;
  write_set(folder);
  fake_model server{11}; // turn 1 takes 3 + 3 tokens, turn 2 3 + 2, turn 3 3 + 4
  const auto run =
      server.bench(folder, "--endpoint chat --dataset set.json --turns 9 --requests 1");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(server.requests().size() == 3);
  CHECK(has(run.out, "1 conversations end before a turn with which they would be longer than the "
                     "model's context of 11 tokens"));
}

TEST_CASE(
    "--turns is refused where there are no turns, or nothing that they can be compared with") {
  const scratch_folder folder;
  write_set(folder);
  fake_model server;
  const auto refused = [&](const std::string& words, const std::string& why) {
    const auto run = server.bench(folder, words);
    CHECK(run.code == 2);
    CHECK_MESSAGE(has(run.err, why), run.err);
  };
  refused("--turns 2", "--dataset");
  refused("--dataset set.json --turns 2", "add --endpoint chat");
  refused("--dataset set.json --turns 0", "--turns");
  refused("--dataset set.json --think-time 1", "--turns");
  refused("--dataset set.json --turns 2 --endpoint chat --think-time=-1", "--think-time");
  refused("--dataset set.json --turns 2 --endpoint chat --goodput ttft:2x", "no slowdown");
  CHECK(server.requests().empty());
}

TEST_CASE(
    "pauses of users are exponential with the mean that is asked for, and repeat with their seed") {
  cli::bench_serve_options options;
  CHECK(cli::think_time(options, 3, 2).count() == 0);
  options.think_s = 2;
  constexpr int count = 20'000;
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto pause = cli::think_time(options, i, 2);
    REQUIRE(pause == cli::think_time(options, i, 2));
    REQUIRE(pause.count() >= 0);
    sum += std::chrono::duration<double>(pause).count();
  }
  CHECK(sum / count == doctest::Approx(2).epsilon(5 / std::sqrt(count)));
  CHECK(cli::think_time(options, 3, 2) != cli::think_time(options, 3, 3));
  CHECK(cli::think_time(options, 3, 2) != cli::think_time(options, 4, 2));
}

TEST_CASE("equal hash_ids of a trace give equal text, so that a prefix cache has its hits") {
  const scratch_folder folder;
  std::ofstream{folder / "t.jsonl"}
      << R"({"timestamp":0,"input_length":1100,"output_length":2,"hash_ids":[1,2,3]})"
      << "\n"
      << R"({"timestamp":1,"input_length":1200,"output_length":2,"hash_ids":[1,2,4]})"
      << "\n"
      << R"({"timestamp":2,"input_length":700,"output_length":2,"hash_ids":[1,5]})"
      << "\n"
      << R"({"timestamp":3,"input_length":600,"output_length":2,"hash_ids":[9]})"
      << "\n"
      << R"({"timestamp":4,"input_length":600,"output_length":2,"hash_ids":[9]})"
      << "\n";
  fake_model server;
  const auto run =
      server.bench(folder, "--trace t.jsonl --concurrency 1 --requests 10 --save r.json");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const auto asked = server.requests();
  REQUIRE(asked.size() == 11);
  CHECK(numbers_at(read_json(folder / "r.json"), "input_lens")
        == std::vector<int64_t>{1100, 1200, 700, 600, 600, 1100, 1200, 700, 600, 600});
  // Words that differ may be the same by chance: a few of a hundred.
  const auto share = [&](size_t a, size_t b) { return common_words(asked[a].all, asked[b].all); };
  constexpr size_t chance = 5;
  const auto about = [](size_t words, size_t from) {
    return words >= from && words < from + chance;
  };
  CHECK(about(share(1, 2), 1024));
  CHECK(about(share(1, 3), 512));
  CHECK(about(share(4, 5), 512)); // behind its ids each prompt has words of its own
  CHECK(share(1, 4) < chance);
  CHECK(share(1, 6) < chance); // the trace again, with other texts
  CHECK(about(share(6, 7), 1024));
  for (size_t i = 1; i < asked.size(); ++i) CHECK(share(0, i) < chance); // of the warm-up
  CHECK_FALSE(has(run.out, "use another --seed"));
}
