/// What a node is made of: for its own sources alone, which read in the order of a start: the model
/// (node_model), what clients see of it (node_service), the actors (node_tree), the rest (node).
#pragma once

#include "actors/control_plane.hpp"
#include "actors/gateway.hpp"
#include "actors/node.hpp"
#include "actors/system_config.hpp"
#include "net/http_server.hpp"

#include <atomic>
#include <mutex>

namespace lamella::actors {

struct node::impl {
  impl(config::settings x, bool with_http)
      : options{std::move(x)}, listens{with_http}, health{std::make_shared<health_board>(
                                                       options.health.iteration_max_age)},
        system_options{options.pools.distributed() ? system_config{2, options.control}
                                                   : system_config{2}},
        system{system_options} {}

  void open_model(const load_progress& progress);
  void choose_kernels();
  std::shared_ptr<gpu::device> open_device(const char* pool, const std::string& option,
                                           const char* name);
  uint64_t cache_bytes() const;
  std::string kernels() const { return kernel_names(model_device->ops(), attention_device->ops()); }
  void size_cache();
  void describe_service();
  std::shared_ptr<net::metrics> make_numbers() const;
  void listen();
  void load_weights(const load_progress& progress);
  void join_workers();
  void tell_who_is_there(const seat_news& x);
  void build();
  void watch_vital_actors();
  void give_up();
  std::vector<vital_actor> vital() const;
  void set_roles(bool up);
  bool wait_first_token(std::chrono::milliseconds limit);
  /// Does any pool of compute seats live in this process?
  bool needs_weights() const {
    const auto& pools = options.pools;
    return pools.model.placement == config::placement::in_process
           || (pools.prefill.placement == config::placement::in_process
               && pools.prefill.has_seats());
  }

  config::settings options;
  bool listens;
  std::shared_ptr<health_board> health;
  model::loaded_model model;
  std::shared_ptr<pipeline_parts> parts = std::make_shared<pipeline_parts>();
  std::shared_ptr<gpu::device> model_device, attention_device; ///< where weights and KV go
  // Everything above outlives the actors, everything below may hold handles to them.
  system_config system_options;
  caf::actor_system system;
  std::shared_ptr<net::metrics> numbers;
  link_port_maker links;
  std::string worker_program;
  std::unique_ptr<control_plane> control;
  gateway_actor front;
  caf::actor root, watch; ///< the supervisor and, for those without one, the warden
  std::unique_ptr<net::http_server> http;
  std::function<void(bool)> end_callback = [](bool) {};
  std::atomic<bool> hurried{false};
  std::atomic<bool> drained{false};
  bool stopped = false;
  std::mutex server_mutex;
  service_ptr server;                   ///< of the newest pipeline
  std::vector<caf::actor_addr> members; ///< of the newest pipeline; weak, so that they may end
};

} // namespace lamella::actors
