/// A data plane as tests make it, and what it reports.
#pragma once

#include "net/data_plane/data_plane.hpp"
#include "tests/net/link/link_traffic.hpp"
#include "tests/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <mutex>
#include <vector>

namespace lamella::tests {

/// What a plane has reported.
class event_log {
public:
  void add(const net::link_event& e) {
    const std::lock_guard lock{mutex_};
    events_.push_back(e);
  }
  /// Waits for an event of that kind whose text contains `part`; gives its text.
  std::string wait_for(net::link_event::kind what, const std::string& part = {}) {
    std::string text;
    const bool found = holds_soon([&] {
      const std::lock_guard lock{mutex_};
      for (const auto& e : events_)
        if (e.what == what && e.text.find(part) != std::string::npos) {
          text = e.text;
          return true;
        }
      return false;
    });
    CHECK_MESSAGE(found, "no event with " << part << "; seen: " << all());
    return text;
  }
  /// The first event of that kind, once wait_for() has seen one.
  net::link_event first(net::link_event::kind what) {
    const std::lock_guard lock{mutex_};
    for (const auto& e : events_)
      if (e.what == what) return e;
    return {};
  }
  std::string all() {
    const std::lock_guard lock{mutex_};
    std::string text;
    for (const auto& e : events_) text += "[" + e.text + "] ";
    return text;
  }

private:
  std::mutex mutex_;
  std::vector<net::link_event> events_;
};

/// A plane with its log and bell, on fresh addresses.
struct test_plane {
  explicit test_plane(const std::string& transport, const scratch_folder& folder,
                      const std::string& name,
                      const std::function<void(net::data_plane_options&)>& change = {}) {
    net::data_plane_options o;
    o.unix_path = (folder / name).string();
    o.listen = "127.0.0.1:0";
    o.secret = "a secret of twenty-six bytes";
    o.cluster = 7;
    o.transport = transport;
    o.bell = bell;
    o.handshake = o.early = o.unread = o.greeting = o.last_writes = timeout;
    o.measure_every = timeout; // what goes over the wire is the test's
    o.on_event = [log = log](const net::link_event& e) { log->add(e); };
    if (change) change(o);
    plane = std::make_unique<net::data_plane>(std::move(o));
  }
  std::shared_ptr<gpu::doorbell> bell = std::make_shared<gpu::doorbell>();
  std::shared_ptr<event_log> log = std::make_shared<event_log>();
  std::unique_ptr<net::data_plane> plane;
};

} // namespace lamella::tests
