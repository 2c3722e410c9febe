#include "actors/protocol/system_config.hpp"

#include "actors/protocol/error.hpp"

#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>

#include <stdexcept>

namespace lamella::actors {

system_config::system_config(size_t threads) {
  // "stealing" polls while idle and answers remote messages late.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", threads);
  add_iterations();
  add_kv();
  add_requests();
  add_prefills();
  add_moves();
  add_parity();
  add_join();
  add_epochs();
  add_pools();
  add_status();
  add_traces();
  add_error_category(caf::atom("lamella"),
                     [](uint8_t code, caf::atom_value, const caf::message& context) {
                       std::string text = describe(static_cast<ec>(code));
                       if (!context.empty() && context.match_element<std::string>(0))
                         text += ": " + context.get_as<std::string>(0);
                       return text;
                     });
}

system_config::system_config(size_t threads, const config::control_settings& control,
                             heartbeats begin)
    : system_config{threads} {
  if (control.heartbeat.count() <= 0 || control.dead < 4 * control.heartbeat)
    throw std::invalid_argument{"heartbeats between processes cannot be turned off"};
  load<caf::io::middleman>();
  set("middleman.heartbeat-interval",
      begin == heartbeats::at_once ? caf::timespan{control.heartbeat} : caf::timespan{0});
  set("middleman.connection-timeout", caf::timespan{control.dead});
  set("middleman.enable-automatic-connections", false);
  if (!control.tls()) return;
  load<caf::openssl::manager>();
  openssl_certificate = control.tls_certificate.string();
  openssl_key = control.tls_key.string();
  openssl_cafile = control.tls_ca.string();
}

} // namespace lamella::actors
