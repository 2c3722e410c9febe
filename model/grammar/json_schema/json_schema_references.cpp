#include "model/grammar/json_schema/json_schema_references.hpp"

#include "base/json_writer.hpp"
#include "model/grammar/json_schema/uri_reference.hpp"

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

const schema_resources& schema_references::resources() {
  if (!resources_) resources_.emplace(root_);
  return *resources_;
}

schema_references::found_target schema_references::target(const schema_view& x,
                                                          std::string_view keyword) {
  const auto reference = x.text(keyword).value_or("");
  const auto* resource = &resources().around(x.pointer());
  if (!reference.starts_with('#')) {
    const auto uri = resolved_uri(resource->uri, reference);
    resource = resources().named(uri);
    if (resource == nullptr)
      x.fail(keyword, "points at nothing in the schema: no part of it, or more than one, has the "
                      "$id "
                          + to_json(json_value(uri))
                          + "; other documents are not loaded, put them under $defs");
  }
  const auto& root = resource->root;
  const auto fragment = percent_decoded(fragment_of(reference));
  const auto where =
      root.pointer.empty() ? std::string("the schema") : root.pointer + ", which has an $id";
  if (fragment && (fragment->empty() || fragment->starts_with('/'))) {
    if (const auto* found = find(*root.schema, *fragment))
      return {{found, root.pointer + *fragment}, resource, ""};
  } else if (fragment) {
    const auto known = resource->anchors.find(*fragment);
    if (known != resource->anchors.end() && known->second.schema != nullptr)
      return {known->second, resource, *fragment};
    if (known != resource->anchors.end())
      x.fail(keyword, "names an anchor that is twice in " + where);
  }
  x.fail(keyword, "points at nothing in " + where
                      + "; references like #/$defs/NAME, anchors and URIs of an $id are read");
}

schema_place schema_references::dynamic_target(const schema_view& x) {
  const auto found = target(x, "$dynamicRef");
  const auto& own = found.resource->dynamic_anchors;
  if (found.anchor.empty() || !own.contains(found.anchor)) return found.place;
  const auto& of_document = resources().all().front().dynamic_anchors;
  const auto outermost = of_document.find(found.anchor);
  if (outermost != of_document.end() && outermost->second.schema != nullptr)
    return outermost->second; // every way begins there
  for (const auto& other : resources().all())
    if (&other != found.resource && other.dynamic_anchors.contains(found.anchor))
      x.fail("$dynamicRef",
             "is not supported here: what it points at depends on the way to it, for "
             "more than one $id has that $dynamicAnchor, and the schema itself has "
             "it not");
  return found.place;
}

schema_place schema_references::recursive_target(const schema_view& x) {
  if (x.text("$recursiveRef") != "#") x.fail("$recursiveRef", "must be \"#\"");
  const auto& around = resources().around(x.pointer());
  const auto& document = resources().all().front();
  if (!around.is_recursive) return around.root;
  if (document.is_recursive) return document.root;
  for (const auto& other : resources().all())
    if (&other != &around && other.is_recursive)
      x.fail("$recursiveRef", "is not supported here: what it points at depends on the way to it, "
                              "for more than one $id has a $recursiveAnchor, and the schema itself "
                              "has none");
  return around.root;
}

std::vector<schema_place> schema_references::targets(const schema_view& x) {
  std::vector<schema_place> found;
  if (x.has("$ref")) found.push_back(target(x, "$ref").place);
  if (x.has("$dynamicRef")) found.push_back(dynamic_target(x));
  if (x.has("$recursiveRef")) found.push_back(recursive_target(x));
  return found;
}

/// Those that point at nothing are met, if they matter, where they hold.
void schema_references::note_targets() {
  all_targets_.emplace();
  for (const auto& place : resources().with_references()) {
    try {
      for (const auto& one : targets({*place.schema, place.pointer}))
        all_targets_->push_back(one.pointer);
    } catch (const json_schema_error&) {
      continue;
    }
  }
  std::sort(all_targets_->begin(), all_targets_->end());
}

bool schema_references::is_referred_to(const schema_place& place) {
  if (!all_targets_) note_targets();
  const auto first_from = [&](const std::string& pointer) {
    return std::lower_bound(all_targets_->begin(), all_targets_->end(), pointer);
  };
  const auto at = first_from(place.pointer);
  if (at != all_targets_->end() && *at == place.pointer) return true;
  const auto below = first_from(place.pointer + "/");
  return below != all_targets_->end() && below->starts_with(place.pointer + "/");
}

} // namespace lamella::model
