#include "cli/log.hpp"

#include "cli/log_writer.hpp"
#include "cli/terminal.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include <unistd.h>

namespace lamella::cli {

namespace {

spdlog::level::level_enum level_of(config::log_level level) {
  switch (level) {
  case config::log_level::error:
    return spdlog::level::err;
  case config::log_level::warn:
    return spdlog::level::warn;
  case config::log_level::info:
    return spdlog::level::info;
  case config::log_level::debug:
    return spdlog::level::debug;
  case config::log_level::trace:
    return spdlog::level::trace;
  }
  return spdlog::level::info;
}

/// The message as the inside of a JSON string: spdlog's pattern cannot escape it.
class json_formatter final : public spdlog::formatter {
public:
  explicit json_formatter(const std::string& name)
      : name_{name}, frame_{std::make_unique<spdlog::pattern_formatter>(
                         R"({"ts":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",)"
                             + (name.empty() ? std::string{} : R"("worker":")" + name + R"(",)")
                             + R"("msg":")",
                         spdlog::pattern_time_type::utc, "")} {}
  void format(const spdlog::details::log_msg& x, spdlog::memory_buf_t& out) override {
    frame_->format(x, out);
    for (char c : x.payload) {
      const auto u = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out.push_back('\\');
        out.push_back(c);
      } else if (u >= 0x20) {
        out.push_back(c);
      } else {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", u);
      }
    }
    const std::string_view end = "\"}\n";
    out.append(end.data(), end.data() + end.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<json_formatter>(name_);
  }

private:
  std::string name_;
  std::unique_ptr<spdlog::pattern_formatter> frame_;
};

/// For the last words of a process.
constexpr std::chrono::milliseconds flush_timeout{200};

std::string_view colour_of(spdlog::level::level_enum level) {
  switch (level) {
  case spdlog::level::critical:
    return "\033[1m\033[41m";
  case spdlog::level::err:
    return "\033[31m\033[1m";
  case spdlog::level::warn:
    return "\033[33m\033[1m";
  case spdlog::level::info:
    return "\033[32m";
  case spdlog::level::debug:
    return "\033[36m";
  default:
    return "\033[37m";
  }
}

/// Lines to standard error by way of a writer that nobody waits for. Lines that were dropped are
/// told of as soon as one can be written.
class writer_sink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  explicit writer_sink(bool colour) : colour_{colour} {}

protected:
  void sink_it_(const spdlog::details::log_msg& x) override {
    if (const auto lost = writer_.dropped() - told_; lost > 0) {
      const auto text = fmt::format("log lines dropped lines={}", lost);
      if (put({x.logger_name, spdlog::level::warn, text})) told_ += lost;
    }
    put(x);
  }
  void flush_() override { writer_.flush(flush_timeout); }

private:
  bool put(const spdlog::details::log_msg& x) {
    spdlog::memory_buf_t line;
    formatter_->format(x, line);
    std::string text{line.data(), line.size()};
    if (colour_ && x.color_range_end > x.color_range_start) {
      text.insert(x.color_range_end, "\033[m");
      text.insert(x.color_range_start, colour_of(x.level));
    }
    return writer_.put(text);
  }

  const bool colour_;
  log_writer writer_{STDERR_FILENO};
  uint64_t told_ = 0; ///< of the lines dropped
};

} // namespace

void configure_log(const config::log_settings& settings, bool quiet, const std::string& name) {
  const bool terminal = is_terminal(STDERR_FILENO);
  const bool json = settings.format == config::log_format::json
                    || (settings.format == config::log_format::automatic && !terminal);
  const bool colour = terminal && !json && std::getenv("NO_COLOR") == nullptr;
  auto logger = std::make_shared<spdlog::logger>("lamella", std::make_shared<writer_sink>(colour));
  if (json)
    logger->set_formatter(std::make_unique<json_formatter>(name));
  else
    logger->set_pattern("%H:%M:%S.%e %^%-5l%$ " + (name.empty() ? name : name + " ") + "%v");
  logger->set_level(quiet ? spdlog::level::warn : level_of(settings.level));
  logger->flush_on(spdlog::level::critical);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(config::log_level level) { spdlog::set_level(level_of(level)); }

} // namespace lamella::cli
