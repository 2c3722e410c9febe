#include "cli/client/watch.hpp"

#include "cli/interrupt.hpp"
#include "cli/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <sys/ioctl.h>
#include <unistd.h>

namespace lamella::cli {

namespace {

constexpr double seconds_min = 0.05, seconds_max = 3600;

/// Lines of the terminal on standard output.
size_t terminal_lines() {
  constexpr size_t usual = 24;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return usual;
  return size.ws_row;
}

/// While it lives, lines longer than the terminal is wide are cut instead of continued below.
class drawn_terminal {
public:
  explicit drawn_terminal(bool draws) : draws_{draws} {
    if (draws_) std::fputs("\033[?7l\033[2J", stdout);
  }
  ~drawn_terminal() {
    if (draws_) std::fputs("\033[?7h", stdout);
    std::fflush(stdout);
  }
  drawn_terminal(const drawn_terminal&) = delete;
  drawn_terminal& operator=(const drawn_terminal&) = delete;

private:
  bool draws_;
};

} // namespace

std::chrono::milliseconds watch_interval(const std::string& text) {
  double seconds = 2;
  if (!text.empty()) {
    size_t used = 0;
    try {
      seconds = std::stod(text, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != text.size() || !(seconds >= seconds_min && seconds <= seconds_max))
      throw command_error{exit_usage, "--watch: '" + text + "' is not 0.05 to 3600 seconds",
                          "write it as --watch 2"};
  }
  return std::chrono::milliseconds{static_cast<int64_t>(seconds * 1e3)};
}

std::string redraw(const std::string& page, size_t lines) {
  const auto all = static_cast<size_t>(std::count(page.begin(), page.end(), '\n'));
  const size_t room = lines > 2 ? lines - 1 : 1; // the cursor stands on the last one
  const size_t shown = all <= room ? all : room - 1;
  std::string out = "\033[H";
  size_t at = 0;
  for (size_t i = 0; i < shown; ++i) {
    const auto end = page.find('\n', at);
    out += page.substr(at, end - at) + "\033[K\n";
    at = end + 1;
  }
  if (shown < all) out += fmt::format("... and {} more lines\033[K\n", all - shown);
  return out + "\033[J";
}

int watch(net::http_client& client, std::chrono::milliseconds every, bool draws,
          const std::function<std::string()>& page) {
  draws = draws && is_terminal(STDOUT_FILENO);
  interrupts signals;
  interrupt_watch ctrl_c{signals, [&] { client.abort(); }};
  std::optional<drawn_terminal> terminal;
  for (bool first = true; !ctrl_c.interrupted(); first = false) {
    const auto text = page();
    if (ctrl_c.interrupted()) break; // it may say that its call was aborted
    if (first) terminal.emplace(draws);
    const auto out = draws ? redraw(text, terminal_lines()) : (first ? "" : "\n") + text;
    if (std::fputs(out.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      throw command_error{exit_failure, "cannot write to standard output"};
    if (ctrl_c.wait_for(every)) break;
  }
  return exit_success;
}

} // namespace lamella::cli
