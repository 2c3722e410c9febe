#include "net/http/http_exchange.hpp"

#include <algorithm>

namespace lamella::net {

namespace {

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) {
           return lower(x) == lower(y);
         });
}

} // namespace

void http_headers::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

void http_headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const http_header& field) { return same_name(field.name, name); });
  add(std::move(name), std::move(value));
}

const std::string* http_headers::find(std::string_view name) const {
  for (const http_header& field : fields_)
    if (same_name(field.name, name)) return &field.value;
  return nullptr;
}

std::string_view http_headers::get(std::string_view name, std::string_view otherwise) const {
  const std::string* value = find(name);
  return value ? std::string_view(*value) : otherwise;
}

size_t http_headers::count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(fields_.begin(), fields_.end(),
                    [&](const http_header& field) { return same_name(field.name, name); }));
}

} // namespace lamella::net
