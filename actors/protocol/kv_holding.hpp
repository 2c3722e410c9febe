/// What a sequence asks KV for and what it gets: parts of messages about KV and requests.
#pragma once

#include "actors/protocol/message.hpp"
#include "actors/protocol/values.hpp"
#include "scheduler/kv/kv_values.hpp"

namespace lamella::actors {

using scheduler::kv_holding;
using scheduler::kv_text;

} // namespace lamella::actors
LAMELLA_PART(kv_text)
LAMELLA_PART(kv_holding)
