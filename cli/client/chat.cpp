#include "cli/client/chat.hpp"

#include "base/json_writer.hpp"
#include "cli/app.hpp"
#include "cli/terminal.hpp"

#include <chrono>
#include <cstdio>

#include <poll.h>
#include <unistd.h>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds longest_silence{120}; // servers ping every 15 s
constexpr size_t line_bytes_max = size_t{1} << 20;

/// What a model says must not move the cursor or set colours: control characters but line breaks
/// and tabs are left out on a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' ? byte != 0x7f : (c == '\n' || c == '\t')) out += c;
  }
  return out;
}

/// One answer while it arrives.
struct answer {
  std::string text;
  double tokens = 0; ///< as the server counts them; 0 when it does not say
  double pieces = 0;
  clock::time_point asked = clock::now(), first, last;

  void event(std::string_view data, bool terminal);
  void print_speed() const;
};

void answer::event(std::string_view data, bool terminal) {
  const auto json = parse_answer(data);
  if (json.find("error") != nullptr)
    throw command_error{
        exit_failure,
        text_or(find_path(json, {"error", "message"}), "the server aborted the answer"),
        "the answer is incomplete; retry"};
  const auto piece = text_or(find_path(json, {"choices", "0", "delta", "content"}), "");
  tokens = number_or(find_path(json, {"usage", "completion_tokens"}), tokens);
  if (piece.empty()) return;
  last = clock::now();
  if (text.empty()) first = last;
  text += piece;
  ++pieces;
  const auto shown = terminal ? printable(piece) : piece;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

void answer::print_speed() const {
  if (text.empty()) return;
  const bool color = use_color(STDOUT_FILENO);
  const auto seconds = [](clock::duration x) { return std::chrono::duration<double>(x).count(); };
  const double count = tokens > 0 ? tokens : pieces, decoding = seconds(last - first);
  std::printf("%s%.0f %s, first after %.0f ms", color ? "\033[2m" : "", count,
              tokens > 0 ? "tokens" : "pieces", seconds(first - asked) * 1e3);
  if (count > 1 && decoding > 0) std::printf(", %.1f/s", (count - 1) / decoding);
  std::printf("%s\n", color ? "\033[0m" : "");
}

/// Reads lines from standard input, and hears Ctrl-C meanwhile.
class line_reader {
public:
  explicit line_reader(interrupts& signals) : signals_{signals} {}

  enum class got { line, interrupt, end };

  got next(std::string& line) {
    while (true) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return got::line;
      }
      if (over_ && buffer_.empty()) return got::end;
      if (over_) {
        line = std::exchange(buffer_, {}); // the last line had no line break
        return got::line;
      }
      if (buffer_.size() > line_bytes_max)
        throw command_error{exit_damaged_input, "an input line is longer than 1 MiB",
                            "split the line"};
      pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0 && signals_.take()) {
        buffer_.clear();
        return got::interrupt;
      }
      if (fds[0].revents == 0) continue;
      char piece[4096];
      const auto count = read(STDIN_FILENO, piece, sizeof piece);
      if (count <= 0)
        over_ = true;
      else
        buffer_.append(piece, static_cast<size_t>(count));
    }
  }

  /// At the end of a terminal's input (Ctrl-D) a started line is not meant as a question.
  bool at_end() const { return over_; }

private:
  interrupts& signals_;
  std::string buffer_;
  bool over_ = false;
};

void print_help() {
  std::printf("  /reset   forget the conversation\n"
              "  /quit    end (or Ctrl-D)\n"
              "  /help    this list\n"
              "  Ctrl-C   stop the answer\n");
}

/// Does a line of the form /word. Returns false to end.
bool command_line(chat_session& talk, const std::string& word) {
  if (word == "/quit" || word == "/exit") return false;
  if (word == "/reset") {
    talk.reset();
    std::printf("the conversation is forgotten\n");
  } else {
    if (word != "/help") std::printf("there is no command %s\n", printable(word).c_str());
    print_help();
  }
  return true;
}

/// A person at a terminal: errors are shown and the conversation goes on.
int converse(chat_session& talk, interrupts& signals) {
  line_reader input{signals};
  while (true) {
    std::fputs("> ", stdout);
    std::fflush(stdout);
    std::string line;
    const auto got = input.next(line);
    if (got == line_reader::got::interrupt) {
      std::fputs("\n(Ctrl-D or /quit ends)\n", stdout);
      continue;
    }
    if (got == line_reader::got::end || input.at_end()) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.front() == '/') {
      if (!command_line(talk, line.substr(0, line.find_last_not_of(" \t\r") + 1))) return 0;
      continue;
    }
    try {
      talk.ask(line);
    } catch (const command_error& e) {
      std::fputs("\n", stdout);
      std::fflush(stdout);
      for (const auto& x : e.problems()) print_error(x.message, x.hint);
    }
  }
  std::fputs("\n", stdout);
  return exit_success;
}

/// Input from a file or a pipe: each line is a question, the first error ends it.
int answer_lines(chat_session& talk, interrupts& signals) {
  line_reader input{signals};
  std::string line;
  while (true) {
    const auto got = input.next(line);
    if (got == line_reader::got::interrupt) return exit_interrupted;
    if (got == line_reader::got::end) return exit_success;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (talk.ask(line) == chat_session::outcome::stopped) return exit_interrupted;
  }
}

} // namespace

chat_session::chat_session(net::http_client& client, chat_options options, interrupts& signals)
    : client_{client}, options_{std::move(options)}, signals_{signals} {
  reset();
}

void chat_session::reset() {
  history_.clear();
  if (!options_.system.empty()) history_.emplace_back("system", options_.system);
}

std::string chat_session::body() const {
  json_writer out;
  out.begin_object().member("model", options_.model).key("messages").begin_array();
  for (const auto& [role, content] : history_)
    out.begin_object().member("role", role).member("content", content).end_object();
  out.end_array().member("stream", true);
  out.key("stream_options").begin_object().member("include_usage", true).end_object();
  if (options_.temperature) out.member("temperature", *options_.temperature);
  if (options_.max_tokens) out.member("max_tokens", *options_.max_tokens);
  return out.end_object().take();
}

chat_session::outcome chat_session::ask(const std::string& question) {
  const auto before = history_.size();
  history_.emplace_back("user", question);
  answer got;
  const bool terminal = is_terminal(STDOUT_FILENO);
  bool stopped = false;
  try {
    interrupt_watch watch{signals_, [this] { client_.abort(); }};
    net::http_reply reply;
    try {
      reply = client_.stream(
          "/v1/chat/completions", body(),
          [&](std::string_view data) {
            got.event(data, terminal);
            return !watch.interrupted();
          },
          longest_silence);
    } catch (const net::http_call_error& e) {
      if (!watch.interrupted()) throw unreachable(e);
    }
    stopped = watch.interrupted();
    constexpr int good = 200, not_good = 300;
    if (!stopped && (reply.status < good || reply.status >= not_good)) throw refused(reply);
  } catch (...) {
    history_.resize(before);
    throw;
  }
  if (stopped) std::fputs(terminal ? " (stopped)" : "", stdout);
  if (!got.text.ends_with('\n')) std::fputs("\n", stdout);
  if (terminal) got.print_speed();
  std::fflush(stdout);
  if (stopped && got.text.empty())
    history_.resize(before); // as if it had not been asked
  else
    history_.emplace_back("assistant", got.text);
  return stopped ? outcome::stopped : outcome::answered;
}

int chat(const server_choice& server, chat_options options) {
  net::http_client client{server.address(), server.api_key()};
  // Asked even when the model is named: better to hear now that nobody listens.
  const auto found = first_model(client);
  if (options.model.empty()) options.model = found;
  const bool once = options.has_once;
  const auto question = options.once, name = options.model;
  interrupts signals;
  chat_session talk{client, std::move(options), signals};
  if (once)
    return talk.ask(question) == chat_session::outcome::stopped ? exit_interrupted
                                                                : int{exit_success};
  if (!is_terminal(STDIN_FILENO)) return answer_lines(talk, signals);
  std::printf("%s at %s; /help shows the commands\n", printable(name).c_str(), server.url.c_str());
  return converse(talk, signals);
}

} // namespace lamella::cli
