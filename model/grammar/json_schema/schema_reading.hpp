/// How a JSON Schema is read.
#pragma once

#include <cstdint>

namespace lamella::model {

/// What a schema means where it says nothing. `usual`: what people who wrote it mean, no members
/// but those that are named, and values of the type that its keywords are about. `standard`:
/// anything.
enum class schema_reading : uint8_t { usual, standard };

} // namespace lamella::model
