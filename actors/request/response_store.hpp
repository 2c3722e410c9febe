/// Finished responses, kept for a while for those who continue them or ask for them again.
#pragma once

#include "net/api/api_values.hpp"

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace lamella::actors {

/// A finished response. Only its caller sees it.
struct kept_response {
  std::string id;
  uint64_t caller = 0;
  std::string body;                          ///< as it was answered
  std::vector<net::chat_message> messages{}; ///< the conversation, this answer included
};

/// Bytes that a conversation takes, roughly.
size_t bytes_of(const std::vector<net::chat_message>& conversation);

/// Thread-safe, in memory only. Bounded by age and by bytes: beyond either the oldest go.
class response_store {
public:
  using time = std::chrono::system_clock::time_point;

  response_store(std::chrono::milliseconds keep, size_t bytes_max)
      : keep_{keep}, bytes_max_{bytes_max} {}

  /// Keeps a response. One that is larger than all that may be kept is not.
  void add(kept_response x, time now);

  /// The response of that id and caller; null where there is none (any more).
  std::shared_ptr<const kept_response> find(const std::string& id, uint64_t caller, time now);

  /// Forgets it; false where there is none.
  bool erase(const std::string& id, uint64_t caller, time now);

  size_t bytes() const;
  std::chrono::milliseconds kept_for() const { return keep_; }

private:
  struct entry {
    std::shared_ptr<const kept_response> what;
    size_t bytes = 0;
    time until;
  };

  void drop_old(time now);
  void drop(std::list<entry>::iterator at);

  const std::chrono::milliseconds keep_;
  const size_t bytes_max_;
  mutable std::mutex lock_;  ///< guards what follows, and is held for moments
  std::list<entry> entries_; ///< oldest first
  std::unordered_map<std::string, std::list<entry>::iterator> by_id_;
  size_t bytes_ = 0;
};

} // namespace lamella::actors
