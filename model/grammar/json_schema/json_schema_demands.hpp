/// What must hold of one value: schemas that hold together, taken apart.
#pragma once

#include "model/grammar/json_schema/json_schema_keywords.hpp"
#include "model/grammar/json_schema/json_schema_references.hpp"

#include <bitset>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace lamella::model {

/// One of the things that must hold of a value.
struct demand {
  enum class part : uint8_t {
    whole,       ///< the schema
    refuted,     ///< not the schema
    own,         ///< what its keywords say themselves, without those below
    any_of,      ///< one of its anyOf at least
    one_of,      ///< one of its oneOf, and no other
    conditional, ///< then, where if holds, and otherwise else
    dependent    ///< the index-th member of `keyword`: dependentRequired, dependentSchemas …
  };
  static constexpr uint32_t members_max = 1 << 20; ///< beyond them `index` tells the keyword

  schema_place place;
  part what = part::whole;
  uint32_t index = 0;
  const char* keyword = "";

  friend bool operator==(const demand& a, const demand& b) {
    return a.place.schema == b.place.schema && a.what == b.what && a.index == b.index;
  }
};

struct demand_hash {
  size_t operator()(const demand& x) const {
    const auto at = reinterpret_cast<uintptr_t>(x.place.schema);
    return (at >> 3) * 0x9E3779B97F4A7C15ull + static_cast<size_t>(x.what) * 131 + x.index * 7919;
  }
};

/// In the order in which they were met, each once.
using demands = std::vector<demand>;

/// The same for the same demands in any order.
std::string key_of(const demands& all);

/// A bit for each type; number stands for numbers that have a fraction.
constexpr size_t types_count = 7;
using type_set = std::bitset<types_count>;
type_set set_of(const std::vector<json_type>& types);
/// What `type` of the schema says.
type_set types_of(const schema_view& x);
/// Is one of its constants an object or an array? What refutes such a schema is narrower than its
/// opposite, and must not be taken for all that may be there.
bool has_container_constants(const json_value& schema);
inline size_t bit_of(json_type type) { return static_cast<size_t>(type); }

/// What schemas come to once $ref and allOf are followed.
struct flat_demands {
  demands all;             ///< no whole ones
  schema_place impossible; ///< with a schema: no value is possible, as said there
  std::string why;
};

} // namespace lamella::model
