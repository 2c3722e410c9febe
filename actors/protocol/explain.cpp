#include "actors/protocol/explain.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace lamella::actors {

namespace {

const char* sentence_of(const caf::error& reason) {
  using caf::exit_reason, caf::sec;
  if (!reason) return "it ended";
  if (reason == exit_reason::remote_link_unreachable)
    return "its process is gone, or was silent for longer than control.dead_seconds";
  if (reason == exit_reason::user_shutdown) return "it was told to end";
  if (reason == exit_reason::kill) return "it was killed";
  if (reason == exit_reason::unhandled_exception) return "it failed unexpectedly";
  if (reason == exit_reason::out_of_workers) return "it had no thread to run on";
  if (reason == exit_reason::unknown) return "it had ended before";
  if (reason == sec::runtime_error) return "it failed unexpectedly"; // by an exception
  if (reason == sec::request_timeout) return "it has not answered in time";
  if (reason == sec::request_receiver_down) return "it has ended without an answer";
  if (reason == sec::invalid_argument) return "it does not take the question as it is";
  if (reason == sec::bad_function_call) return "it is not there";
  if (reason == sec::unexpected_message || reason == sec::unexpected_response)
    return "it does not understand the question";
  if (reason == sec::disconnect_during_handshake) return "it hung up before it had said hello";
  if (reason == sec::cannot_connect_to_node) return "it cannot be reached";
  if (reason == sec::no_actor_published_at_port) return "nobody answers for that port";
  if (reason == sec::incompatible_versions || reason == sec::incompatible_application_ids)
    return "it speaks another version";
  return nullptr;
}

/// CAF's name of an error that nobody has met here yet, as words.
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
