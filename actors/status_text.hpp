/// The status of the system as stable JSON (decisions, Interfaces).
#pragma once

#include "actors/messages.hpp"

#include <string>

namespace lamella::actors {

std::string status_json(const system_status& x);

} // namespace lamella::actors
