/// WARDEN: exits the process when an irreplaceable actor has terminated (reliability A8).
#pragma once

#include <caf/all.hpp>

#include <functional>
#include <string>
#include <vector>

namespace lamella::actors {

/// An actor that the process needs to serve and that has no supervisor.
struct vital_actor {
  std::string name; ///< in the log
  caf::strong_actor_ptr handle;
};

struct warden_config {
  std::vector<vital_actor> watched;
  std::function<void(const std::string& name)> on_loss;
};

/// Calls `on_loss` once, when the first of them terminates for any reason other than the shutdown
/// of the service (user_shutdown). Holds no references to them; keep a strong handle to it.
caf::behavior warden(caf::event_based_actor* self, const warden_config& config);

} // namespace lamella::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(lamella::actors::warden_config)
