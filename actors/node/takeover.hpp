/// A planned change of epochs: the next pipeline is prepared while the present one serves, and
/// takes its sequences over between two iterations. Nothing is recomputed.
#pragma once

#include "actors/node/pipeline_parts.hpp"
#include "actors/node/supervisor.hpp"

#include <caf/all.hpp>

#include <functional>
#include <vector>

namespace lamella::actors {

struct takeover_config {
  pipeline_parts* parts = nullptr;          ///< outlives the takeover
  service_ptr server;                       ///< of the pipeline that serves
  std::vector<caf::actor> parity_keepers{}; ///< of that one
  /// Whether that pipeline still serves; asked before each step.
  std::function<bool()> goes_on;
  /// Builds the next pipeline of parts->workers. May throw.
  std::function<std::vector<caf::strong_actor_ptr>()> start;
};

/// Asks MEMBERSHIP for the next epoch, has the KV copied to its shards where it must move, stops
/// the launchers of the present pipeline, copies the rest, starts the next one, and tells
/// MEMBERSHIP. Then calls `done`. A failure before the launchers are stopped changes nothing; one
/// after that has all begin anew, with the KV of the present epoch. What it returns ends it when
/// the present pipeline is lost: questions to workers that are gone stay open for a minute, and
/// must not keep that pipeline in memory.
std::function<void()> take_over(caf::event_based_actor* self, takeover_config config,
                                std::function<void(renewal)> done);

} // namespace lamella::actors
