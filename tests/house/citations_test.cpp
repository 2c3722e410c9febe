// Code, tests and pages cite decisions (decision 27), mechanisms of the papers (L-M26, L-Q14, C11)
// and items of the failure model (reliability A3, I5) by number. Each of them has a heading or a
// row in docs/, and what docs/ names exists.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace lamella::house;
namespace fs = std::filesystem;

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Text of which line breaks, with what begins the next line of a comment, are one space.
std::string joined(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') {
      out += text[i];
      continue;
    }
    while (i + 1 < text.size() && std::string_view{" \t/*#"}.find(text[i + 1]) != std::string::npos)
      ++i;
    out += ' ';
  }
  return out;
}

/// The number at `at`, which moves behind it; -1 where there is none.
int number_at(std::string_view text, size_t& at) {
  if (at >= text.size() || !is_digit(text[at])) return -1;
  int n = 0;
  while (at < text.size() && is_digit(text[at]) && n < 10'000) n = 10 * n + (text[at++] - '0');
  return n;
}

/// Skips one of the separators of a list; which one, or empty.
std::string_view separator_at(std::string_view text, size_t& at) {
  for (const std::string_view x : {", and ", " and ", " to ", ", ", ": ", "; "})
    if (text.substr(at).starts_with(x)) {
      at += x.size();
      return x;
    }
  return {};
}

using ids = std::set<std::string>;

/// "decision 27", "Decisions 3 and 4", "decisions 1 to 33".
ids decisions_in(std::string_view text) {
  ids found;
  constexpr std::string_view word = "ecision";
  for (size_t at = 0; (at = text.find(word, at)) != text.npos;) {
    const bool begins = at > 0 && (text[at - 1] == 'd' || text[at - 1] == 'D');
    at += word.size();
    if (!begins) continue;
    if (at < text.size() && text[at] == 's') ++at;
    if (at >= text.size() || text[at] != ' ') continue;
    int last = number_at(text, ++at);
    if (last >= 0) found.insert(std::to_string(last));
    while (last >= 0) {
      auto behind = at;
      const auto how = separator_at(text, behind);
      if (how.empty()) break;
      const int next = number_at(text, behind);
      if (next < 0) break;
      for (int n = how == " to " ? last : next; n <= next; ++n) found.insert(std::to_string(n));
      last = next, at = behind;
    }
  }
  return found;
}

/// An item of a page at `at`: one of `letters`, one or two digits, perhaps a dot and one more.
/// Empty where there is none.
std::string item_at(std::string_view text, size_t at, std::string_view letters) {
  if (at >= text.size() || letters.find(text[at]) == letters.npos) return {};
  if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '-' || text[at - 1] == '%')) return {};
  auto end = at + 1;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at + 1 || end > at + 3) return {};
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) end += 2;
  if (end < text.size() && is_word(text[end])) return {};
  return std::string{text.substr(at, end - at)};
}

/// All of them, wherever they stand.
ids items_in(std::string_view text, std::string_view letters) {
  ids found;
  for (size_t at = 0; at < text.size(); ++at)
    if (const auto x = item_at(text, at, letters); !x.empty()) found.insert(x);
  return found;
}

/// "reliability A4, D1: I9": what follows that word.
ids items_behind_reliability(std::string_view text) {
  ids found;
  constexpr std::string_view word = "eliability ";
  for (size_t at = 0; (at = text.find(word, at)) != text.npos;) {
    at += word.size();
    for (auto x = item_at(text, at, "ABCDEFIP"); !x.empty(); x = item_at(text, at, "ABCDEFIP")) {
      found.insert(x);
      at += x.size();
      if (separator_at(text, at).empty()) break;
    }
  }
  return found;
}

/// What texts in double quotes begin with, as names of tests do: "A2 F3 GPU executor ...".
ids items_of_names(std::string_view text) {
  ids found;
  for (size_t at = 0; (at = text.find('"', at)) != text.npos;) {
    ++at;
    for (auto x = item_at(text, at, "ABDFI"); !x.empty(); x = item_at(text, at, "ABDFI")) {
      at += x.size();
      if (at >= text.size() || (text[at] != ' ' && text[at] != ':')) break;
      found.insert(x);
      ++at;
    }
  }
  return found;
}

/// L-M26, S-Q31: a paper, mechanism or published number, two digits.
ids mechanisms_in(std::string_view text) {
  ids found;
  for (size_t at = 0; at + 5 <= text.size(); ++at) {
    const auto x = text.substr(at, 5);
    if (std::string_view{"LSNV"}.find(x[0]) == std::string_view::npos || x[1] != '-') continue;
    if ((x[2] != 'M' && x[2] != 'Q') || !is_digit(x[3]) || !is_digit(x[4])) continue;
    if (at > 0 && is_word(text[at - 1])) continue;
    if (at + 5 < text.size() && is_word(text[at + 5])) continue;
    found.insert(std::string{x});
  }
  return found;
}

/// What a page has: `<a id="X"></a>`, and headings that begin with the item: "### A3: Epochs".
ids anchors_of(const fs::path& page, ids* twice = nullptr) {
  ids found;
  const auto add = [&](const std::string& x) {
    if (!found.insert(x).second && twice != nullptr) twice->insert(x);
  };
  for (const auto& line : lines_of(page)) {
    constexpr std::string_view mark = "<a id=\"";
    for (size_t at = 0; (at = line.find(mark, at)) != line.npos;) {
      at += mark.size();
      add(line.substr(at, line.find('"', at) - at));
    }
    if (!line.starts_with("##")) continue;
    const auto text = line.find_first_not_of('#') + 1;
    const auto colon = line.find(':');
    if (text >= line.size() || colon == line.npos) continue;
    auto name = line.substr(text, colon - text);
    if (name.starts_with("Decision ")) name.erase(0, std::string_view{"Decision "}.size());
    if (!name.empty() && name.find(' ') == name.npos) add(name);
  }
  return found;
}

const fs::path docs = root / "docs";

/// All text that may cite, in a fixed order.
std::vector<fs::path> citing_files() {
  std::vector<fs::path> files;
  const ids endings{".cpp", ".hpp", ".cu", ".cuh", ".md", ".sh", ".py", ".cmake", ".txt"};
  auto folders = top_folders;
  folders.insert({"tests", "docs", "deploy", "cmake"});
  for (const auto& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto name = name_of(entry.path());
      if (!entry.is_regular_file() || !endings.contains(entry.path().extension().string()))
        continue;
      if (!name.starts_with("tests/data/") && name != "tests/house/citations_test.cpp")
        files.push_back(entry.path());
    }
  for (const auto* page : {"README.md", "CONTRIBUTING.md"})
    if (fs::exists(root / page)) files.push_back(root / page);
  std::sort(files.begin(), files.end());
  return files;
}

/// Pages of which every such word is an item of the failure model.
const ids reliability_pages{"docs/RELIABILITY.md",     "docs/ARCHITECTURE.md", "docs/DECISIONS.md",
                            "docs/operations.md",      "actors/README.md",     "tests/README.md",
                            "tests/recovery_matrix.md"};

ids reliability_items_of(const std::string& name, std::string_view text) {
  auto found = items_behind_reliability(text);
  const bool in_tests = name.starts_with("tests/") && !name.starts_with("tests/golden/");
  if (in_tests && !name.ends_with(".md")) found.merge(items_of_names(text));
  if (name.starts_with("tests/simulation/") || name.starts_with("tests/process/harness/"))
    found.merge(items_in(text, "I"));
  if (reliability_pages.contains(name)) found.merge(items_in(text, "ABCDFIP"));
  return found;
}

/// Where the contradictions of the papers are cited.
bool cites_contradictions(const std::string& name) {
  for (const std::string_view folder : {"scheduler/planner/", "cli/plan/", "deploy/reproduction/",
                                        "tests/scheduler/planner/", "tests/cli/plan/", "docs/MECH"})
    if (name.starts_with(folder)) return true;
  return false;
}

/// Looks each citation of all files up; returns how many there were.
size_t check_citations(const std::function<ids(const std::string&, std::string_view)>& of,
                       const ids& known) {
  size_t count = 0;
  for (const auto& file : citing_files()) {
    const auto name = name_of(file);
    for (const auto& x : of(name, joined(text_of(file)))) {
      ++count;
      INFO(name << " cites " << x << ", which no page of docs/ has");
      CHECK(known.contains(x));
    }
  }
  return count;
}

/// Texts in back quotes.
std::vector<std::string> quoted_in(const std::string& text) {
  std::vector<std::string> found;
  for (size_t at = text.find('`'); at != text.npos; at = text.find('`', at + 1)) {
    const auto end = text.find('`', at + 1);
    if (end == text.npos) break;
    found.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return found;
}

/// The cells of a row of a table.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  for (size_t at = 1; at < row.size();) {
    const auto end = std::min(row.find('|', at), row.size());
    cells.push_back(row.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

} // namespace

TEST_CASE("the scanner of citations finds them, and nothing else") {
  CHECK(decisions_in(joined("(decision\n/// 29) Decisions 3 and 4, decisions 1 to 3; decision: no"))
        == ids{"1", "2", "29", "3", "4"});
  CHECK(decisions_in("precision 3, the decisions, decision x").empty());
  CHECK(mechanisms_in("L-M07 to L-M11; (S-Q31), XL-M01 L-M1 L-M012")
        == ids{"L-M07", "L-M11", "S-Q31"});
  CHECK(items_behind_reliability("reliability A4, D1: I9) A5 reliability C2.3. Reliability")
        == ids{"A4", "C2.3", "D1", "I9"});
  CHECK(items_of_names("TEST(\"A2 F3 GPU\") \"I9: x\" \"A10G\" \"P1\" \"A8\"")
        == ids{"A2", "F3", "I9"});
  CHECK(items_in("I5, I6 and XI7 I100 %I8", "I") == ids{"I5", "I6"});
}

TEST_CASE("every decision that is cited is in docs/DECISIONS.md") {
  ids twice;
  const auto known = anchors_of(docs / "DECISIONS.md", &twice);
  CHECK(twice.empty());
  CHECK(known.contains("27"));
  CHECK_FALSE(known.contains("99"));
  CHECK(check_citations([](const auto&, auto text) { return decisions_in(text); }, known) > 30);
}

TEST_CASE("every mechanism, published number and contradiction that is cited is in docs/") {
  ids twice;
  const auto known = anchors_of(docs / "MECHANISMS.md", &twice);
  CHECK(twice.empty());
  CHECK_FALSE(known.contains("L-M99"));
  const auto of = [](const std::string& name, std::string_view text) {
    auto found = mechanisms_in(text);
    if (cites_contradictions(name))
      for (const auto& x : items_in(text, "C"))
        if (x.size() == 3) found.insert(x);
    return found;
  };
  CHECK(check_citations(of, known) > 400);
}

TEST_CASE("every item of the failure model that is cited is in docs/RELIABILITY.md") {
  ids twice;
  const auto known = anchors_of(docs / "RELIABILITY.md", &twice);
  CHECK(twice.empty());
  CHECK_FALSE(known.contains("A99"));
  CHECK(check_citations(reliability_items_of, known) > 100);
}

TEST_CASE("files and tests of each mechanism exist, and the tests carry its id") {
  size_t rows = 0;
  for (const auto& line : lines_of(docs / "MECHANISMS.md")) {
    const auto cells = cells_of(line);
    if (cells.size() != 6 || !line.starts_with("| <a id=\"")) continue;
    ++rows;
    const auto id = *mechanisms_in(cells[0]).begin();
    INFO(id);
    for (const auto& file : quoted_in(cells[3])) CHECK_MESSAGE(fs::exists(root / file), file);
    for (const auto& file : quoted_in(cells[4])) {
      REQUIRE_MESSAGE(fs::exists(root / file), file);
      CHECK_MESSAGE(mechanisms_in(text_of(root / file)).contains(id), file);
    }
    const bool absent = cells[5].find("absent") != std::string::npos;
    if (!absent) CHECK_FALSE(quoted_in(cells[4]).empty());
  }
  CHECK(rows == 34 + 31 + 28 + 24);
}

TEST_CASE("paths and links of the pages in docs/ lead to what exists") {
  auto first_words = top_folders;
  first_words.insert({"tests", "deploy", "docs", "cmake"});
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(docs)) {
    if (entry.path().extension() != ".md") continue; // a picture
    const auto text = joined(text_of(entry.path()));
    for (const auto& name : quoted_in(text)) {
      const auto slash = name.find('/');
      if (slash == name.npos || !first_words.contains(name.substr(0, slash))) continue;
      if (name.find_first_of(" *{…<$") != name.npos) continue;
      ++seen;
      INFO(entry.path().filename() << ": " << name);
      CHECK((fs::exists(root / name) || fs::exists(root / (name + ".hpp"))));
    }
    for (size_t at = 0; (at = text.find("](", at)) != text.npos;) {
      at += 2;
      const auto target = text.substr(at, text.find_first_of(")#", at) - at);
      if (target.empty() || target.find("://") != target.npos) continue;
      ++seen;
      INFO(entry.path().filename() << ": " << target);
      CHECK(fs::exists(docs / target));
    }
  }
  CHECK(seen > 100);
}
