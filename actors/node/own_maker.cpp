#include "actors/node/own_maker.hpp"

#include "actors/machine/sizing.hpp"

namespace lamella::actors {

void own_maker::connect(std::optional<link_port> plane) {
  if (plane) {
    port_ = std::make_shared<shared_port>(std::move(*plane));
  } else {
    inside_ = std::make_shared<in_process_links>();
    port_ = std::make_shared<shared_port>(inside_->port());
  }
}

own_worker own_maker::make(const scheduler::seat& where, const join_grant& grant) const {
  const auto name = "host/" + name_of(where);
  const auto device = parts_->devices->get(grant.terms.device, name);
  if (inside_) inside_->sits(scheduler::number_of(where), device);
  return {config_of(where, grant), facts_of(grant, *device, name)};
}

worker_config own_maker::config_of(const scheduler::seat& where, const join_grant& grant) const {
  worker_config w;
  w.where = where;
  w.incarnation = grant.incarnation;
  w.terms = grant.terms;
  w.engine = parts_->engine;
  w.make_device = [devices = parts_->devices, option = grant.terms.device](const std::string& x,
                                                                           uint32_t rank) {
    return devices->get(config::device_of_rank(option, rank), x);
  };
  w.program = parts_->program;
  w.weights = parts_->weights;
  w.other_weights = parts_->other_weights;
  w.port = port_->of_worker();
  w.streams_on_device = [parts = parts_, option = grant.terms.device](uint32_t rank) {
    return streams_on(*parts->options.now(), config::device_of_rank(option, rank));
  };
  // Where others report what they have done, so do these.
  if (inside_) w.metrics = parts_->metrics;
  return w;
}

worker_facts own_maker::facts_of(const join_grant& grant, const gpu::device& device,
                                 const std::string& name) const {
  const auto& terms = grant.terms;
  const auto others = parts_->devices->behind(terms.device, terms.ranks, name);
  const auto numerics = device.numerics();
  return {{},
          LAMELLA_VERSION,
          numerics.kernels,
          terms.shapes,
          terms.model_digest,
          port_->address(),
          names_of(device, others),
          numerics.sizes};
}

} // namespace lamella::actors
