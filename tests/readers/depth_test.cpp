// Every reader of data from outside takes the deepest and the longest text that its limits let in,
// on a small stack: it reads it, or refuses it in words.
#include "base/json.hpp"
#include "base/json_writer.hpp"
#include "config/yaml.hpp"
#include "model/files/gguf_reader.hpp"
#include "model/files/hugging_face/json_file.hpp"
#include "model/files/hugging_face/safetensors.hpp"
#include "model/files/hugging_face/tokenizer_file.hpp"
#include "model/grammar/grammar.hpp"
#include "model/grammar/json_schema/json_schema.hpp"
#include "model/grammar/regular_expression.hpp"
#include "model/grammar/text/grammar_text.hpp"
#include "net/api/api_request.hpp"
#include "net/http/api_error.hpp"
#include "net/http/http_framing.hpp"
#include "net/http/sse.hpp"
#include "scheduler/planner/cost/trace.hpp"
#include "tests/gguf_writer.hpp"
#include "tests/model/grammar/grammar_support.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_stack.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

using namespace lamella;
using tests::on_small_stack;

namespace {

std::string repeated(std::string_view text, size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

/// `opens` and `closes` around `inside`, so often that all of it has `bytes`.
std::string nested(std::string_view opens, std::string_view inside, std::string_view closes,
                   size_t bytes) {
  const auto times = (bytes - inside.size()) / (opens.size() + closes.size());
  return repeated(opens, times) + std::string{inside} + repeated(closes, times);
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary} << bytes;
}

/// What is said of it; nothing where it is read.
template <class Error, class Read> std::string refusal(const Read& read) {
  std::string said;
  on_small_stack([&] {
    try {
      read();
    } catch (const Error& error) {
      said = error.what();
      if (said.empty()) said = "?";
    }
  });
  return said;
}

bool tells(const std::string& said, std::string_view part) { return said.find(part) != said.npos; }

constexpr size_t body_bytes = size_t{16} << 20; // http.max_body_bytes

} // namespace

TEST_CASE("readers: JSON bodies nested as deeply as they are long") {
  for (const auto& [opens, inside, closes] :
       {std::array{"[", "", "]"}, std::array{"{\"a\":", "1", "}"},
        std::array{"[{\"a\":", "[]", "}]"}, std::array{"[", "", ""}}) {
    const auto text = nested(opens, inside, closes, body_bytes);
    CHECK(tells(refusal<json_syntax_error>([&] { parse_json(text); }),
                "nested deeper than 100 levels"));
    const auto body = R"({"model":"m","messages":[{"role":"user","content":"x"}],"stop":)" + text;
    CHECK(tells(refusal<net::api_error>([&] { net::parse_chat_request(body, {}); }),
                "nested deeper than"));
  }
  // The deepest that is read, with all that is done to a value.
  for (const auto& [opens, closes] : {std::pair{"[", "]"}, std::pair{"{\"a\":", "}"}})
    CHECK(refusal<json_syntax_error>([&] {
            const auto value = parse_json(repeated(opens, 100) + "1" + repeated(closes, 100));
            const auto copy = value;
            CHECK(copy == value);
            CHECK(to_json(copy) == to_json(value));
          })
          == "");
}

TEST_CASE("readers: the deepest body has its schemas read, compared and written") {
  const auto lists = repeated("[", 90) + "1" + repeated("]", 90);
  const auto schemas =
      repeated(R"({"type":"object","properties":{"a":)", 45) + "{}" + repeated("}}", 45);
  for (const auto& schema :
       {R"({"const":)" + lists + "}", R"({"enum":[)" + lists + ",[" + lists + "]]}",
        R"({"not":{"const":)" + lists + "}}", schemas,
        R"({"anyOf":[)" + schemas + R"(,{"const":)" + lists + "}]}"}) {
    CAPTURE(schema);
    const auto body = R"({"model":"m","messages":[{"role":"user","content":"x"}],"guided_json":)"
                      + schema
                      + R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"x":)"
                      + lists + "}}}]}";
    const auto said = refusal<net::api_error>([&] {
      const auto request = net::parse_chat_request(body, {});
      CHECK(request.tools.key().size() > 180);
    });
    CHECK(said == "");
    on_small_stack([&] {
      const auto made = parse_json(schema);
      tests::states_of(
          [&](model::grammar& g, auto next) { return model::json_schema_grammar(g, made, next); });
    });
  }
}

TEST_CASE("readers: JSON bodies of as many values as they have bytes for") {
  for (const auto& text : {"[" + repeated("1,", body_bytes / 2 - 1) + "1]",
                           "[" + repeated("[],", body_bytes / 3 - 1) + "[]]",
                           "[" + repeated("[0,0,0,0,0,0,0,0],", body_bytes / 18 - 1) + "0]"})
    CHECK(tells(refusal<json_syntax_error>([&] { parse_json(text); }), "more than"));
  CHECK(refusal<json_syntax_error>(
            [&] { parse_json("\"" + repeated("\\n", body_bytes / 2 - 1) + "\""); })
        == "");
}

TEST_CASE("readers: regular expressions of as many groups, repeats and classes as fit") {
  using model::regular_expression;
  const auto longest = regular_expression::bytes_max;
  const auto read = [](const std::string& text) {
    return refusal<std::runtime_error>([&] {
      model::grammar g;
      const auto parsed = regular_expression::parse(text);
      for (const auto how :
           {regular_expression::match::whole, regular_expression::match::somewhere})
        parsed.compile(g, how, model::spelling::plain, g.end());
    });
  };
  CHECK(tells(read(nested("(", "a", ")", longest)), "nested too deeply"));
  CHECK(tells(read(nested("(?:a|", "b", ")*", longest)), "nested too deeply"));
  CHECK(tells(read(repeated("(", longest)), "nested too deeply"));
  CHECK(tells(read(nested("(", "a", ")", longest + 2)), "bytes, at most"));
  const auto deepest = [](std::string_view inside, std::string_view closes) {
    return nested("(", inside, closes, inside.size() + 32 * (1 + closes.size()));
  };
  CHECK(read(deepest("a", ")")) == "");
  // Copies of copies: bounded by the places of the grammar, or where they take none by their
  // number.
  CHECK(tells(read(deepest("a", "){4}")), "more than"));
  CHECK(tells(read(deepest("a", "){1,4}")), "more than"));
  CHECK(tells(read(deepest("", "){4}")), "more than"));
  CHECK(tells(read(deepest("", "){0,4}")), "more than"));
  CHECK(tells(read(deepest("", "){3,}")), "more than"));
  CHECK(read(deepest("a", ")*")) == "");
  CHECK(read(repeated("a|", longest / 2)) == "");
  CHECK(read("[" + repeated("a-z", longest / 3 - 2) + "]") == "");
  CHECK(read(repeated("[^a]", longest / 4)) == "");
}

TEST_CASE("readers: grammars of as many groups and rules as fit") {
  constexpr auto most = model::grammar_text_bytes_max;
  const auto said_of = [](const std::string& text) {
    return refusal<std::runtime_error>([&] {
      tests::states_of(
          [&](model::grammar& g, auto next) { return model::grammar_of_text(g, text, next); });
    });
  };
  for (const char* begins : {"root ::= ", "start: "}) {
    CAPTURE(begins);
    const std::string begin{begins};
    CHECK(tells(said_of(begin + nested("(", "\"a\"", ")", most - begin.size())), "too deeply"));
    CHECK(tells(said_of(begin + repeated("(", most - begin.size())), "too deeply"));
    const bool ebnf = begin.front() == 'r';
    // Rules that begin with one another, and the last with a text.
    auto chain = begin + "r0\n";
    size_t i = 0;
    for (; chain.size() < most - 64; ++i)
      chain += "r" + std::to_string(i) + (ebnf ? " ::= r" : ": r") + std::to_string(i + 1) + "\n";
    chain += "r" + std::to_string(i) + (ebnf ? " ::= \"a\"" : ": \"a\"");
    said_of(chain); // read, or refused in words
    for (const char* again : {"*", "?", "{1,2}", "{0}"})
      CHECK(tells(said_of(begin + "\"a\"" + repeated(again, (most - begin.size() - 3) / 5)),
                  "behind another one"));
    if (!ebnf)
      CHECK(tells(said_of(begin + "\"a\"" + repeated("~2", most / 3)), "behind another one"));
    const auto deepest = repeated("(", 60) + "\"a\"*" + repeated(")*", 60);
    CHECK(said_of(begin + deepest) == "");
    const std::string rule = begin + "\"a\" ";
    said_of(rule + repeated("| \"b\" ", (most - rule.size()) / 6));
    said_of(rule + repeated("\"b\"* ", (most - rule.size()) / 5));
    said_of(rule + repeated("\"b\"{1,100} ", (most - rule.size()) / 11));
  }
}

TEST_CASE("readers: configuration files as deep and as wide as they may be") {
  tests::scratch_folder folder;
  const auto file = folder / "lamella.yaml";
  const auto read = [&](const std::string& text) {
    write(file, text);
    std::string said;
    on_small_stack([&] {
      config::inputs from;
      from.file = file;
      const auto made = config::load(from);
      for (const auto& x : made.problems) {
        if (said.size() > 1000) break;
        said += x.text() + "\n";
      }
    });
    return said;
  };
  const auto longest = config::document_bytes_max;
  CHECK(tells(read(nested("[", "", "]", longest)), "more than 16 levels"));
  CHECK(tells(read(nested("{a: ", "1", "}", longest)), "more than 16 levels"));
  CHECK(tells(read(repeated("[", longest)), "more than 16 levels"));
  CHECK(tells(read(repeated("- ", longest / 2)), "more than 16 levels"));
  CHECK(tells(read(repeated("? ", longest / 2)), "more than 16 levels"));
  CHECK(read(repeated("a: ", longest / 3)) != "");
  CHECK(read("a: " + repeated("!", longest - 3)) != "");
  CHECK(read("version: 1\nx: \"" + repeated("\\x41", longest / 4 - 8) + "\"") != "");
  CHECK(tells(read("version: 1" + repeated("\n", longest - 9)), "longer than 1 MiB"));
  std::string indented;
  for (size_t i = 0; indented.size() + i + 4 < longest; ++i)
    indented += std::string(i, ' ') + "a:\n";
  CHECK(tells(read(indented), "more than 16 levels"));
  // Keys that are unknown, different or all the same.
  std::string keys = "version: 1\nhttp: {";
  for (size_t i = 0; keys.size() + 16 < longest; ++i) keys += "k" + std::to_string(i) + ": 1, ";
  CHECK(tells(read(keys + "}"), "more than 8192 values"));
  CHECK(tells(read(keys.substr(0, 30'000) + "}"), "is not a known key"));
  CHECK(tells(read("version: 1\nhttp: {" + repeated("a: 1, ", longest / 6 - 8) + "}"),
              "is given twice"));
}

TEST_CASE("readers: GGUF metadata of arrays in arrays") {
  tests::scratch_folder folder;
  constexpr uint32_t array = 9;
  // Each array has one element, which is an array.
  std::string value;
  for (size_t i = 0; i < (size_t{4} << 20) / 12; ++i)
    value += tests::gguf_writer::raw(array) + tests::gguf_writer::raw(uint64_t{1});
  tests::gguf_writer made;
  made.set("general.deep", array, value);
  write(folder / "deep.gguf", made.file());
  const mapped_file file{folder / "deep.gguf"};
  CHECK(tells(refusal<file_error>([&] { model::read_gguf_header(file); }),
              "arrays of arrays are not read"));
}

TEST_CASE("readers: headers of safetensors and JSON files of models") {
  using namespace model::hugging_face;
  tests::scratch_folder folder;
  const auto deep = nested("{\"a\":", "1", "}", size_t{32} << 20);
  write(folder / "deep.json", deep);
  CHECK(tells(refusal<file_error>([&] { json_file{folder / "deep.json"}; }), "nested deeper than"));
  const auto header =
      deep.substr(0, std::min<size_t>(deep.size(), safetensors_limit::header_bytes));
  write(folder / "deep.safetensors", tests::gguf_writer::raw(uint64_t{header.size()}) + header);
  CHECK(tells(refusal<file_error>([&] { safetensors_file{folder / "deep.safetensors"}; }),
              "nested deeper than 4 levels"));
}

TEST_CASE("readers: a tokenizer.json as deep and as wide as it may be") {
  using namespace model::hugging_face;
  tests::scratch_folder folder;
  const auto read = [&](const std::string& text) {
    write(folder / "tokenizer.json", text);
    return refusal<file_error>(
        [&] { read_tokenizer(open_tokenizer_file(folder / "tokenizer.json")); });
  };
  const std::string open = R"({"type":"Sequence","KIND":[)", close = "]}";
  for (const auto& [field, kind] : {std::pair{"normalizer", "normalizers"},
                                    {"pre_tokenizer", "pretokenizers"},
                                    {"post_processor", "processors"},
                                    {"decoder", "decoders"}}) {
    CAPTURE(field);
    auto level = open;
    level.replace(level.find("KIND"), 4, kind);
    for (const size_t levels : {size_t{8}, size_t{30}, size_t{1} << 20}) {
      CAPTURE(levels);
      const auto steps = repeated(level, levels) + repeated(close, levels);
      CHECK_FALSE(read(R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":[]},")"
                       + std::string{field} + "\":" + steps + "}")
                      .empty());
    }
  }
  // As many merges of as many tokens as the file may have bytes for, one of them made of itself.
  std::string vocabulary = R"({"a":0)", merges = R"("a a")";
  for (int i = 1; i < 60'000; ++i) {
    vocabulary += ",\"t" + std::to_string(i) + "\":" + std::to_string(i);
    merges += ",\"a a\"";
  }
  CHECK_FALSE(
      read(R"({"model":{"type":"BPE","vocab":)" + vocabulary + R"(},"merges":[)" + merges + "]}}")
          .empty());
  CHECK_FALSE(
      read(R"({"model":{"type":"BPE","vocab":{")" + repeated("a", 8 << 20) + R"(":0}}})").empty());
}

TEST_CASE("readers: HTTP heads and chunks of the most pieces that fit") {
  const net::http_limits limits;
  const auto head = [&](const std::string& text) {
    return refusal<net::api_error>([&] {
      net::head_scanner scanner{limits};
      if (const auto size = scanner.scan(text)) net::parse_head(text.substr(0, *size), limits);
    });
  };
  const std::string line = "GET / HTTP/1.1\r\nhost: x\r\n";
  CHECK(head(line + repeated("a: b\r\n", 98) + "\r\n") == "");
  CHECK(head(line + repeated("a: b\r\n", 8192) + "\r\n") != "");
  CHECK(head(line + "a: " + repeated("(", limits.header_line_bytes - 3) + "\r\n\r\n") == "");
  CHECK(head(repeated("\r\n", 8192)) != "");
  CHECK(tells(refusal<net::api_error>([&] {
                net::chunk_decoder decoder{limits};
                std::string body;
                decoder.feed(repeated("1\r\nx\r\n", 1 << 20), body);
              }),
              "chunks"));
}

TEST_CASE("readers: traces and tables with a line that does not end") {
  const auto read = [](const std::string& text) {
    return refusal<scheduler::table_error>([&] {
      std::istringstream in{text};
      scheduler::read_trace(in, {});
    });
  };
  constexpr size_t bytes = size_t{32} << 20;
  CHECK(tells(read("{" + repeated("[", bytes)), "line 1: longer than"));
  CHECK(tells(read(repeated("\"", bytes)), "line 1: longer than"));
  CHECK(tells(read("arrival_s,prompt_tokens,output_tokens\n0,1," + repeated("1", bytes)),
              "line 2: longer than"));
  const auto deep = nested("{\"a\":", "1", "}", scheduler::table_line_bytes_max - 64);
  CHECK(tells(read("{\"timestamp\": 1, \"input_length\": 2, \"output_length\": " + deep + "}"),
              "output_length"));
}
