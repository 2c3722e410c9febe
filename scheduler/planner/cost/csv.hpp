/// Tables from outside as comma-separated text: bounded, checked, errors with line numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::scheduler {

/// A table cannot be used. what() begins with "line N: " where a line is to blame.
struct table_error : std::runtime_error {
  explicit table_error(const std::string& what) : std::runtime_error{what} {}
  table_error(size_t line, const std::string& what)
      : std::runtime_error{"line " + std::to_string(line) + ": " + what} {}
};

/// Passes over the mark that some programs write before UTF-8 text. Throws table_error at half a
/// mark.
void pass_over_mark(std::istream& in);

/// The longest line of a table or a trace that is read.
constexpr size_t table_line_bytes_max = 1 << 20;

/// Takes the next line without its end, for which `line` is the number in errors. False at the end.
/// Throws table_error beyond table_line_bytes_max, before the rest of such a line is read.
bool read_table_line(std::istream& in, std::string& text, size_t line);

/// Reads row after row. Fields may be quoted ("" is a quote); lines end in \n or \r\n; empty lines
/// and lines that start with # are passed over. The first row names the columns.
class csv_reader {
public:
  /// Reads the header. Throws table_error.
  explicit csv_reader(std::istream& in);

  /// The next row, or false at the end. Throws table_error when its width is not the header's.
  bool next();

  /// Where a column stands; nothing when there is none of the name.
  std::optional<size_t> find(std::string_view column) const;
  /// The same; throws table_error naming the column and those there are.
  size_t column(std::string_view column) const;

  const std::vector<std::string>& columns() const { return columns_; }
  const std::string& text(size_t column) const { return fields_[column]; }
  bool empty(size_t column) const { return fields_[column].empty(); }

  /// A finite number within [least, most]; throws table_error.
  double number(size_t column, double least, double most) const;
  /// A whole number within [least, most]; throws table_error.
  uint64_t whole(size_t column, uint64_t least, uint64_t most) const;

  size_t line() const { return line_; }

private:
  bool read_line();
  void split();

  std::istream& in_;
  std::vector<std::string> columns_, fields_;
  std::string text_;
  size_t line_ = 0;
};

} // namespace lamella::scheduler
