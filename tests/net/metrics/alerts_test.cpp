// The alerts and the scrape sample of deploy/ against the metrics that there are.
#include "net/metrics/metrics.hpp"
#include "tests/folders.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

using namespace lamella::net;

namespace {

std::string text_of(const std::string& name) {
  std::ifstream file{std::filesystem::path{lamella::tests::source_folder} / "deploy" / name};
  REQUIRE_MESSAGE(file, "no deploy/" << name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct rule {
  std::string name, expression, severity;
  std::set<std::string> annotations;
};

/// The value behind a key of this line, or the folded lines below it.
std::string value_of(const std::string& line, std::istream& lines, const std::string& key) {
  auto value = line.substr(line.find(key) + key.size());
  if (value != ">-") return value;
  value.clear();
  const auto indent = line.find(key) + 2;
  for (auto at = lines.tellg();; at = lines.tellg()) {
    std::string next;
    if (!std::getline(lines, next) || next.find_first_not_of(' ') < indent) {
      lines.clear();
      lines.seekg(at);
      return value;
    }
    value += " " + next.substr(indent);
  }
}

/// The rules of the file, which keeps to the few shapes of YAML that this understands.
std::vector<rule> rules() {
  std::istringstream lines{text_of("alerts.yml")};
  std::vector<rule> result;
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const char* key) { return line.find(key) != std::string::npos; };
    if (has("- alert: ")) result.push_back({value_of(line, lines, "alert: "), {}, {}, {}});
    if (result.empty()) continue;
    if (has(" expr: ")) result.back().expression = value_of(line, lines, "expr: ");
    if (has("severity: ")) result.back().severity = value_of(line, lines, "severity: ");
    for (const char* key : {"summary: \"", "description: \""})
      if (has(key)) result.back().annotations.insert(key);
  }
  return result;
}

/// The characters of a name from this place on.
std::string_view word_at(std::string_view text, size_t from) {
  auto end = from;
  while (end < text.size()
         && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'
             || text[end] == ':'))
    ++end;
  return text.substr(from, end - from);
}

/// Names and values.
using labels = std::vector<std::pair<std::string, std::string>>;

/// The labels of `a="x",b=~"y|z"`, each with its values.
labels labels_of(std::string_view text) {
  labels result;
  for (size_t at = 0; at < text.size();) {
    const auto name = word_at(text, at);
    const auto open = text.find('"', at), close = text.find('"', open + 1);
    REQUIRE_MESSAGE((!name.empty() && close != text.npos), "labels not understood: " << text);
    result.emplace_back(name, text.substr(open + 1, close - open - 1));
    at = close + 1;
    if (at < text.size() && text[at] == ',') ++at;
  }
  return result;
}

/// The labels between the braces that may stand at this place.
std::string_view braces_at(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '{') return {};
  return text.substr(at + 1, text.find('}', at) - at - 1);
}

/// The series that an expression reads: the family of each and its labels.
std::vector<std::pair<std::string, labels>> series_of(std::string_view expression) {
  std::vector<std::pair<std::string, labels>> result;
  for (size_t at = 0; at < expression.size();) {
    auto word = word_at(expression, at);
    at += std::max<size_t>(word.size(), 1);
    const auto is_ours = [&](const char* prefix) { return word.starts_with(prefix); };
    if (!is_ours("lamella_") && !is_ours("vllm:") && !is_ours("http_") && !is_ours("process_"))
      continue;
    if (const std::string_view bucket = "_bucket"; word.ends_with(bucket))
      word.remove_suffix(bucket.size());
    const auto inside = braces_at(expression, at);
    result.emplace_back(word, labels_of(inside));
    at += inside.size();
  }
  return result;
}

/// Families of a page, and for each the values that its labels have.
std::map<std::string, std::map<std::string, std::set<std::string>>> families() {
  metrics::settings s;
  s.workers = {{"model", "model-0"}, {"attention", "attention-0"}, {"prefill", "prefill-0"}};
  std::map<std::string, std::map<std::string, std::set<std::string>>> result;
  std::istringstream lines{metrics(s).scrape().body};
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      result[family];
    } else if (!line.starts_with('#')) {
      for (const auto& [label, value] : labels_of(braces_at(line, word_at(line, 0).size())))
        result[family][label].insert(value);
    }
  }
  return result;
}

} // namespace

TEST_CASE("the alerts of deploy/ name families, labels and values that exist") {
  const auto known = families();
  std::set<std::string> names;
  for (const auto& x : rules()) {
    CAPTURE(x.name);
    CAPTURE(x.expression);
    CHECK(names.insert(x.name).second);
    CHECK(x.name.starts_with("Lamella"));
    CHECK((x.severity == "page}" || x.severity == "ticket}"));
    CHECK(x.annotations.size() == 2);
    size_t found = 0;
    for (const auto& [family, labels] : series_of(x.expression)) {
      ++found;
      CAPTURE(family);
      REQUIRE(known.contains(family));
      for (const auto& [label, alternatives] : labels) {
        std::istringstream values{alternatives};
        for (std::string value; std::getline(values, value, '|');) {
          CAPTURE(value);
          REQUIRE(known.at(family).contains(label));
          CHECK(known.at(family).at(label).contains(value));
        }
      }
    }
    CHECK((found > 0 || x.expression == R"(up{job="lamella"} == 0 or absent(up{job="lamella"}))"));
  }
  CHECK(names.size() >= 15);
}

TEST_CASE("the scrape sample of deploy/ reads the alerts and is the job they name") {
  const auto sample = text_of("prometheus.yml");
  CHECK(sample.find("- alerts.yml\n") != std::string::npos);
  CHECK(sample.find("job_name: lamella\n") != std::string::npos);
  CHECK(sample.find("\"127.0.0.1:8001\"") != std::string::npos); // the default of admin.listen
}
