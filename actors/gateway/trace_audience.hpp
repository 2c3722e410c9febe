/// Who gets what TRACER records: its asker, or all that ask while it records and soon after.
#pragma once

#include "net/http/api_error.hpp"
#include "net/http/http_exchange.hpp"

#include <caf/all.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lamella::actors {

/// The askers of one recording. Thread-safe: ASIDE delivers what GATEWAY is asked for.
class trace_audience {
public:
  using time_point = caf::actor_clock::time_point;

  /// `recording`: alive until the recording is there or was refused, or TRACER has ended.
  trace_audience(net::http_exchange_ptr first, time_point now, std::weak_ptr<bool> recording)
      : waiting_{std::move(first)}, began_{now}, recording_{std::move(recording)} {}

  /// Answers one more: when the recording is there, or at once where it began at most so long ago.
  /// False: it is older, was refused or given up, or too many wait.
  bool take_in(const net::http_exchange_ptr& one_more, time_point now, caf::timespan newest);

  /// The recording is there. It is kept for those who come later, unless it is large.
  void deliver(std::string text);

  /// There is none.
  void refuse(const net::api_error& why);

  static constexpr size_t waiting_max = 32, kept_bytes_max = 4 << 20;

private:
  std::mutex mutex_; ///< of the members below
  std::vector<net::http_exchange_ptr> waiting_;
  const time_point began_;
  const std::weak_ptr<bool> recording_;
  bool over_ = false;
  std::string text_; ///< empty: none is kept
};

} // namespace lamella::actors
