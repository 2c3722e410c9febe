// No function is longer than a screen.
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

using namespace lamella::house;

namespace {

constexpr size_t most_lines = 60;

/// The functions that are longer today, by file and the line that they may not outgrow. Entries go,
/// none comes.
const std::multimap<std::string, size_t> longer{
    {"gpu/cuda/attention/attention_rows.cu", 71},
    {"gpu/cuda/bench/step_bench.cpp", 143},
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Code without comments, directives and what is in quotes; every line break stays.
class bare_code {
public:
  explicit bare_code(std::string_view code) : code_{code} {
    while (at_ < code_.size()) step();
  }
  std::string take() { return std::move(out_); }

private:
  bool next(std::string_view word) const { return code_.substr(at_).starts_with(word); }
  bool behind_word() const { return at_ > 0 && is_word(code_[at_ - 1]); }
  /// Leaves out all before `end`, but for line breaks.
  void skip_to(size_t end) {
    for (end = std::min(end, code_.size()); at_ < end; ++at_)
      if (code_[at_] == '\n') out_ += '\n';
  }
  void skip_quoted(char quote) {
    size_t end = at_ + 1;
    while (end < code_.size() && code_[end] != quote) end += code_[end] == '\\' ? 2 : 1;
    skip_to(end + 1);
    out_ += quote;
  }
  void skip_raw_string() {
    const auto open = code_.find('(', at_);
    const auto close = ")" + std::string{code_.substr(at_ + 2, open - at_ - 2)} + "\"";
    skip_to(code_.find(close, open) + close.size());
  }
  void skip_directive() {
    while (at_ < code_.size() && code_[at_] != '\n') skip_to(at_ + (code_[at_] == '\\' ? 2 : 1));
  }
  void step() {
    if (next("//"))
      skip_to(code_.find('\n', at_));
    else if (next("/*"))
      skip_to(code_.find("*/", at_ + 2) + 2);
    else if (next("R\"") && !behind_word())
      skip_raw_string();
    else if (code_[at_] == '"' || (code_[at_] == '\'' && !behind_word()))
      skip_quoted(code_[at_]);
    else if (code_[at_] == '#' && (at_ == 0 || code_[at_ - 1] == '\n'))
      skip_directive();
    else
      out_ += code_[at_++];
  }

  std::string_view code_;
  size_t at_ = 0;
  std::string out_;
};

/// Does a brace behind this text begin a namespace or a type?
bool begins_scope(std::string_view head) {
  if (head.find_first_of("()=") != head.npos) return false;
  for (const std::string_view word : {"namespace", "extern", "class", "struct", "union", "enum"})
    for (auto at = head.find(word); at != head.npos; at = head.find(word, at + 1)) {
      const bool begins = at == 0 || !is_word(head[at - 1]);
      const auto end = at + word.size();
      if (begins && (end == head.size() || !is_word(head[end]))) return true;
    }
  return false;
}

/// Does a brace behind this text begin a function: are there parameters, and no `=` before them?
bool begins_function(std::string_view head) {
  const auto open = head.find('(');
  return open != head.npos && head.substr(0, open).find('=') == head.npos;
}

struct function {
  size_t line, lines;
};

/// Functions outside of others, from the brace's line to the line of the brace that closes it.
std::vector<function> functions_of(std::string_view source) {
  const auto code = bare_code{source}.take();
  std::vector<function> found;
  size_t line = 1, last = 0, depth = 0, begin = 0; // depth of braces within the function
  for (size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '\n') ++line;
    if (c == '{') {
      const auto head = std::string_view{code}.substr(last, i - last);
      if (depth > 0)
        ++depth;
      else if (!begins_scope(head) && begins_function(head))
        depth = 1, begin = line;
    } else if (c == '}' && depth > 0 && --depth == 0) {
      found.push_back({begin, line - begin + 1});
    }
    if (c == '{' || c == '}' || c == ';') last = i + 1;
  }
  return found;
}

} // namespace

TEST_CASE("the scanner of functions sees where they begin and end") {
  const auto found = functions_of("namespace a {\n"
                                  "struct b { int c{1}; };\n"
                                  "int d(int e) {\n"
                                  "  if (e) { return '}'; } // }\n"
                                  "  return \"}\"[0];\n"
                                  "}\n"
                                  "const int g = [](int h) {\n  return h;\n}(1);\n"
                                  "b::b(int i)\n    : j{i} {\n"
                                  "}\n"
                                  "}\n");
  REQUIRE(found.size() >= 1);
  CHECK(found.at(0).line == 3);
  CHECK(found.at(0).lines == 4);
}

TEST_CASE("no function is longer than 60 lines") {
  auto left = longer;
  size_t seen = 0;
  for (const auto& folder : top_folders)
    for (const auto& file : code_of(folder))
      for (const auto& f : functions_of(text_of(file))) {
        ++seen;
        if (f.lines <= most_lines) continue;
        INFO(name_of(file) << ":" << f.line << ": a function of " << f.lines << " lines");
        const auto [begin, end] = left.equal_range(name_of(file));
        const auto known =
            std::find_if(begin, end, [&](const auto& entry) { return entry.second >= f.lines; });
        CHECK(known != end);
        if (known != end) left.erase(known);
      }
  CHECK(seen > 3000);
  for (const auto& [file, lines] : left) {
    INFO(file << " has no function of up to " << lines << " lines any more: take it off the list");
    CHECK(false);
  }
}
