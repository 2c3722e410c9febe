#include "config/inputs.hpp"

namespace lamella::config {

std::string problem::text() const {
  std::string line = source;
  if (at.line != 0) line += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  if (!key.empty()) line += ": " + key;
  return line + ": " + message;
}

std::string origin::text() const {
  return at.line == 0 ? source : source + ":" + std::to_string(at.line);
}

} // namespace lamella::config
