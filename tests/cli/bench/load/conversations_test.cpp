// Files of conversations, as `lamella bench serve --dataset` takes them.
#include "cli/bench/load/workload.hpp"
#include "cli/commands.hpp"
#include "scheduler/planner/cost/csv.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

using namespace lamella::cli;
using lamella::scheduler::table_error;
using lamella::tests::scratch_folder;

namespace {

std::vector<conversation> all_of(const std::string& text, size_t turns_max = 1) {
  std::istringstream in{text};
  conversation_reader reader{in, turns_max};
  std::vector<conversation> all;
  while (auto x = reader.next()) all.push_back(std::move(*x));
  return all;
}

std::string error_of(const std::string& text) {
  try {
    all_of(text);
  } catch (const table_error& e) {
    return e.what();
  }
  return "none";
}

bool begins(const std::string& text, const std::string& with) { return text.starts_with(with); }

} // namespace

TEST_CASE("a list of ShareGPT's form gives first questions and their answers") {
  const auto all = all_of(R"([
    {"id": "a", "conversations": [
      {"from": "human", "value": "Who { [ \" \\"}, {"from": "gpt", "value": "me"},
      {"from": "human", "value": "and?"}, {"from": "gpt", "value": "you"}]},
    {"id": "b", "conversations": [{"from": "gpt", "value": "no question"}]},
    {"id": "c", "conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q"},
      {"from": "gpt", "value": "a"}]}
  ])");
  REQUIRE(all.size() == 2);
  CHECK(all[0].size() == 1);
  CHECK(all[0][0].question == "Who { [ \" \\");
  CHECK(all[0][0].answer == "me");
  CHECK(all[1][0].question == "q");
}

TEST_CASE("JSON lines may hold messages, or prompts with lengths") {
  const auto all = all_of("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},"
                          "{\"role\":\"assistant\",\"content\":\"a b\"}]}\r\n\n"
                          "{\"prompt\":\"p\",\"output_tokens\":7}\n{\"text\":\"t\"}\n"
                          "{\"prompt\":\"p2\",\"completion\":\"c\"}");
  REQUIRE(all.size() == 4);
  CHECK(all[0][0].answer == "a b");
  CHECK(all[1][0].output_tokens == 7);
  CHECK(all[2][0].question == "t");
  CHECK_FALSE(all[2][0].output_tokens);
  CHECK(all[3][0].answer == "c");
  CHECK(all_of("[]").empty());
}

TEST_CASE("as many turns as are asked for are read, up to one without a question or an answer") {
  const std::string text = R"({"messages":[
    {"role":"system","content":"s"}, {"role":"user","content":"1"}, {"role":"assistant","content":"a"},
    {"role":"user","content":"2"}, {"role":"tool","content":"t"}, {"role":"assistant","content":"b"},
    {"role":"user","content":"3"}, {"role":"assistant","content":""},
    {"role":"user","content":"4"}, {"role":"assistant","content":"d"}]})";
  const auto turns = [&](size_t most) { return all_of(text, most).at(0); };
  CHECK(turns(1).size() == 1);
  REQUIRE(turns(9).size() == 2);
  CHECK(turns(9)[1].question == "2");
  CHECK(turns(9)[1].answer == "b");
  CHECK(all_of(R"([{"conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"a"},
    {"from":"human","value":"2"},{"from":"human","value":"3"},{"from":"gpt","value":"c"}]}])",
               9)
            .at(0)
            .size()
        == 1);
  CHECK(all_of(R"({"messages":[{"role":"user","content":"1"}]})", 9).empty());
}

TEST_CASE("what is no file of conversations is refused with its line") {
  CHECK(begins(error_of(""), "the file is empty"));
  CHECK(begins(error_of("\n\nhuman: hello"), "line 3: it begins with neither [ nor {"));
  CHECK(begins(error_of("[{\"prompt\":\"p\"}\n {\"prompt\":\"p\"}]"), "line 2: neither a comma"));
  CHECK(begins(error_of("[\n{\"prompt\":\"p\"},\n{\"prompt\":\n\"p"),
               "line 3: the file ends within"));
  CHECK(begins(error_of("[{\"prompt\":\"p\"}\n"), "line 2: the file ends before the ]"));
  CHECK(begins(error_of("[1]"), "line 1: not an object"));
  CHECK(begins(error_of("{\"prompt\":\"p\"}\n{\"a\": \n nul}"), "line 3: no JSON"));
  CHECK(begins(error_of("{\"question\":\"p\"}"), "line 1: the object has neither conversations"));
  CHECK(begins(error_of("{\"conversations\":3}"), "line 1: the turns are a number, not a list"));
  CHECK(begins(error_of("{\"prompt\":\"p\",\"output_tokens\":0}"), "line 1: output_tokens: not a"));
  CHECK(begins(error_of("{\"prompt\":\"" + std::string(17 << 20, 'x')),
               "line 1: the object is longer"));
}

TEST_CASE("a file is read as far as it is needed, and errors name it") {
  const scratch_folder folder;
  const auto path = (folder / "set.json").string();
  std::ofstream{path} << "[{\"prompt\":\"one\",\"output_tokens\":1},\n"
                         "{\"prompt\":\"two two\",\"output_tokens\":2},\n{\"prompt\":\"three\","
                         "\"output_tokens\":3},\nno JSON";
  std::vector<std::string> notes;
  const auto measure = [](const conversation& x) -> std::vector<uint32_t> {
    if (x[0].question == "two two") return {}; // too long
    return {*x[0].output_tokens};
  };
  const auto kept = read_conversations(path, 2, 1, measure, notes);
  REQUIRE(kept.size() == 2);
  CHECK(kept[1][0].prompt == "three");
  CHECK(kept[1][0].output_tokens == 3);
  CHECK(notes.empty());
  try {
    read_conversations(path, 3, 1, measure, notes);
    FAIL("it is read");
  } catch (const command_error& e) {
    CHECK(e.code() == exit_damaged_input);
    CHECK(std::string{e.what()}.find("set.json: line 4: ") != std::string::npos);
  }
  CHECK_THROWS_AS(read_conversations((folder / "none").string(), 1, 1, measure, notes),
                  command_error);
}
