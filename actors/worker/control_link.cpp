#include "actors/worker/control_link.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/explain.hpp"
#include "actors/worker/control_scribe.hpp"
#include "net/http/tls_errors.hpp"

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

namespace lamella::actors {

namespace {

void check_safe(const std::string& host, const config::control_settings& control) {
  if (!control.tls() && !config::is_loopback(host))
    throw link_error{host + " is not loopback, and mutual TLS is not configured"};
  if (!control.tls()) return;
  // CAF ends the process over a file it cannot read.
  for (const auto& file : {control.tls_certificate, control.tls_key, control.tls_ca})
    if (std::ifstream in{file}; !in.good())
      throw link_error{"cannot read the TLS file " + file.string()};
  net::keep_tls_errors_apart();
}

/// CAF takes numbers or names, IPv6 without its brackets.
std::string plain_host(const std::string& host) {
  return host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

/// What CAF knows the door by, instead of a port.
constexpr uint16_t door_number = 1;

/// CAF's actor for all connections of this process.
caf::actor basp_of(caf::actor_system& system) {
  return system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
}

/// CAF 0.17 counts the silence of a connection that it makes from the beginning of time until the
/// first byte comes: with heartbeats on from the start, one of them ends every connection whose
/// handshake takes longer than they are apart, again and again. So they begin here, with the
/// message that CAF's broker sends itself where they are on.
void start_heartbeats(caf::actor_system& system, const config::control_settings& control) {
  caf::anon_send(basp_of(system), caf::tick_atom::value, caf::actor_clock::clock_type::now(),
                 caf::timespan{control.heartbeat}, caf::timespan{control.dead});
}

/// A no is for good, so it is asked for twice: a bit that changed on its way looks like a secret
/// that is wrong.
net::gate_pass pass_with_care(const config::host_and_port& where, const net::shared_secret& secret,
                              bool tls, std::chrono::milliseconds timeout) {
  const auto host = plain_host(where.host);
  try {
    return net::pass_gate(host, where.port, secret, tls, timeout);
  } catch (const net::gate_error& e) {
    if (e.why == net::gate_error::reason::unreachable) throw;
  }
  return net::pass_gate(host, where.port, secret, tls, timeout);
}

} // namespace

std::unique_ptr<net::control_gate> publish_door(caf::actor_system& system, const door_actor& door,
                                                const config::control_settings& control,
                                                std::vector<net::shared_secret> secrets) {
  const auto where = config::parse_address(control.listen);
  if (!where) throw link_error{"bad address " + control.listen};
  check_safe(where->host, control);
  net::gate_options options;
  options.host = plain_host(where->host);
  options.port = where->port;
  options.secrets = std::move(secrets);
  options.tls = control.tls();
  options.on_refuse = [](const std::string& who, const std::string& why) {
    spdlog::warn("control connection refused address={} reason=\"{}\"", who, why);
  };
  options.on_pass = [&system, tls = control.tls(), broker = basp_of(system),
                     published = caf::actor_cast<caf::strong_actor_ptr>(door),
                     speaks = system.message_types(door)](net::gate_pass pass) {
    caf::anon_send(broker, caf::publish_atom::value,
                   make_scribe(system, std::move(pass.socket), control_side::accepted, tls),
                   door_number, published, speaks);
  };
  try {
    return std::make_unique<net::control_gate>(std::move(options));
  } catch (const std::system_error& e) {
    throw link_error{fmt::format("cannot listen on {}: {}", control.listen, e.code().message())};
  }
}

reached_door reach_door(caf::actor_system& system, const config::host_and_port& where,
                        const config::control_settings& control, const net::shared_secret& secret,
                        std::chrono::milliseconds timeout) {
  check_safe(where.host, control);
  const auto deadline = caf::actor_clock::clock_type::now() + timeout;
  const auto cannot = [&](const std::string& why) {
    return fmt::format("cannot join {}:{}: {}", where.host, where.port, why);
  };
  reached_door result;
  caf::io::scribe_ptr scribe;
  try {
    auto pass = pass_with_care(where, secret, control.tls(), timeout);
    result.here = pass.here;
    result.there = pass.there;
    scribe = make_scribe(system, std::move(pass.socket), control_side::connected, control.tls());
  } catch (const net::gate_error& e) {
    if (e.why == net::gate_error::reason::denied) throw denied_error{cannot(e.what())};
    if (e.why == net::gate_error::reason::refused) throw refused_error{cannot(e.what())};
    throw link_error{cannot(e.what())};
  } catch (const std::runtime_error& e) {
    throw link_error{cannot(e.what())};
  }
  caf::error failure;
  caf::scoped_actor self{system};
  const auto left = std::max<caf::timespan>(deadline - caf::actor_clock::clock_type::now(),
                                            std::chrono::seconds{1});
  self->request(basp_of(system), caf::duration{left}, caf::connect_atom::value, scribe, where.port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& found,
              const std::set<std::string>& speaks) {
            if (!found)
              failure = caf::sec::no_actor_published_at_port;
            else if (!system.assignable<door_actor>(speaks))
              failure = caf::sec::unexpected_actor_messaging_interface;
            else
              result.door = caf::actor_cast<door_actor>(found);
          },
          [&](caf::error& e) { failure = std::move(e); });
  if (result.door) {
    start_heartbeats(system, control);
    return result;
  }
  auto why = explain(system, failure);
  if (failure == caf::sec::request_timeout) why = "it accepts the connection but sends nothing";
  if (failure == caf::sec::disconnect_during_handshake)
    why = control.tls() ? "the TLS handshake failed; both sides need certificates of the same CA"
                        : "the other side hung up";
  if (failure == caf::sec::unexpected_actor_messaging_interface)
    why = "the service uses another version of the control protocol";
  throw link_error{cannot(why)};
}

} // namespace lamella::actors
