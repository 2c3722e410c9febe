/// The far side of a link in another process or guest, as tests see it.
#pragma once

#include "tests/net/link/far_side.hpp"
#include "tests/rdma/control.hpp"

namespace lamella::tests {

/// An agent's process that answers one test. Threads may share it.
class agent_session {
public:
  explicit agent_session(const std::string& ipv4_address)
      : socket_{connect_to_agent(ipv4_address)} {}

  /// The answer to an order, without its outcome. Throws what the other side has thrown.
  message ask(const message& order);
  void tell(const message& order);

private:
  std::mutex mutex_;
  control_socket socket_;
};

/// Its ends are proxies: what is sent goes to the other process, is sent there, and comes back here
/// by the link that is under test.
class remote_far final : public far_side {
public:
  /// A fresh process behind the agent, with a plane of its own for `transport`.
  remote_far(const std::string& ipv4_address, const std::string& transport);

  std::string address() override;
  net::link_end accept(const net::link_key& key, const net::link_terms& terms) override;
  void end_epoch(uint64_t epoch) override;
  void go() override;
  std::string wait_for(net::link_event::kind what, const std::string& part) override;
  std::chrono::nanoseconds round_trip() override;
  std::future<uint64_t> exchange(uint64_t count) override;
  std::future<gpu::work_status> play(uint64_t count, bool first) override;

  /// Kills the process.
  void die();

private:
  std::future<uint64_t> task(const message& order);

  std::shared_ptr<agent_session> session_;
};

} // namespace lamella::tests
