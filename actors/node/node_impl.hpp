/// Implementation of a node, for its own sources only; in the order of start-up: the model
/// (node_model), the client side (node_service), the actors (node_pipeline), the rest (node);
/// reloads (node_reload).
#pragma once

#include "actors/gateway/gateway.hpp"
#include "actors/node/control_plane.hpp"
#include "actors/node/node.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/scaling/resizer.hpp"
#include "actors/shared/child_facts.hpp"
#include "actors/shared/end_watch.hpp"
#include "actors/shared/failover_tally.hpp"
#include "net/http/http_server.hpp"
#include "net/tracing/span_exporter.hpp"

#include <atomic>
#include <mutex>

namespace lamella::actors {

/// Timeout of an HTTP handler for a request with this deadline; the request ends itself earlier.
std::chrono::milliseconds answer_time(std::chrono::milliseconds deadline);

/// Reads the HTTPS certificate of the public listener and logs its expiry; null for plain HTTP.
/// Throws net::tls_identity_error.
std::shared_ptr<const net::tls_identity> identity_of(const config::settings& x);

struct node::impl {
  impl(config::settings x, bool with_http)
      : options{std::move(x)}, in_force{options}, listens{with_http},
        health{std::make_shared<health_board>(options.health.iteration_max_age,
                                              options.recovery.max_pause)},
        system_options{options.pools.distributed() ? system_config{2, options.control}
                                                   : system_config{2}},
        system{system_options} {
    options.pools.attention.members = options.pools.attention.all_members();
  }

  void open_model(const load_progress& progress);
  void choose_kernels();
  std::shared_ptr<gpu::device> open_device(const std::string& pool, const config::pool_settings& of,
                                           const char* name);
  uint64_t cache_bytes() const;
  std::string kernels() const {
    return kernel_names(model_numerics.kernels, attention_numerics.kernels);
  }
  /// As far as known; `workers`: reports of the workers of an epoch.
  void note_numerics(const epoch_members& workers);
  void size_cache();
  void describe_service();
  std::shared_ptr<net::metrics> make_metrics() const;
  std::shared_ptr<net::span_exporter> make_exporter() const;
  /// Takes where spans go, and of how many requests.
  void trace_by(const config::traces_settings& x);
  request_rules rules_of(const config::settings& x) const;
  gateway_config gateway_settings();
  void make_http();
  void listen();
  reload_report reload();
  /// Tells MEMBERSHIP of new attention cells, and asks it for the sizes of pools that the change
  /// has and `in_force` has not. Adds the keys of changes under way to the report. Returns what is
  /// wrong; then nothing was changed, but that new cells may be there without members.
  std::vector<std::string> resize_pools(const config::live_change& change, reload_report& report);
  /// The next three say what is wrong, or nothing. `known`: the settings in force, with cells that
  /// are new or get other settings, without members; `there`: what the parts of the service are to
  /// work by.
  std::string why_not_sizes(const config::settings& known, const config::settings& there,
                            const std::vector<resize_wish>& wishes);
  std::string why_no_device_of(const config::attention_pool_settings& cell);
  std::string why_no_device_of(const config::live_change& change);
  /// What is wrong, or none. `roster`, `settled`: of control_plane::roster_with().
  caf::error take_cells(const config::settings& known, const membership_actor& whom,
                        const cells_ptr& roster, std::atomic<bool>& settled);
  /// Other sizes between which pools follow the load, or the workers that there are.
  void take_bounds(const config::live_change& change);
  /// Of pools that did not get their new sizes `in_force` takes back the old ones.
  void take_sizes_back();
  void load_weights(const load_progress& progress);
  void open_rank_devices();
  /// Of all attention cells; `attention_device` becomes the first.
  void open_attention_devices();
  void make_replica_program();
  void join_workers();
  void tell_who_is_there(const seat_news& x);
  void forget_workers(const std::set<scheduler::seat>& seats);
  uint32_t count_ready(const seat_news& x, scheduler::worker_role role);
  health_board::role prefill_on_replicas(bool up);
  bool device_lost();
  /// Spawns the supervisor of the pipeline; what it calls, on its thread, are the next four.
  void build();
  /// Asks for an epoch of workers; `ready` as of subtree::prepare.
  void gather_workers(caf::event_based_actor* self,
                      std::function<void(std::optional<std::string>)> ready);
  std::vector<caf::strong_actor_ptr> start_pipeline(caf::event_based_actor* self);
  child_facts facts_of(const caf::actor_addr& child);
  /// As subtree::on_trouble.
  void note_trouble(bool given_up, const std::string& role,
                    std::optional<net::failover_cause> cause);
  void watch_vital_actors();
  /// At the start, and with other bounds of the pools.
  void watch_load(const config::settings& now);
  void give_up();
  std::vector<vital_actor> vital() const;
  bool wait_first_token(std::chrono::milliseconds limit);
  bool wait_answers(std::chrono::steady_clock::time_point until);
  /// Whether a pool of compute seats is in this process.
  bool needs_weights() const {
    const auto& pools = options.pools;
    return pools.model.placement == config::placement::in_process
           || (pools.prefill.placement == config::placement::in_process
               && pools.prefill.has_seats());
  }

  config::settings options;
  config::settings in_force; ///< as given, with the changes of reloads
  bool listens;
  std::shared_ptr<health_board> health;
  model::loaded_model model;
  uint64_t model_digest = 0; ///< at load time; the file may have changed since
  std::shared_ptr<pipeline_parts> parts = std::make_shared<pipeline_parts>();
  /// Devices of weights and KV; null for devices of other processes.
  std::shared_ptr<gpu::device> model_device, attention_device;
  std::vector<std::shared_ptr<gpu::device>> rank_devices; ///< of ranks 1, 2, ... (L-M03)
  gpu::device_numerics model_numerics, attention_numerics;
  // Everything above outlives the actors, everything below may hold handles to them.
  system_config system_options;
  std::optional<end_watch> ending; ///< of the system
  caf::actor_system system;
  std::optional<system_watch> turns{std::in_place, system, turns_limit};
  std::shared_ptr<net::metrics> metrics;
  std::shared_ptr<net::span_exporter> exporter; ///< null until the service is described
  link_port_maker links;
  std::string worker_program;
  std::unique_ptr<control_plane> control;
  gateway_actor front;
  caf::actor root, watch;  ///< the supervisor and, for actors without one, the warden
  autoscaler_actor scaler; ///< null where no pool has followed the load so far
  std::unique_ptr<net::http_server> http;
  const net::http_memory public_memory{options.bodies_bytes()};
  const net::http_memory admin_memory{options.bodies_bytes()};
  std::function<void(bool)> end_callback = [](bool) {};
  configuration_source configuration = [this] {
    config::loaded same;
    same.value = in_force;
    return same;
  };
  std::function<void(const config::settings&)> on_reload = [](const auto&) {};
  const std::shared_ptr<resize_outcomes> resizes = std::make_shared<resize_outcomes>();
  std::mutex reload_turn; ///< held while one runs; of `in_force` and `longest_deadline`
  std::mutex end_mutex;   ///< of `ending_node`, and of what a reload changes until that is set
  bool ending_node = false;
  std::chrono::milliseconds longest_deadline = in_force.limits.request_deadline; ///< so far
  std::atomic<std::chrono::milliseconds> drain_limit{in_force.shutdown.drain};
  std::atomic<bool> hurried{false};
  std::atomic<bool> drained{false};
  bool stopped = false;
  std::mutex server_mutex;
  service_ptr server;                     ///< of the newest pipeline
  std::vector<caf::actor> parity_keepers; ///< of that one
  std::vector<caf::actor_addr> members;   ///< of the newest pipeline; weak, so that they may end
  std::vector<child_facts> facts;         ///< of each of them
  std::set<scheduler::seat> told_seats;   ///< in metrics; of MEMBERSHIP's thread
  failover_tally tally;                   ///< of the supervisor's thread
  uint64_t starts = 0;                    ///< of pipelines that took over from none; likewise
};

} // namespace lamella::actors
