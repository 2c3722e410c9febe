/// What a worker knows and logs of its links.
#pragma once

#include "actors/machine/link_port.hpp"
#include "base/line_limit.hpp"
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/ended_epochs.hpp"
#include "net/link/round_trips.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace lamella::actors {

/// What is known of the links that stand. Written on the plane's thread, read by WORKER.
class link_book {
public:
  /// Logs the event. A link that is up is remembered until its epoch is forgotten; one that comes
  /// up after that is not.
  void note(const net::link_event& x);

  /// Of a link that stands; empty of others.
  link_report of(const net::link_key& key);

  void forget(uint64_t epoch);

private:
  struct link {
    std::string tier;
    std::shared_ptr<const net::round_trips> trips;
  };
  void note_up(const net::link_event& x, std::string_view tier);
  void note_refused(const net::link_event& x, std::string_view tier);

  std::mutex mutex_;
  net::ended_epochs ended_;
  std::map<net::link_key, link> links_;
  std::set<std::string> chosen_; ///< ways that were told
  line_limit refusals_;
};

} // namespace lamella::actors
