/// Tables of the client commands, and what they are made of.
#pragma once

#include "base/json.hpp"
#include "cli/client.hpp"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::cli {

/// Columns as wide as their widest cell.
class table {
public:
  explicit table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }

  /// Line by line, each with its end.
  std::string text() const {
    std::vector<size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string all;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i)
        line +=
            i + 1 == row.size() ? row[i] : row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
      all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return all;
  }

private:
  std::vector<std::vector<std::string>> rows_;
};

/// The whole number at a path, as text; "0" where there is none.
inline std::string count_of(const json_value& from, std::initializer_list<std::string_view> path) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", number_or(find_path(from, path), 0));
  return text;
}

/// The list of that name; empty where there is none.
inline const json_value::array& items_of(const json_value& from, std::string_view name) {
  static const json_value::array none;
  const auto* found = from.find(name);
  const auto* items = found == nullptr ? nullptr : found->get_if<json_value::array>();
  return items == nullptr ? none : *items;
}

} // namespace lamella::cli
