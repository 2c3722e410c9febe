#include "model/grammar/json_schema/json_schema_demands.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace lamella::model {

std::string key_of(const demands& all) {
  using one = std::tuple<uintptr_t, uint32_t, uint32_t>;
  std::vector<one> parts;
  for (const auto& x : all)
    parts.emplace_back(reinterpret_cast<uintptr_t>(x.place.schema), static_cast<uint32_t>(x.what),
                       x.index);
  std::sort(parts.begin(), parts.end());
  std::string key;
  for (const auto& [schema, what, index] : parts) {
    key.append(reinterpret_cast<const char*>(&schema), sizeof schema);
    key += static_cast<char>(what);
    key.append(reinterpret_cast<const char*>(&index), sizeof index);
  }
  return key;
}

type_set set_of(const std::vector<json_type>& types) {
  type_set set;
  for (const auto t : types) {
    set.set(bit_of(t));
    if (t == json_type::number) set.set(bit_of(json_type::integer));
  }
  return set;
}

type_set types_of(const schema_view& x) {
  auto set = set_of(x.types());
  if (x.has(no_integers)) set.reset(bit_of(json_type::integer));
  return set;
}

bool has_container_constants(const json_value& schema) {
  const auto is_container = [](const json_value& x) {
    return x.get_if<json_value::object>() != nullptr || x.get_if<json_value::array>() != nullptr;
  };
  const auto *one = schema.find("const"), *list = schema.find("enum");
  const auto* items = list != nullptr ? list->get_if<json_value::array>() : nullptr;
  return (one != nullptr && is_container(*one))
         || (items != nullptr && std::any_of(items->begin(), items->end(), is_container));
}

} // namespace lamella::model
