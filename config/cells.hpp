/// Attention cells: the rules between their options.
#pragma once

#include "config/settings.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lamella::config {

/// Of a pool at most; those without members count.
constexpr size_t cells_most = 32;

/// Adds what is wrong with the members of a pool or cell (`what`) and the bounds of its autoscaler.
void check_members_between(const std::string& what, const std::string& key, const pool_settings& p,
                           std::vector<rule_violation>& found);

/// Adds what is wrong with the cells of an attention pool. They may differ in their size, in that
/// of their KV, in device, partition, placement, threads, spares, parity, and in what the
/// autoscaler may make of them, and need one member at least.
void check_cells(const attention_pools_settings& pool, std::vector<rule_violation>& found);

/// The one cell that a pool without named ones is, where it is by heads: the first of those that
/// come.
constexpr const char* cell_of_whole_pool = "main";

/// Gives the cells of `changed`, which has those in force, what a running service can take of
/// `wanted`: the live keys of each; all keys of those that have no members; new cells, behind the
/// others; and no members for cells that are wanted no more. A pool by heads without cells is one
/// then, where the service can take all that are wanted. Cells do not become a pool without any.
/// Returns the names of cells that are new or got more than live keys.
std::vector<std::string> take_cells(const settings& in_force, settings& changed,
                                    const attention_pools_settings& wanted);

} // namespace lamella::config
