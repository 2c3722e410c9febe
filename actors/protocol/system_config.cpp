#include "actors/protocol/system_config.hpp"

#include "actors/protocol/watch_messages.hpp"

#include "actors/protocol/actors.hpp"

#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>

#include <stdexcept>

namespace lamella::actors {

system_config::system_config(size_t threads) {
  // "stealing" polls while idle and answers remote messages late.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", threads);
  add_message_type<row_span>("lamella::row_span");
  add_message_type<iteration_launch>("lamella::iteration_launch");
  add_message_type<sampled_of>("lamella::sampled_of");
  add_message_type<sampled>("lamella::sampled");
  add_message_type<iteration_failed>("lamella::iteration_failed");
  add_message_type<kv_reserve>("lamella::kv_reserve");
  add_message_type<kv_grant>("lamella::kv_grant");
  add_message_type<kv_release>("lamella::kv_release");
  add_message_type<kv_filled>("lamella::kv_filled");
  add_message_type<kv_doubt>("lamella::kv_doubt");
  add_message_type<kv_freed>("lamella::kv_freed");
  add_message_type<kv_trim>("lamella::kv_trim");
  add_message_type<kv_inventory_ask>("lamella::kv_inventory_ask");
  add_message_type<kv_inventory>("lamella::kv_inventory");
  add_message_type<kv_usage>("lamella::kv_usage");
  add_message_type<kv_sweep>("lamella::kv_sweep");
  add_message_type<kv_swept>("lamella::kv_swept");
  add_message_type<kv_protection>("lamella::kv_protection");
  add_message_type<kv_pulled>("lamella::kv_pulled");
  add_message_type<kv_check>("lamella::kv_check");
  add_message_type<kv_checked>("lamella::kv_checked");
  add_message_type<kv_pull>("lamella::kv_pull");
  add_message_type<kv_offer>("lamella::kv_offer");
  add_message_type<kv_moved>("lamella::kv_moved");
  add_message_type<kv_pull_cancel>("lamella::kv_pull_cancel");
  add_message_type<admit>("lamella::admit");
  add_message_type<admitted>("lamella::admitted");
  add_message_type<withdraw>("lamella::withdraw");
  add_message_type<retire>("lamella::retire");
  add_message_type<prefill_begun>("lamella::prefill_begun");
  add_message_type<prefill>("lamella::prefill");
  add_message_type<prefilled>("lamella::prefilled");
  add_message_type<prefill_cancel>("lamella::prefill_cancel");
  add_message_type<kv_rebuilding>("lamella::kv_rebuilding");
  add_message_type<token>("lamella::token");
  add_message_type<preempted>("lamella::preempted");
  add_message_type<sequence_failed>("lamella::sequence_failed");
  add_message_type<batch_join>("lamella::batch_join");
  add_message_type<batch_leave>("lamella::batch_leave");
  add_message_type<worker_info>("lamella::worker_info");
  add_message_type<system_status>("lamella::system_status");
  add_message_type<join_ask>("lamella::join_ask");
  add_message_type<join_challenge>("lamella::join_challenge");
  add_message_type<join_proof>("lamella::join_proof");
  add_message_type<join_grant>("lamella::join_grant");
  add_message_type<worker_facts>("lamella::worker_facts");
  add_message_type<epoch_open>("lamella::epoch_open");
  add_message_type<epoch_ready>("lamella::epoch_ready");
  add_message_type<epoch_close>("lamella::epoch_close");
  add_message_type<work_done>("lamella::work_done");
  add_message_type<stage_report>("lamella::stage_report");
  add_message_type<worker_peers>("lamella::worker_peers");
  add_message_type<watch_order>("lamella::watch_order");
  add_message_type<watch_report>("lamella::watch_report");
  add_message_type<worker_stopped>("lamella::worker_stopped");
  add_message_type<worker_leave>("lamella::worker_leave");
  add_message_type<worker_injury>("lamella::worker_injury");
  add_error_category(caf::atom("lamella"),
                     [](uint8_t code, caf::atom_value, const caf::message& context) {
                       std::string text = describe(static_cast<ec>(code));
                       if (!context.empty() && context.match_element<std::string>(0))
                         text += ": " + context.get_as<std::string>(0);
                       return text;
                     });
}

system_config::system_config(size_t threads, const config::control_settings& control,
                             heartbeats begin)
    : system_config{threads} {
  if (control.heartbeat.count() <= 0 || control.dead < 4 * control.heartbeat)
    throw std::invalid_argument{"heartbeats between processes cannot be turned off"};
  load<caf::io::middleman>();
  set("middleman.heartbeat-interval",
      begin == heartbeats::at_once ? caf::timespan{control.heartbeat} : caf::timespan{0});
  set("middleman.connection-timeout", caf::timespan{control.dead});
  set("middleman.enable-automatic-connections", false);
  if (!control.tls()) return;
  load<caf::openssl::manager>();
  openssl_certificate = control.tls_certificate.string();
  openssl_key = control.tls_key.string();
  openssl_cafile = control.tls_ca.string();
}

} // namespace lamella::actors
