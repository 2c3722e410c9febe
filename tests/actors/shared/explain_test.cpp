#include "actors/protocol/error.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/shared/explain.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace lamella::actors;

TEST_CASE("errors are told in words, never as codes of a library") {
  system_config options{1};
  caf::actor_system system{options};
  const auto text = [&](const caf::error& x) { return explain(system, x); };
  CHECK(text(caf::exit_reason::remote_link_unreachable)
        == "its process is gone, or it sent no heartbeat within control.dead_seconds");
  CHECK(text(caf::sec::request_timeout) == "it did not reply in time");
  CHECK(text(caf::error{}) == "it exited");
  CHECK(text(caf::make_error(ec::link_cut, "the cable"))
        == "a link to another device was cut: the cable");
  CHECK(text(caf::make_error(caf::sec::invalid_argument, "malformed prefill"))
        == "it rejected the message as invalid: malformed prefill");
  // What happens to actors in practice, and what nobody has seen yet.
  for (const auto& x :
       {caf::error{caf::exit_reason::kill}, caf::error{caf::exit_reason::user_shutdown},
        caf::error{caf::exit_reason::unhandled_exception}, caf::error{caf::exit_reason::unknown},
        caf::error{caf::sec::request_receiver_down}, caf::error{caf::sec::unexpected_message},
        caf::error{caf::sec::disconnect_during_handshake},
        caf::error{caf::sec::cannot_connect_to_node}, caf::error{caf::sec::runtime_error},
        caf::error{caf::sec::invalid_argument}, caf::error{caf::sec::cannot_open_file},
        caf::error{caf::sec::redundant_connection}}) {
    INFO(text(x));
    CHECK(text(x).find('_') == std::string::npos);
    CHECK(text(x).find('(') == std::string::npos);
    CHECK(text(x).starts_with("it"));
  }
}

TEST_CASE("an actor that throws is told of in words, too") {
  system_config options{1};
  caf::actor_system system{options};
  caf::scoped_actor self{system};
  const auto victim = system.spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](int) { throw std::runtime_error{"no memory on the device"}; }};
  });
  self->monitor(victim);
  self->send(victim, 1);
  std::string text;
  self->receive([&](const caf::down_msg& down) { text = explain(system, down.reason); });
  INFO(text);
  CHECK(text == "it failed with an exception"); // CAF has printed the exception
}
