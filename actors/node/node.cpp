#include "actors/node/node_impl.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/shared/events.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include <poll.h>

namespace lamella::actors {
namespace {

/// For the first token after a start or a rebuild.
constexpr std::chrono::seconds first_token_timeout{60};

/// The longest time until a start sees that it was interrupted.
constexpr std::chrono::milliseconds interrupt_check{50};

/// The longest time until a drain sees that it was hurried.
constexpr std::chrono::milliseconds hurry_check{20};

/// For actors that were told to end when a node goes: ten seconds, in looks, for a process that
/// stood still has not given them any.
constexpr int last_looks = 2000, last_look_ms = 5;

/// For the supervisor of the pipeline, which may be building one.
constexpr caf::timespan last_build = std::chrono::seconds{5};

/// Until an actor has ended, or that time has passed.
void await_end(caf::actor_system& system, const caf::actor& whom, caf::timespan limit) {
  caf::scoped_actor self{system};
  self->monitor(whom);
  self->receive([](const caf::down_msg&) {}, caf::after(limit) >> [] {});
}

} // namespace

/// The canary of the new pipeline beats, and whoever hands it requests has it: the gateway, or the
/// callers of server() where there is none. Blocks for at most `limit` for each of the two.
bool node::impl::wait_first_token(std::chrono::milliseconds limit) {
  return health->beats.wait_first(limit) && health->wait_served(limit);
}

/// Whether all answers of the public listener are written in time: those that slow readers have not
/// taken yet, and those that no REQUEST makes. Operators who wait for events are not waited for;
/// they come in meanwhile and see how the drain goes.
bool node::impl::wait_answers(std::chrono::steady_clock::time_point until) {
  http->stop_accepting("public");
  http->close_idle();
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (http->wait_answers("public", std::min(until, now + hurry_check))) return true;
    if (now >= until || hurried) return false;
  }
}

node::node(config::settings options, bool listens)
    : impl_{std::make_unique<impl>(std::move(options), listens)} {
  // Prompts run on the replicas in this process: one worker cuts them even where none is asked for.
  auto& prefill = impl_->options.pools.prefill.members;
  prefill = std::max(1u, prefill);
}

void node::connect_with(link_port_maker links, std::string worker_program) {
  impl_->links = std::move(links);
  impl_->worker_program = std::move(worker_program);
}

bool node::start(const load_progress& progress, const std::function<bool()>& interrupted) {
  const auto stop = [&] { return impl_->drained || (interrupted && interrupted()); };
  impl_->open_model(progress);
  impl_->choose_kernels();
  impl_->size_cache();
  impl_->describe_service();
  if (impl_->listens) impl_->listen();
  impl_->load_weights(progress);
  impl_->join_workers();
  impl_->build();
  impl_->watch_vital_actors();
  impl_->watch_load(impl_->options);
  progress("warm", 0, 1);
  const bool waits_for_others = impl_->options.pools.distributed();
  const auto until = std::chrono::steady_clock::now() + first_token_timeout;
  while (!impl_->wait_first_token(interrupt_check)) {
    if (stop() && waits_for_others) return false;
    if (impl_->drained || (!waits_for_others && std::chrono::steady_clock::now() > until))
      throw start_error{70, "no token came through the pipeline"};
  }
  impl_->health->enter(health_board::phase::serving);
  impl_->metrics->set_load_progress("warm", 1);
  progress("warm", 1, 1);
  return true;
}

uint16_t node::http_port() const { return impl_->http->port("public"); }
uint16_t node::admin_port() const { return impl_->http->port("admin"); }
uint16_t node::control_port() const { return impl_->control ? impl_->control->port() : 0; }

std::string node::summary() const {
  const auto& x = *impl_;
  const auto& spec = x.model.program->spec;
  const auto& attention = x.options.pools.attention;
  const auto ranks = x.model.program->ranks();
  return fmt::format(
      "model {} ({} layers, {} slices), {} replica(s){}, {} attention shard(s) by {}, {} KV slots\n"
      "kernels {} on {} thread(s), fingerprint {}",
      x.parts->base.model_name, spec.layers, x.model.program->slices.size(),
      x.options.pools.model.members, ranks > 1 ? fmt::format(" of {} ranks", ranks) : std::string{},
      attention.all_members(),
      !attention.cells.empty()                             ? "cell"
      : attention.partition == config::partition::requests ? "request"
                                                           : "head",
      x.parts->layout.slots(), x.kernels(), x.parts->engine->threads(), x.parts->base.fingerprint);
}

bool node::drain(std::chrono::milliseconds limit) {
  auto& x = *impl_;
  x.stopped = true;
  x.drained = true;
  bool complete = true;
  const auto until = std::chrono::steady_clock::now() + limit;
  if (x.front) {
    x.health->enter(health_board::phase::draining);
    tell(event_kind::service_draining, {{"limit_seconds", limit.count() / 1000}});
    // A gateway that answers late must not find this frame gone: the flag is shared.
    auto finished = std::make_shared<std::promise<void>>();
    auto waits = finished->get_future();
    x.system.spawn([front = x.front, finished](caf::event_based_actor* asker) {
      asker->request(front, std::chrono::seconds{86400}, drain_atom_v)
          .then([finished](bool) { finished->set_value(); },
                [finished](caf::error&) { finished->set_value(); });
    });
    while (waits.wait_for(hurry_check) != std::future_status::ready) {
      if (std::chrono::steady_clock::now() < until && !x.hurried) continue;
      complete = false;
      caf::anon_send(x.front, wake_atom_v);
      waits.wait_for(std::chrono::seconds{2});
      break;
    }
  }
  if (x.http) {
    complete = x.wait_answers(until) && complete;
    x.http->stop(std::chrono::milliseconds{500});
  }
  if (x.exporter) x.exporter->stop();
  return complete;
}

void node::hurry() { impl_->hurried = true; }

void node::on_end(std::function<void(bool)> callback) { impl_->end_callback = std::move(callback); }

caf::actor_system& node::system() { return impl_->system; }

service_ptr node::server() const {
  std::lock_guard lock{impl_->server_mutex};
  return impl_->server;
}

std::vector<caf::strong_actor_ptr> node::pipeline_actors() const {
  std::lock_guard lock{impl_->server_mutex};
  std::vector<caf::strong_actor_ptr> result;
  for (const auto& x : impl_->members)
    if (auto alive = caf::actor_cast<caf::strong_actor_ptr>(x)) result.push_back(std::move(alive));
  return result;
}

std::vector<vital_actor> node::vital_actors() const { return impl_->vital(); }

const pipeline_parts& node::parts() const { return *impl_->parts; }

node::~node() {
  auto& x = *impl_;
  if (!x.stopped) drain(std::chrono::milliseconds{0});
  {
    std::lock_guard lock{x.end_mutex};
    x.ending_node = true;
  }
  x.http.reset();
  if (x.watch) caf::anon_send_exit(x.watch, caf::exit_reason::user_shutdown);
  x.watch = nullptr;
  if (x.scaler) caf::anon_send_exit(x.scaler, caf::exit_reason::user_shutdown);
  x.scaler = nullptr;
  if (x.root) caf::anon_send_exit(x.root, caf::exit_reason::user_shutdown);
  if (x.front) caf::anon_send_exit(x.front, caf::exit_reason::user_shutdown);
  if (const auto& aside = x.parts->base.aside)
    caf::anon_send_exit(aside, caf::exit_reason::user_shutdown);
  // A killed supervisor has not reported its end.
  for (const auto& part : pipeline_actors())
    caf::anon_send_exit(part, caf::exit_reason::user_shutdown);
  if (const auto& kept = x.parts->kept->handle)
    caf::anon_send_exit(kept, caf::exit_reason::user_shutdown);
  // The supervisor uses the parts that go below, until it has ended.
  if (x.root) await_end(x.system, x.root, last_build);
  // MEMBERSHIP calls the control plane, until it has ended.
  if (const auto members = caf::actor_cast<caf::actor>(x.parts->members)) {
    caf::anon_send_exit(members, caf::exit_reason::user_shutdown);
    await_end(x.system, members, last_build);
  }
  x.root = nullptr;
  x.front = nullptr;
  x.parts->base.aside = nullptr;
  x.parts->members = nullptr;
  x.parts->suspects->on_change(nullptr);
  x.control.reset();
  x.ending.emplace(end_limit); // it watches from here on: the other one has an actor of its own
  x.turns.reset();
  // Actors terminate when asked; one that does not must not block the process.
  for (int look = 0; x.system.registry().running() > 0 && look < last_looks; ++look)
    poll(nullptr, 0, last_look_ms);
  x.parts->workers = nullptr; // their actors are of the system
  const auto left = x.system.registry().running();
  if (left > 0) spdlog::warn("actors did not terminate count={}", left);
  x.system.await_actors_before_shutdown(left == 0);
}

} // namespace lamella::actors
