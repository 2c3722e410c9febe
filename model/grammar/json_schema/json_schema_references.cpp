#include "model/grammar/json_schema/json_schema_references.hpp"

#include <algorithm>
#include <optional>

namespace lamella::model {

namespace {

constexpr size_t scanned_members_max = 16;

int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/// The bytes that a part of a URI stands for (RFC 3986, section 2.1).
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Takes the first name off a JSON pointer that is not empty; nothing where it is none.
std::optional<std::string> take_name(std::string_view& pointer) {
  if (pointer[0] != '/') return {};
  pointer.remove_prefix(1);
  const auto length = std::min(pointer.find('/'), pointer.size());
  std::string name;
  for (size_t i = 0; i < length; ++i) {
    if (pointer[i] != '~') {
      name += pointer[i];
      continue;
    }
    if (++i == length || (pointer[i] != '0' && pointer[i] != '1')) return {};
    name += pointer[i] == '1' ? '/' : '~';
  }
  pointer.remove_prefix(length);
  return name;
}

const json_value* item(const json_value::array& items, const std::string& name) {
  const bool is_index = !name.empty() && name.size() < 10
                        && name.find_first_not_of("0123456789") == name.npos
                        && (name == "0" || name[0] != '0');
  const auto index = is_index ? std::stoul(name) : items.size();
  return index < items.size() ? &items[index] : nullptr;
}

/// Does the schema begin a resource of its own? An `$id` that is a mere fragment was an anchor.
bool begins_resource(const json_value* id) {
  const auto* text = id != nullptr ? id->get_if<std::string>() : nullptr;
  return text != nullptr && !text->starts_with('#');
}

} // namespace

const json_value* schema_references::child(const json_value& of, const std::string& name) {
  if (const auto* items = of.get_if<json_value::array>()) return item(*items, name);
  const auto* members = of.get_if<json_value::object>();
  if (members == nullptr) return nullptr;
  if (members->size() <= scanned_members_max) return of.find(name);
  auto& known = members_[&of];
  if (known.empty())
    for (const auto& [key, value] : *members) known.emplace(key, &value);
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

const json_value* schema_references::find(const json_value& from, std::string_view pointer) {
  const auto* at = &from;
  while (at != nullptr && !pointer.empty()) {
    const auto name = take_name(pointer);
    at = name ? child(*at, *name) : nullptr;
  }
  return at;
}

schema_place schema_references::resource_around(const std::string& pointer) {
  schema_place resource{&root_, ""};
  const auto* at = &root_;
  for (std::string_view left = pointer; !left.empty();) {
    const auto name = take_name(left);
    at = name ? child(*at, *name) : nullptr;
    if (at == nullptr) break;
    if (begins_resource(child(*at, "$id")))
      resource = {at, pointer.substr(0, pointer.size() - left.size())};
  }
  return resource;
}

schema_place schema_references::target(const schema_view& x) {
  const auto ref = x.text("$ref").value_or("");
  const auto pointer =
      ref.starts_with('#') ? percent_decoded(std::string_view{ref}.substr(1)) : std::nullopt;
  const auto resource = resource_around(x.pointer());
  const auto* found = pointer ? find(*resource.schema, *pointer) : nullptr;
  if (found == nullptr)
    x.fail("$ref",
           "points at nothing in "
               + (resource.pointer.empty() ? "the schema" : resource.pointer + ", which has an $id")
               + "; only references like #/$defs/NAME are read");
  return {found, resource.pointer + *pointer};
}

} // namespace lamella::model
