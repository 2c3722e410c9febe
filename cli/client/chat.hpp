/// `lamella chat`: a conversation with a served model, in a terminal or through pipes.
#pragma once

#include "cli/client.hpp"
#include "cli/interrupt.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lamella::cli {

struct chat_options {
  std::string model; ///< empty: the first one the server lists
  std::string system;
  std::string once; ///< one question instead of a conversation
  bool has_once = false;
  std::optional<double> temperature;
  std::optional<uint32_t> max_tokens;
};

/// The conversation: history, and the parameters of the next request.
class chat_session {
public:
  chat_session(net::http_client& client, chat_options options, interrupts& signals);

  enum class outcome { answered, stopped };

  /// Sends the request and streams the answer to standard output. Ctrl-C stops the answer
  /// (stopped): the received part stays in the history. Throws command_error; then the history is
  /// unchanged.
  outcome ask(const std::string& question);

  /// Resets the conversation to the system prompt.
  void reset();

private:
  std::string body() const;

  net::http_client& client_;
  chat_options options_;
  interrupts& signals_;
  std::vector<std::pair<std::string, std::string>> history_; ///< role, content
};

/// Runs the command; returns the exit code. Throws command_error.
int chat(const server_choice& server, chat_options options);

} // namespace lamella::cli
