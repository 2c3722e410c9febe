/// What the WORKERs of this process are made of.
#pragma once

#include "actors/node/own_seats.hpp"
#include "actors/node/pipeline_parts.hpp"
#include "actors/worker/in_process_links.hpp"
#include "actors/worker/shared_port.hpp"

#include <memory>
#include <optional>
#include <string>

namespace lamella::actors {

/// Used by OWN SEATS, which may outlive whoever made it.
class own_maker {
public:
  explicit own_maker(std::shared_ptr<pipeline_parts> parts) : parts_{std::move(parts)} {}

  /// Before seats are taken: the data plane of this process; nothing where all seats are here.
  void connect(std::optional<link_port> plane);

  /// As own_seats_config::make.
  own_worker make(const scheduler::seat& where, const join_grant& grant) const;

private:
  worker_config config_of(const scheduler::seat& where, const join_grant& grant) const;
  worker_facts facts_of(const join_grant& grant, const gpu::device& device,
                        const std::string& name) const;

  std::shared_ptr<pipeline_parts> parts_;
  std::shared_ptr<shared_port> port_;
  std::shared_ptr<in_process_links> inside_; ///< null where seats are outside of this process
};

} // namespace lamella::actors
