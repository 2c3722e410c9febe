#include "actors/protocol/join.hpp"

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/values.hpp"

LAMELLA_JOIN_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_join() { LAMELLA_JOIN_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
