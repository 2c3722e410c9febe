#include "actors/control_link.hpp"
#include "net/tls_errors.hpp"

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>
#include <caf/openssl/publish.hpp>

#include <fmt/format.h>

#include <fstream>
#include <set>

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

/// CAF 0.17 counts the silence of a connection that it makes from the beginning of time until the
/// first byte comes: with heartbeats on from the start, one of them ends every connection whose
/// handshake takes longer than they are apart, again and again. So they begin here, with the
/// message that CAF's broker sends itself where they are on.
void start_heartbeats(caf::actor_system& system, const config::control_settings& control) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  caf::anon_send(broker, caf::tick_atom::value, caf::actor_clock::clock_type::now(),
                 caf::timespan{control.heartbeat}, caf::timespan{control.dead});
}

} // namespace

uint16_t publish_door(caf::actor_system& system, const door_actor& door,
                      const config::control_settings& control) {
  const auto where = config::parse_address(control.listen);
  if (!where) throw link_error{"bad address " + control.listen};
  check_safe(where->host, control);
  const auto host = plain_host(where->host);
  const auto port = control.tls()
                        ? caf::openssl::publish(door, where->port, host.c_str(), true)
                        : system.middleman().publish(door, where->port, host.c_str(), true);
  if (!port)
    throw link_error{
        fmt::format("cannot listen on {}: {}", control.listen, system.render(port.error()))};
  return *port;
}

door_actor reach_door(caf::actor_system& system, const config::host_and_port& where,
                      const config::control_settings& control, caf::timespan patience) {
  check_safe(where.host, control);
  const auto host = plain_host(where.host);
  // Not remote_actor(): it would wait for ever for a listener that accepts and says nothing.
  const auto connector =
      control.tls() ? system.openssl_manager().actor_handle() : system.middleman().actor_handle();
  door_actor door;
  caf::error failure;
  caf::scoped_actor self{system};
  self->request(connector, caf::duration{patience}, caf::connect_atom_v, host, where.port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& found,
              const std::set<std::string>& speaks) {
            if (!found)
              failure = caf::sec::no_actor_published_at_port;
            else if (!system.assignable<door_actor>(speaks))
              failure = caf::sec::unexpected_actor_messaging_interface;
            else
              door = caf::actor_cast<door_actor>(found);
          },
          [&](caf::error& e) { failure = std::move(e); });
  if (door) {
    start_heartbeats(system, control);
    return door;
  }
  auto why = system.render(failure);
  if (failure == caf::sec::cannot_connect_to_node) why = "nobody listens there";
  if (failure == caf::sec::request_timeout) why = "it accepts connections and says nothing";
  if (failure == caf::sec::disconnect_during_handshake)
    why = control.tls() ? "the TLS handshake failed; both sides need certificates of the same CA"
                        : "the other side hung up: is it a Lamella control port, and without TLS?";
  if (failure == caf::sec::unexpected_actor_messaging_interface)
    why = "the service speaks another version of the control protocol";
  throw link_error{fmt::format("cannot join {}:{}: {}", where.host, where.port, why)};
}

} // namespace lamella::actors
