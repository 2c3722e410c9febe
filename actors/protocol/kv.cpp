#include "actors/protocol/kv.hpp"

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/moves.hpp"
#include "actors/protocol/system_config.hpp"

LAMELLA_KV_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_MOVES_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_kv() { LAMELLA_KV_MESSAGES(LAMELLA_REGISTER) }
void system_config::add_moves() { LAMELLA_MOVES_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
