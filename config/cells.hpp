/// Attention cells: the rules between their options.
#pragma once

#include "config/settings.hpp"

#include <vector>

namespace lamella::config {

/// Adds what is wrong with the cells of an attention pool. They may differ in their size, in that
/// of their KV, in device, partition, placement, threads, spares, parity, and in what the
/// autoscaler may make of them, and need one member at least.
void check_cells(const attention_pools_settings& pool, std::vector<rule_violation>& found);

} // namespace lamella::config
