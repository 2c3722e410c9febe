#include "actors/protocol/prefills.hpp"

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/protocol/system_config.hpp"

LAMELLA_PREFILLS_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_PULLS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_prefills() {
  LAMELLA_PREFILLS_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_PULLS_MESSAGES(LAMELLA_REGISTER)
}

} // namespace lamella::actors
