// What schemas that hold together say about the members of an object. `additionalProperties` is
// about the members that its own schema does not name, whatever other schemas do.
#include "model/grammar/json_schema/json_schema_compiler.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

constexpr size_t name_bytes_max = 256;

} // namespace

class json_schema_compiler::part_of_object {
public:
  explicit part_of_object(const schema_view& x) : view_{x} {
    if (x.has("type") && !is_among(json_type::object, x.types()))
      x.fail("type", "must be object: allOf of several schemas is only supported for objects");
    if (const auto* named = x.object("properties"))
      for (const auto& [name, schema] : *named) {
        check(name, "properties");
        properties_.emplace(name, &schema);
        names_.push_back(&name);
      }
    if (const auto* required = x.find("required")) {
      const auto* names = required->get_if<json_value::array>();
      if (names == nullptr) x.fail("required", "must be an array of names");
      for (const auto& name : *names) {
        const auto* text = name.get_if<std::string>();
        if (text == nullptr) x.fail("required", "must be an array of names");
        check(*text, "required");
        required_.push_back(text);
      }
    }
    // What additionalProperties is about is evaluated.
    for (const auto* keyword : {"additionalProperties", "unevaluatedProperties"})
      if (const auto* schema = x.find(keyword); schema != nullptr && others_.schema == nullptr)
        others_ = {schema, x.below(keyword)};
  }

  const std::vector<const std::string*>& names() const { return names_; }
  const std::vector<const std::string*>& required() const { return required_; }
  std::string required_pointer() const { return view_.below("required"); }
  const schema_place& others() const { return others_; }

  /// The schema of the member; none: nothing is said.
  schema_place of(const std::string& name) const {
    const auto found = properties_.find(name);
    if (found == properties_.end()) return others_;
    return {found->second, view_.below("properties") + "/" + pointer_part(name)};
  }

private:
  void check(const std::string& name, std::string_view keyword) const {
    if (name.size() > name_bytes_max)
      view_.fail(keyword, "has a name of more than " + std::to_string(name_bytes_max) + " bytes");
  }

  schema_view view_;
  std::unordered_map<std::string_view, const json_value*> properties_;
  std::vector<const std::string*> names_, required_; ///< in their order
  schema_place others_;
};

/// The one schema that says what all of them say; an error where that takes more than one.
schema_place json_schema_compiler::both(const std::vector<schema_place>& said) {
  const auto none = std::find_if(said.begin(), said.end(), is_false);
  if (none != said.end()) return *none;
  schema_place result;
  for (const auto& place : said) {
    if (place.schema == nullptr || place.schema == result.schema) continue;
    if (result.schema == nullptr || takes_anything(*result.schema))
      result = place;
    else if (!takes_anything(*place.schema))
      throw json_schema_error(place.pointer, "is not supported: " + result.pointer
                                                 + ", another part of allOf, is about the same "
                                                   "members");
  }
  return result;
}

json_schema_compiler::object_members
json_schema_compiler::members_of(const std::vector<schema_view>& schemas) {
  std::vector<part_of_object> parts(schemas.begin(), schemas.end());
  object_members result;
  std::unordered_map<std::string_view, size_t> known;
  const auto property = [&](const std::string& name) -> object_members::property& {
    const auto [at, is_new] = known.emplace(name, result.properties.size());
    if (is_new) result.properties.push_back({name, {}, {}});
    return result.properties[at->second];
  };
  for (const auto& part : parts)
    for (const auto* name : part.names()) property(*name);
  for (const auto& part : parts)
    for (const auto* name : part.required())
      if (auto& p = property(*name); p.required.empty()) p.required = part.required_pointer();
  for (auto& p : result.properties) {
    std::vector<schema_place> said;
    for (const auto& part : parts) said.push_back(part.of(p.name));
    p.value = both(said);
    spend(schemas.back().pointer(), parts.size());
    if (!p.required.empty() && p.impossible())
      throw json_schema_error(p.required, "has " + p.name + ", for which " + p.value.pointer
                                              + " allows no value");
  }
  std::vector<schema_place> said;
  for (const auto& part : parts) said.push_back(part.others());
  result.others = both(said);
  return result;
}

} // namespace lamella::model
