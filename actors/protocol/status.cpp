#include "actors/protocol/status.hpp"

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/watches.hpp"

LAMELLA_STATUS_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_SUPERVISORS_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_WATCHES_MESSAGES(LAMELLA_MADE_HERE)
LAMELLA_WORK_REPORTS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

void system_config::add_status() {
  LAMELLA_STATUS_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_SUPERVISORS_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_WATCHES_MESSAGES(LAMELLA_REGISTER)
  LAMELLA_WORK_REPORTS_MESSAGES(LAMELLA_REGISTER)
}

} // namespace lamella::actors
