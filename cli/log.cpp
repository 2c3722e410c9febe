#include "cli/log.hpp"

#include "cli/terminal.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

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

} // namespace

void configure_log(const config::log_settings& settings, bool quiet, const std::string& name) {
  const bool terminal = is_terminal(STDERR_FILENO);
  const bool json = settings.format == config::log_format::json
                    || (settings.format == config::log_format::automatic && !terminal);
  const bool colour = terminal && !json && std::getenv("NO_COLOR") == nullptr;
  spdlog::sink_ptr sink;
  if (colour)
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  else
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("lamella", std::move(sink));
  if (json)
    logger->set_formatter(std::make_unique<json_formatter>(name));
  else
    logger->set_pattern("%H:%M:%S.%e %^%-5l%$ " + (name.empty() ? name : name + " ") + "%v");
  logger->set_level(quiet ? spdlog::level::warn : level_of(settings.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(config::log_level level) { spdlog::set_level(level_of(level)); }

} // namespace lamella::cli
