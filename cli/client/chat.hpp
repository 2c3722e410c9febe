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

/// The conversation: what was said, and how the next question is asked.
class conversation {
public:
  conversation(net::http_client& client, chat_options options, interrupts& signals);

  enum class outcome { answered, stopped };

  /// Asks and streams the answer to standard output. Ctrl-C ends the answer (stopped): what came
  /// until then stays in the history. Throws command_error; then the history is as before.
  outcome ask(const std::string& question);

  /// Forgets everything but the system prompt.
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
