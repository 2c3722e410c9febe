/// The command lines of worker processes that a service starts.
#pragma once

#include "actors/worker/child_keeper.hpp"
#include "config/settings.hpp"

#include <string>

namespace lamella::actors {

/// For the worker of that seat. `program` is empty: this process's; `port`: of the door.
child_command child_of(const config::settings& options, const scheduler::seat& where,
                       std::string program, uint16_t port);

} // namespace lamella::actors
