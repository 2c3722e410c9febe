/// Why a choice has ended.
#pragma once

#include <cstdint>

namespace lamella::scheduler {

/// Finish reason of a choice: not finished; one of its end tokens; its maximum length.
enum class finish : uint8_t { none, stop, length };

} // namespace lamella::scheduler
