/// The way to the keeper of child processes, for whoever lives longer than it.
#pragma once

#include "actors/protocol/actors.hpp"
#include "actors/worker/child_keeper.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace lamella::actors {

/// From membership to the keeper of child processes, which starts later and stops earlier.
class keeper_line {
public:
  void keep(child_keeper_actor x) {
    std::lock_guard lock{mutex_};
    keeper_ = std::move(x);
  }
  /// False when there is no keeper.
  bool tell(uint32_t pid, worker_news news) {
    std::lock_guard lock{mutex_};
    if (!keeper_) return false;
    caf::anon_send(keeper_, pid, news);
    return true;
  }
  void tell(std::vector<child_command> all) {
    std::lock_guard lock{mutex_};
    if (keeper_)
      caf::anon_send(keeper_, std::make_shared<const std::vector<child_command>>(std::move(all)));
  }

private:
  std::mutex mutex_;
  child_keeper_actor keeper_;
};

} // namespace lamella::actors
