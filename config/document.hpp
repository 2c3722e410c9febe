/// A YAML text as a small tree with positions, within the limits of a configuration file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::config {

/// Where something was written; line and column count from 1, 0 means unknown.
struct position {
  uint32_t line = 0;
  uint32_t column = 0;
};

struct node {
  enum class kind : uint8_t { null, scalar, list, map };
  struct entry;

  kind type = kind::null;
  position at;
  std::string text;         ///< of a scalar
  std::vector<node> items;  ///< of a list
  std::vector<entry> pairs; ///< of a map, in the order of the file
};

struct node::entry {
  std::string key;
  position at; ///< of the key
  node item;
};

struct document_problem {
  position at;
  std::string message;
};

constexpr size_t document_bytes_max = 1 << 20;
constexpr int document_depth_max = 16;
constexpr int document_values_max = 8192; ///< with keys

/// Reads one YAML document. Refused, each with its position: texts over 1 MiB, more than 16 levels
/// or 8192 values, anchors, aliases and tags (a small file could expand without end), keys that are
/// not plain words or are there twice, a second document. Problems are appended; the tree then
/// holds what could be read. An empty text is a null node.
node parse_document(std::string_view text, std::vector<document_problem>& problems);

} // namespace lamella::config
