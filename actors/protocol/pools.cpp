#include "actors/protocol/pools.hpp"

#include "actors/protocol/error.hpp"
#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/system_config.hpp"

LAMELLA_POOLS_MESSAGES(LAMELLA_MADE_HERE)

namespace lamella::actors {

bool passes_by_itself(const caf::error& refusal, const std::string& text) {
  if (refusal != ec::resize_refused && refusal != ec::nobody_there) return true;
  const auto has = [&](const char* reason) { return text.find(reason) != std::string::npos; };
  return has(other_change) || has(not_started) || has(no_epoch);
}

void system_config::add_pools() { LAMELLA_POOLS_MESSAGES(LAMELLA_REGISTER) }

} // namespace lamella::actors
