#include "actors/protocol/requests.hpp"

#include "actors/protocol/system_config.hpp"

LAMELLA_REQUESTS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_requests() { LAMELLA_REQUESTS_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
