#include "actors/protocol/epochs.hpp"

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/workers.hpp"

LAMELLA_EPOCHS_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_WORKERS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_epochs() {
  LAMELLA_EPOCHS_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_WORKERS_MESSAGES(LAMELLA_REGISTER)
}

} // namespace lamella::actors
