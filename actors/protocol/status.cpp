#include "actors/protocol/status.hpp"

#include "actors/protocol/system_config.hpp"

LAMELLA_STATUS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_status() { LAMELLA_STATUS_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
