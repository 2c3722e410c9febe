/// The settings that the parts of a service work by.
#pragma once

#include "config/settings.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace lamella::actors {

/// Those of the start. While the service runs only its attention cells change: new ones come behind
/// the others, and those without members get other settings. The sizes of pools and cells are
/// those of epochs, not these. Thread-safe.
class shared_settings {
public:
  /// As they are; later changes are in another object.
  std::shared_ptr<const config::settings> now() const {
    std::lock_guard lock{mutex_};
    return now_;
  }
  void set(config::settings x) {
    auto next = std::make_shared<const config::settings>(std::move(x));
    std::lock_guard lock{mutex_};
    now_ = std::move(next);
  }

private:
  mutable std::mutex mutex_;
  std::shared_ptr<const config::settings> now_ = std::make_shared<const config::settings>();
};

} // namespace lamella::actors
