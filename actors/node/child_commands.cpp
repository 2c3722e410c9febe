#include "actors/node/child_commands.hpp"

#include "base/failpoint.hpp"

#include <fmt/format.h>

#include <filesystem>

#include <unistd.h>

namespace lamella::actors {

namespace {

const char* word_of(config::log_level x) {
  switch (x) {
  case config::log_level::error:
    return "error";
  case config::log_level::warn:
    return "warn";
  case config::log_level::info:
    return "info";
  case config::log_level::debug:
    return "debug";
  case config::log_level::trace:
    return "trace";
  }
  return "info";
}

/// Where a child of this host reaches a listener.
std::string reachable(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  if (host == "[::]") return "[::1]";
  return host;
}

} // namespace

child_command child_of(const config::settings& options, const scheduler::seat& where,
                       std::string program, uint16_t port, const std::set<unsigned>& processors) {
  const auto& control = options.control;
  std::error_code ignored;
  if (program.empty()) program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  const auto listen = config::parse_address(control.listen);
  const auto name = fmt::format("{}-{}", scheduler::to_string(where.role), where.index);
  child_command x{where,
                  name,
                  {program,
                   "worker",
                   "--role",
                   std::string{scheduler::to_string(where.role)},
                   "--name",
                   name,
                   "--seat",
                   std::to_string(where.index),
                   "--join",
                   fmt::format("{}:{}", reachable(listen->host), port),
                   "--secret-file",
                   "/dev/fd/3",
                   "--parent",
                   std::to_string(getpid()),
                   "--heartbeat-seconds",
                   fmt::format("{}", control.heartbeat.count() / 1e3),
                   "--dead-seconds",
                   fmt::format("{}", control.dead.count() / 1e3),
                   "--rejoin-seconds", // it ends with this process, however long that stands still
                   "0",
                   "--log-level",
                   word_of(options.log.level),
                   "--listen", // for workers of other hosts; the port itself is this process's
                   config::parse_address(options.net.listen)->host + ":0"}};
  if (!where.cell.empty()) x.words.insert(x.words.end(), {"--cell", where.cell});
  if (!processors.empty()) x.words.insert(x.words.end(), {"--processors", list_of(processors)});
  if (control.tls())
    x.words.insert(x.words.end(),
                   {"--tls-certificate", control.tls_certificate.string(), "--tls-key",
                    control.tls_key.string(), "--tls-ca", control.tls_ca.string()});
  for (const auto& text : armed_failpoints()) x.words.insert(x.words.end(), {"--failpoint", text});
  return x;
}

std::set<unsigned> processors_for(const config::pool_settings& pool,
                                  const std::vector<processor>& machine, uint32_t place,
                                  uint32_t processes) {
  if (config::is_cuda(pool.device)) return {};
  auto share = share_of(machine, place, processes);
  if (share.size() == machine.size()) return {};
  std::vector<processor> near;
  for (const auto& x : machine)
    if (share.contains(x.number)) near.push_back(x);
  if (pool.threads && *pool.threads > computing(near).size()) return {};
  return share;
}

} // namespace lamella::actors
