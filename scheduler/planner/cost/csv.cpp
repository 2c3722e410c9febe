#include "scheduler/planner/cost/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lamella::scheduler {

namespace {

/// Outside text as it may be shown: short and without control characters.
std::string shown(std::string_view text) {
  std::string result{text.substr(0, 40)};
  for (auto& c : result)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  if (text.size() > 40) result += "...";
  return "'" + result + "'";
}

std::string plain(double x) {
  const auto text = std::to_string(x);
  const auto end = text.find_last_not_of('0');
  return text.substr(0, text[end] == '.' ? end : end + 1);
}

} // namespace

void pass_over_mark(std::istream& in) {
  if (in.peek() != 0xef) return;
  char mark[3] = {};
  if (!in.read(mark, sizeof mark) || std::string_view{mark, sizeof mark} != "\xef\xbb\xbf")
    throw table_error{1, "a byte that no text begins with"};
}

csv_reader::csv_reader(std::istream& in) : in_{in} {
  pass_over_mark(in);
  if (!read_line()) throw table_error{"the table is empty: not even a header"};
  split();
  columns_ = fields_;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (std::find(columns_.begin(), columns_.begin() + static_cast<long>(i), columns_[i])
        != columns_.begin() + static_cast<long>(i))
      throw table_error{line_, "two columns are named " + shown(columns_[i])};
}

bool csv_reader::next() {
  if (!read_line()) return false;
  split();
  if (fields_.size() != columns_.size())
    throw table_error{line_, std::to_string(fields_.size()) + " fields, the header has "
                                 + std::to_string(columns_.size())};
  return true;
}

bool read_table_line(std::istream& in, std::string& text, size_t line) {
  // getline would read any length before it could be refused.
  text.clear();
  bool any = false;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    any = true;
    if (c == '\n') break;
    if (c == 0) throw table_error{line, "a zero byte: this is not a text file"};
    if (text.size() >= table_line_bytes_max)
      throw table_error{line, "longer than " + std::to_string(table_line_bytes_max) + " bytes"};
    text.push_back(static_cast<char>(c));
  }
  if (in.bad()) throw table_error{line, "the input cannot be read"};
  if (text.ends_with('\r')) text.pop_back();
  return any;
}

bool csv_reader::read_line() {
  do {
    if (!read_table_line(in_, text_, ++line_)) return false;
  } while (text_.empty() || text_.starts_with('#'));
  return true;
}

void csv_reader::split() {
  size_t count = 0;
  const auto field = [&]() -> std::string& {
    if (count == fields_.size()) fields_.emplace_back();
    auto& f = fields_[count++];
    f.clear();
    return f;
  };
  bool quoted = false;
  auto* current = &field();
  for (size_t i = 0; i < text_.size(); ++i) {
    const char c = text_[i];
    if (quoted) {
      if (c != '"') {
        current->push_back(c);
      } else if (i + 1 < text_.size() && text_[i + 1] == '"') {
        current->push_back('"');
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == ',') {
      current = &field();
    } else if (c == '"' && current->empty()) {
      quoted = true;
    } else {
      current->push_back(c);
    }
  }
  if (quoted) throw table_error{line_, "a quote is not closed"};
  fields_.resize(count);
}

std::optional<size_t> csv_reader::find(std::string_view column) const {
  const auto at = std::find(columns_.begin(), columns_.end(), column);
  if (at == columns_.end()) return std::nullopt;
  return static_cast<size_t>(at - columns_.begin());
}

size_t csv_reader::column(std::string_view name) const {
  if (const auto at = find(name)) return *at;
  std::string all;
  for (const auto& x : columns_) all += (all.empty() ? "" : ", ") + shown(x);
  throw table_error{"no column '" + std::string{name} + "', only " + all};
}

double csv_reader::number(size_t column, double least, double most) const {
  const auto& field = fields_[column];
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size() || !std::isfinite(value))
    throw table_error{line_, columns_[column] + ": " + shown(field) + " is not a number"};
  if (value < least || value > most)
    throw table_error{line_, columns_[column] + ": " + shown(field) + " is not within "
                                 + plain(least) + " to " + plain(most)};
  return value;
}

uint64_t csv_reader::whole(size_t column, uint64_t least, uint64_t most) const {
  const auto& field = fields_[column];
  const auto value = number(column, static_cast<double>(least), static_cast<double>(most));
  if (value != std::floor(value))
    throw table_error{line_, columns_[column] + ": " + shown(field) + " is not a whole number"};
  return static_cast<uint64_t>(value);
}

} // namespace lamella::scheduler
