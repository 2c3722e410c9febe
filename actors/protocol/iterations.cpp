#include "actors/protocol/iterations.hpp"

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/system_config.hpp"

LAMELLA_ITERATIONS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_iterations() { LAMELLA_ITERATIONS_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
