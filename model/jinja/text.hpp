/// The strings of the template interpreter: UTF-8 bytes that remember where they came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::model::jinja {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A string whose characters are trusted (written in the template) or not (from the request). Every
/// operation keeps the mark of each byte, so that text of a user never becomes a control token,
/// whatever the template does to it. Positions are bytes; the functions below turn characters into
/// bytes.
class text {
public:
  /// A stretch with one mark; it ends before byte `end`.
  struct run {
    size_t end;
    bool trusted;
  };

  text() = default;
  text(std::string_view bytes, bool trusted) { append(bytes, trusted); }

  const std::string& bytes() const { return bytes_; }
  const std::vector<run>& runs() const { return runs_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  void append(std::string_view bytes, bool trusted);
  void append(const text& other) { append_range(other, 0, other.size()); }

  /// Text that |safe or |escape made: what is added to it is escaped for HTML. What is made of it
  /// by the functions of this class is not markup unless it is told to be.
  bool is_markup() const { return is_markup_; }
  text as_markup(bool is = true) const {
    text out = *this;
    out.is_markup_ = is;
    return out;
  }

  /// Bytes [from, to) of another text, marks included.
  void append_range(const text& other, size_t from, size_t to);

  /// Bytes [from, to) as a text of their own.
  text part(size_t from, size_t to) const;

  /// Each run through a function of its own bytes, such as a change of case.
  template <class F> text mapped(F f) const {
    text out;
    size_t from = 0;
    for (const auto& r : runs_) {
      out.append(f(std::string_view{bytes_}.substr(from, r.end - from)), r.trusted);
      from = r.end;
    }
    return out;
  }

private:
  std::string bytes_;
  std::vector<run> runs_; ///< cover the bytes; neighbours differ
  bool is_markup_ = false;
};

/// Length in bytes of the character that starts at `at`; 1 for a stray byte, so that scanning
/// always moves.
size_t character_bytes(std::string_view bytes, size_t at);

/// Number of characters.
size_t character_count(std::string_view bytes);

/// Byte position of each character, and the size at the end.
std::vector<size_t> character_positions(std::string_view bytes);

/// The code point at `at`; a stray byte is its own value.
char32_t character_at(std::string_view bytes, size_t at);

/// Appends a code point as UTF-8.
void append_utf8(std::string& out, char32_t c);

/// White space as Python's str.isspace sees it.
bool is_space(char32_t c);

/// Byte range without the white space (or the characters of `set`) at the ends asked for.
struct byte_range {
  size_t from;
  size_t to;
};
byte_range strip(std::string_view bytes, bool left, bool right, const std::string* set = nullptr);

/// Case mappings of whole strings (full Unicode mappings, no language).
std::string to_upper(std::string_view bytes);
std::string to_lower(std::string_view bytes);

/// First letter of each word upper, others lower; words are runs of letters.
std::string to_title(std::string_view bytes);

/// First character upper, others lower.
std::string to_capitalized(std::string_view bytes);

/// Byte ranges of the lines, without their ends, cut where Python's str.splitlines cuts.
std::vector<byte_range> lines_of(std::string_view bytes, bool keep_ends);

/// The characters & < > ' and " as HTML writes them; markup stays as it is.
text escaped(const text& x);

/// A letter, digit or number, as Python's str.isalnum sees it.
bool is_alphanumeric(char32_t c);

/// True for characters Python shows as they are in repr().
bool is_printable(char32_t c);

} // namespace lamella::model::jinja
