#include "actors/protocol/pulls.hpp"

#include "actors/protocol/system_config.hpp"

LAMELLA_PULLS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_pulls() { LAMELLA_PULLS_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
