/// The words of `lamella_failovers_total{cause}`, which events use as well.
#pragma once

#include <string_view>

namespace lamella::net {

/// By failover_cause (net/metrics/metrics.hpp).
inline constexpr std::string_view failover_words[] = {
    "exit", "timeout", "deadline", "partition", "integrity", "slow", "fault", "operator"};

} // namespace lamella::net
