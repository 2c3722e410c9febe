/// Whether two batches can overlap: one at a replica while the other is at the shards.
#pragma once

#include "config/settings.hpp"

#include <string>

namespace lamella::actors {

/// Why the pools as configured cannot work at the same time, in words; empty: they can. Replicas
/// and shards must not compute on the same processors or device. Those of other hosts do not, nor
/// do child processes whose threads together are no more than `processors`.
std::string why_no_overlap(const config::settings& options, unsigned processors);

} // namespace lamella::actors
