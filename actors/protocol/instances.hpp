/// Templates whose code is made once, in instances.cpp, and not in every file that uses them: CAF
/// has it made wherever a message is sent or taken (how it is copied, written, read and told), fmt
/// 9 wherever a line is logged. Part of the precompiled headers; nothing else needs it.
#pragma once

#include "actors/protocol/actors.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

// clang-format off
/// Calls x(type) for messages that several files send or take. One that is missing costs time alone.
#define LAMELLA_EACH_MESSAGE(x)                                                                    \
  x(row_span) x(iteration_launch) x(sampled_of) x(sampled) x(iteration_failed)                     \
  x(kv_reserve) x(kv_grant) x(kv_release) x(kv_filled) x(kv_doubt) x(kv_freed) x(kv_trim) x(kv_adopt) x(kv_usage)           \
  x(kv_inventory_ask) x(kv_inventory) x(kv_sweep) x(kv_swept) x(kv_protection) x(kv_check)         \
  x(kv_checked) x(kv_pull) x(kv_offer) x(kv_moved) x(kv_pull_cancel) x(kv_rebuilding)              \
  x(admit) x(admitted) x(withdraw) x(retire) x(prefill) x(prefilled) x(prefill_cancel)             \
  x(token) x(preempted) x(sequence_failed) x(batch_join) x(batch_leave) x(batch_ready)             \
  x(worker_info) x(system_status) x(join_ask) x(join_challenge) x(join_proof) x(join_grant)        \
  x(seat_ask) x(worker_facts) x(epoch_open) x(epoch_ready) x(epoch_close) x(epoch_members)         \
  x(work_done) x(stage_report) x(worker_peers) x(worker_leave) x(worker_injury) x(injure)
// clang-format on

#define LAMELLA_MESSAGE_CODE(where, type)                                                          \
  where template class caf::detail::tuple_vals_impl<caf::detail::message_data,                     \
                                                    lamella::actors::type>;                        \
  where template class caf::detail::tuple_vals_impl<caf::type_erased_tuple,                        \
                                                    lamella::actors::type>;                        \
  where template class caf::detail::tuple_vals<lamella::actors::type>;                             \
  where template class caf::detail::type_erased_value_impl<lamella::actors::type>;

#define LAMELLA_CODE_ELSEWHERE(type) LAMELLA_MESSAGE_CODE(extern, type)
LAMELLA_EACH_MESSAGE(LAMELLA_CODE_ELSEWHERE)
#undef LAMELLA_CODE_ELSEWHERE

#if FMT_VERSION < 100000 // later ones have it in their library
#define LAMELLA_FORMAT_CODE(where)                                                                 \
  where template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,  \
                                                    fmt::format_args, fmt::detail::locale_ref);
#else
#define LAMELLA_FORMAT_CODE(where)
#endif
LAMELLA_FORMAT_CODE(extern)
