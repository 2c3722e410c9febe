#include "actors/shared/explain.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace lamella::actors {

namespace {

const char* sentence_of(const caf::error& reason) {
  using caf::exit_reason, caf::sec;
  if (!reason) return "it exited";
  if (reason == exit_reason::remote_link_unreachable)
    return "its process is gone, or it sent no heartbeat within control.dead_seconds";
  if (reason == exit_reason::user_shutdown) return "it was asked to stop";
  if (reason == exit_reason::kill) return "it was killed";
  if (reason == exit_reason::unhandled_exception) return "it failed with an exception";
  if (reason == exit_reason::out_of_workers) return "it had no thread to run on";
  if (reason == exit_reason::unknown) return "it had already terminated";
  if (reason == sec::runtime_error) return "it failed with an exception"; // by an exception
  if (reason == sec::request_timeout) return "it did not reply in time";
  if (reason == sec::request_receiver_down) return "it terminated before it replied";
  if (reason == sec::invalid_argument) return "it rejected the message as invalid";
  if (reason == sec::bad_function_call) return "it is not available";
  if (reason == sec::unexpected_message || reason == sec::unexpected_response)
    return "it does not handle this message";
  if (reason == sec::disconnect_during_handshake)
    return "it closed the connection during the handshake";
  if (reason == sec::cannot_connect_to_node) return "it is unreachable";
  if (reason == sec::no_actor_published_at_port) return "no service is published at that port";
  if (reason == sec::incompatible_versions || reason == sec::incompatible_application_ids)
    return "it has an incompatible version";
  return nullptr;
}

/// CAF's name of an error without a text of its own here, as words.
std::string words_of(const caf::error& reason) {
  auto name = reason.category() == caf::atom("exit")
                  ? to_string(static_cast<caf::exit_reason>(reason.code()))
                  : to_string(static_cast<caf::sec>(reason.code()));
  std::ranges::replace(name, '_', ' ');
  return "its messages failed: " + name;
}

} // namespace

std::string explain(caf::actor_system& system, const caf::error& reason) {
  if (!reason) return sentence_of(reason);
  if (reason.category() != caf::atom("system") && reason.category() != caf::atom("exit"))
    return system.render(reason);
  const auto* sentence = sentence_of(reason);
  std::string text = sentence != nullptr ? sentence : words_of(reason);
  if (!reason.context().empty() && reason.context().match_element<std::string>(0))
    text += ": " + reason.context().get_as<std::string>(0);
  return text;
}

} // namespace lamella::actors
