/// The status of the system as stable JSON (decisions, Interfaces).
#pragma once

#include "actors/protocol/actors.hpp"

#include <cstdint>
#include <string>

namespace lamella::actors {

/// `recovering`: requests paused by a loss.
std::string status_json(const system_status& x, uint64_t recovering);

} // namespace lamella::actors
