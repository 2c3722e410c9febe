// Every option changes something: the member that its accessor in the table names is read by the
// program. Looks at words and nothing else, but not at comments and texts.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;
using lamella::house::root;
using lamella::house::text_of;

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Code without comments of lines and without what stands in double quotes, with `.` for `->`.
std::string words_of(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size() - 1);
    } else if (text.compare(i, 3, "'\"'") == 0) {
      i += 2;
      continue;
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      continue;
    } else if (text.compare(i, 2, "->") == 0) {
      out += '.';
      ++i;
      continue;
    }
    if (i < text.size()) out += text[i];
  }
  return out;
}

/// What follows `opening` up to the end of the path, at each place: `s.limits.max_n` →
/// limits.max_n.
std::set<std::string> paths_after(const std::string& text, std::string_view opening) {
  std::set<std::string> found;
  for (size_t at = 0; (at = text.find(opening, at)) != std::string::npos;) {
    at += opening.size();
    auto end = at;
    while (end < text.size() && (is_word(text[end]) || text[end] == '.')) ++end;
    found.insert(text.substr(at, end - at));
  }
  return found;
}

/// Whether the path stands there as words of its own.
bool has_path(const std::string& text, const std::string& path) {
  for (size_t at = 0; (at = text.find(path, at)) != std::string::npos; ++at) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const auto end = at + path.size();
    if (begins && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

/// The last two words of a path, which are how code that has all settings names a member.
std::string tail_of(const std::string& path) {
  const auto last = path.rfind('.');
  const auto before = last == 0 ? last : path.rfind('.', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

} // namespace

TEST_CASE("every option in the schema is read by the program") {
  // What reads settings: all of it, and what settings say of themselves. The table, the reader and
  // the rules between options do not count, but the one place that refuses what cannot be run yet.
  std::string program = words_of(text_of(root / "config/settings.hpp"));
  for (const char* folder : {"actors", "cli"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp")
        program += words_of(text_of(entry.path()));
  const auto rules = words_of(text_of(root / "config/rules.cpp"));
  const auto refused_from = rules.find("check_availability(");
  REQUIRE(refused_from != std::string::npos);
  program += rules.substr(refused_from, rules.find("\n}", refused_from) - refused_from);

  // Read through a reference to its section, or by a function of it.
  const std::map<std::string, std::string> other_words{
      {"batching.batches", "batching.batches_for"},
      {"log.format", "settings.format"},
      {"pools.attention.kv_bytes", "cell_pool.kv_bytes"},
      {"traces.endpoint", "x.endpoint"},
  };
  const std::set<std::string> pools{"pools.model", "pools.attention", "pools.prefill"};

  size_t seen = 0;
  for (const char* table : {"config/options.cpp", "config/options_batching.cpp",
                            "config/options_observing.cpp", "config/options_pools.cpp"}) {
    const auto text = text_of(root / table);
    for (const auto& path : paths_after(text, "return s.")) {
      if (pools.contains(path)) continue; // whose members follow
      CAPTURE(path);
      const auto other = other_words.find(path);
      CHECK(has_path(program, other == other_words.end() ? tail_of(path) : other->second));
      ++seen;
    }
    for (const auto& path : paths_after(text, "return field(s).")) {
      CAPTURE(path);
      bool read = false;
      for (const char* pool :
           {"pool.", "pool_of(options, role).", "pool_of(options, group).", "pools.attention."})
        read = read || has_path(program, pool + path);
      CHECK(read);
      ++seen;
    }
  }
  CHECK(seen > 50);
  // The search itself: what is only told or explained is not read.
  const auto sample = words_of("f(\"limits.none\"); // limits.none\nreturn x->limits.some;");
  CHECK_FALSE(has_path(sample, "limits.none"));
  CHECK(has_path(sample, "limits.some"));
  CHECK_FALSE(has_path(sample, "limits.so"));
}
