#include "actors/system_config.hpp"

#include "actors/actors.hpp"

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
  add_message_type<kv_freed>("lamella::kv_freed");
  add_message_type<kv_trim>("lamella::kv_trim");
  add_message_type<kv_usage>("lamella::kv_usage");
  add_message_type<admit>("lamella::admit");
  add_message_type<admitted>("lamella::admitted");
  add_message_type<withdraw>("lamella::withdraw");
  add_message_type<retire>("lamella::retire");
  add_message_type<prefill>("lamella::prefill");
  add_message_type<prefilled>("lamella::prefilled");
  add_message_type<prefill_cancel>("lamella::prefill_cancel");
  add_message_type<token>("lamella::token");
  add_message_type<preempted>("lamella::preempted");
  add_message_type<sequence_failed>("lamella::sequence_failed");
  add_message_type<batch_join>("lamella::batch_join");
  add_message_type<batch_leave>("lamella::batch_leave");
  add_message_type<worker_info>("lamella::worker_info");
  add_message_type<system_status>("lamella::system_status");
  add_error_category(caf::atom("lamella"),
                     [](uint8_t code, caf::atom_value, const caf::message& context) {
                       std::string text = describe(static_cast<ec>(code));
                       if (!context.empty() && context.match_element<std::string>(0))
                         text += ": " + context.get_as<std::string>(0);
                       return text;
                     });
}

} // namespace lamella::actors
