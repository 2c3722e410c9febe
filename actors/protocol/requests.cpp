#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/tokens.hpp"

LAMELLA_ADMISSION_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_BATCHES_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_TOKENS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_requests() {
  LAMELLA_ADMISSION_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_BATCHES_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_TOKENS_MESSAGES(LAMELLA_REGISTER)
}

} // namespace lamella::actors
