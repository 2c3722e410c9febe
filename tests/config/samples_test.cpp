#include "config/options.hpp"
#include "config/schema.hpp"
#include "tests/config/scratch.hpp"
#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

using namespace lamella::config;
using lamella::tests::scratch_folder;
namespace fs = std::filesystem;

namespace {

/// True for our own files: the first line that says something is `version: 1`.
bool is_configuration(const fs::path& file) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') return line == "version: 1";
  return false;
}

std::string problems_of(const loaded& got) {
  std::string text;
  for (const auto& x : got.problems) text += x.text() + "\n";
  return text;
}

const node* child(const node* at, const std::string& key) {
  if (at == nullptr) return nullptr;
  for (const auto& pair : at->pairs)
    if (pair.key == key) return &pair.item;
  return nullptr;
}

} // namespace

TEST_CASE("every configuration file we ship loads") {
  const scratch_folder folder;
  size_t seen = 0;
  for (const char* place : {"config", "deploy"}) {
    const auto root = fs::path{lamella::tests::source_folder} / place;
    if (!fs::exists(root)) continue;
    for (const auto& file : fs::recursive_directory_iterator{root}) {
      if (file.path().extension() != ".yaml") continue;
      if (std::string{place} == "config") CHECK(is_configuration(file.path()));
      if (!is_configuration(file.path())) continue;
      CAPTURE(file.path().string());
      auto from = folder.nothing();
      from.file = file.path();
      CHECK(problems_of(load(from)) == "");
      ++seen;
    }
  }
  CHECK(seen >= 1);
}

TEST_CASE("the schema says of every option what the table says") {
  std::vector<document_problem> problems;
  // JSON is YAML, so our own strict reader reads it.
  const auto root = parse_document(schema_json(), problems);
  for (const auto& x : problems) MESSAGE(x.at.line << ": " << x.message);
  REQUIRE(problems.empty());
  for (const auto& x : options()) {
    CAPTURE(x.key);
    const node* at = &root;
    size_t from = 0;
    for (size_t dot; (dot = x.key.find('.', from)) != std::string::npos; from = dot + 1)
      at = child(child(at, "properties"), x.key.substr(from, dot - from));
    at = child(child(at, "properties"), x.key.substr(from));
    REQUIRE(at != nullptr);
    REQUIRE(child(at, "x-reload") != nullptr);
    CHECK(child(at, "x-reload")->text == (x.when == reload::live ? "live" : "restart"));
    REQUIRE(child(at, "description") != nullptr);
    CHECK(child(at, "description")->text == x.sentence);
    if (const auto* most = child(at, "maxLength")) CHECK(most->text != "0");
    const auto* standard = child(at, "default");
    REQUIRE(standard != nullptr);
    if (x.kind != option_kind::text_list) {
      value v = std::string{}; // an empty text is never handed to the parser of addresses
      if (!standard->text.empty()) CHECK_FALSE(parse_value(x, standard->text, v).has_value());
      CHECK(v == x.get(settings{}));
    }
  }
  CHECK(reference_text().find("## http.listen\n") != std::string::npos);
}

TEST_CASE("what config show writes loads to the same settings") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.set = {"http.listen=127.0.0.1:1",
              "model.aliases=[a, \"b:c\"]",
              "model.name=true",
              "model.path=/x y/#z",
              "kv.bytes=3GiB",
              "http.sse_ping_seconds=0.25",
              "pools.attention.members=3",
              "pools.attention.cells.east.members=2",
              "pools.attention.cells.west.kv_bytes=1GiB"};
  const auto first = load(from);
  REQUIRE(first.problems.empty());
  for (const bool effective : {false, true}) {
    auto again = folder.nothing();
    again.file =
        folder.write("shown.yaml", show_yaml(first, {.effective = effective, .with_origin = true}));
    const auto second = load(again);
    CHECK(second.problems.empty());
    CHECK(diff(first.value, second.value).empty());
  }
  std::vector<document_problem> problems;
  const auto json =
      parse_document(show_json(first, {.effective = true, .with_origin = true}), problems);
  CHECK(problems.empty());
  REQUIRE(child(&json, "options") != nullptr);
  CHECK(child(&json, "options")->items.size() > options().size()); // the cells' options come on top
}

TEST_CASE("config show keeps cells that have no options of their own") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.file = folder.write("cells.yaml", "version: 1\npools:\n  attention:\n    members: 3\n"
                                         "    cells: {east: , west: {partition: requests}, "
                                         "north: {}}\n");
  const auto first = load(from);
  REQUIRE(first.problems.empty());
  REQUIRE(first.value.pools.attention.cells.size() == 3);
  const auto text = show_yaml(first, {});
  CHECK(text.find("    cells:\n      east: {}\n") != std::string::npos);
  CHECK(text.find("      north: {}\n") != std::string::npos);
  for (const bool with_origin : {false, true}) {
    auto again = folder.nothing();
    again.file = folder.write("shown.yaml", show_yaml(first, {.with_origin = with_origin}));
    const auto second = load(again);
    CHECK(second.problems.empty());
    CHECK(diff(first.value, second.value).empty());
  }
  std::vector<document_problem> problems;
  const auto json = parse_document(show_json(first, {.with_origin = true}), problems);
  CHECK(problems.empty());
  REQUIRE(child(&json, "options") != nullptr);
  const auto& shown = child(&json, "options")->items;
  REQUIRE(shown.size() == 4);
  CHECK(child(&shown[1], "key")->text == "pools.attention.cells.east");
  CHECK(child(&shown[1], "value")->type == node::kind::map);
  CHECK(child(&shown[1], "value")->pairs.empty());
}

TEST_CASE("a difference names key, both values and whether it needs a restart") {
  settings a;
  settings b;
  b.limits.max_n = 3;
  b.http.listen = "127.0.0.1:1";
  b.pools.attention.cells["x"] = {};
  const auto found = diff(a, b);
  REQUIRE(found.size() == 2 + 10); // a cell has ten options
  CHECK(found[0].key == "http.listen");
  CHECK(found[0].before == "\"127.0.0.1:8000\"");
  CHECK(found[0].after == "\"127.0.0.1:1\"");
  CHECK(found[0].needs_restart);
  CHECK(found[1].key == "limits.max_n");
  CHECK_FALSE(found[1].needs_restart);
  CHECK(found[2].key == "pools.attention.cells.x.members");
  CHECK(found[2].before.empty());
}
