#include "actors/shared/exceptions.hpp"

#include "actors/protocol/error.hpp"

#include <spdlog/spdlog.h>

namespace lamella::actors {

caf::error failed_by(const char* actor, const std::exception_ptr& exception) {
  std::string what = "an exception not derived from std::exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) { // its text is above
  }
  spdlog::error("actor failed with an exception actor={} what=\"{}\"", actor, what);
  return caf::make_error(ec::actor_failed, std::string{actor} + ": " + what);
}

} // namespace lamella::actors
