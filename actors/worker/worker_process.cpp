#include "actors/worker/worker_process.hpp"

#include "actors/machine/model_store.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/machine/topology.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/pools.hpp"
#include "actors/protocol/system_config.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/end_watch.hpp"
#include "actors/shared/explain.hpp"
#include "actors/worker/control_link.hpp"
#include "actors/worker/door.hpp"
#include "actors/worker/worker_config.hpp"
#include "base/patience.hpp"
#include "scheduler/membership/reach_book.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <optional>
#include <utility>

#include <unistd.h>

namespace lamella::actors {

namespace {

constexpr caf::timespan answer_timeout = std::chrono::seconds{5};
constexpr std::chrono::milliseconds look_around{100};
/// Before a worker that cannot be drained at the moment asks again.
constexpr std::chrono::seconds drain_again{1};
/// For the end of what is known to have failed: hung or not, the process ends with the same code.
constexpr std::chrono::milliseconds failed_timeout{500};

/// A step of the join that the other side did not answer, or answered with no.
struct join_failure {
  caf::error reason;
};

template <class Answer, class... Question>
Answer ask(caf::scoped_actor& self, const door_actor& door, const Question&... x) {
  Answer answer;
  caf::error reason;
  self->request(door, caf::duration{answer_timeout}, x...)
      .receive([&](Answer& y) { answer = std::move(y); }, [&](caf::error& e) { reason = e; });
  if (reason) throw join_failure{std::move(reason)};
  return answer;
}

session_end end_of(worker_end how) {
  switch (how) {
  case worker_end::sent_away:
    return session_end::lost;
  case worker_end::dismissed:
    return session_end::stopped;
  case worker_end::failed:
    break;
  }
  return session_end::failed;
}

session_end meaning_of(caf::actor_system& system, const caf::error& reason) {
  spdlog::error("not joined reason=\"{}\"", explain(system, reason));
  if (reason == ec::join_denied) return session_end::denied;
  if (reason == ec::join_refused) return session_end::refused;
  return session_end::lost;
}

} // namespace

worker_process::worker_process(worker_options options, const net::shared_secret& secret,
                               link_port_maker links)
    : options_{std::move(options)}, secret_{secret}, links_{std::move(links)} {}

/// Engine and device; throws std::runtime_error that says what is missing.
void worker_process::open(const worker_terms& terms) {
  const auto option = device_option(terms);
  if (device_ && opened_ == option && other_devices_.size() + 1 == terms.ranks) return;
  const bool computes = !config::is_cuda(option);
  if (!engine_) {
    std::string why;
    // Beside a device of its own the engine carries frames and no more.
    const auto* ops = gpu::find_operators(computes ? terms.kernels.c_str() : "auto", &why);
    if (ops == nullptr) throw std::runtime_error{"kernels " + terms.kernels + ": " + why};
    const auto threads = terms.threads == 0 ? usable_processors() : terms.threads;
    if (computes) spread_memory();
    engine_ = std::make_shared<gpu::host_engine>(computes ? threads : 1, *ops);
    devices_ = std::make_shared<device_set>(engine_, options_.open_cuda);
  }
  auto device = devices_->get(option, "host/loader");
  if (!device->on_host()) check_fits(*device, terms);
  auto others = devices_->behind(option, terms.ranks, "host/loader");
  check_alike(*device, others);
  if (opened_ != option) weights_.reset(); // those of other devices
  opened_ = option;
  device_ = std::move(device);
  other_devices_ = std::move(others);
}

/// Whether a device of its own can do this seat's attention, and has room for its KV.
void worker_process::check_fits(const gpu::device& device, const worker_terms& terms) const {
  const bool attends = options_.role == scheduler::worker_role::attention;
  if (!attends && !terms.prefill_owns_kv) return;
  const auto shape = attention_of(terms, attends);
  if (const auto why = refuse_attention(device, shape); !why.empty())
    throw std::runtime_error{device.name() + ": " + why};
  const auto slots = attends ? terms.pool.layout.largest() : terms.pool.own_slots;
  const auto needed = uint64_t{terms.layers} * slots * shape.kv.row_bytes();
  if (const auto free = device.free_bytes(); free < needed)
    throw std::runtime_error{
        fmt::format("{} has {} bytes free, the KV cache needs {}", device.name(), free, needed)};
}

std::string worker_process::device_option(const worker_terms& terms) const {
  return options_.device == "auto" ? terms.device : options_.device;
}

void worker_process::load(const worker_terms& terms, const std::function<bool()>& stop) try {
  refusal_.clear();
  open(terms);
  if (options_.role == scheduler::worker_role::attention)
    shapes_ = terms.shapes; // a shard has no model: it takes the shape it is given
  else
    patiently([&] { load_weights(terms, stop); });
} catch (const std::runtime_error& e) {
  // The control process says no, so that its log has the reason, too.
  refusal_ = e.what();
  spdlog::error("cannot serve this seat reason=\"{}\"", refusal_);
}

void worker_process::load_weights(const worker_terms& terms, const std::function<bool()>& stop) {
  if (weights_ && digest_ == terms.model_digest && other_weights_.size() + 1 == terms.ranks) return;
  const auto path =
      options_.model.empty() ? std::filesystem::path{terms.model_path} : options_.model;
  auto opened = model::load_model(path);
  digest_ = opened.file->digest();
  shapes_ = shapes_text(opened.program->spec, name_of(terms.wire), name_of(terms.kv));
  if (digest_ != terms.model_digest) return; // it will be refused; no use in loading it
  if (terms.ranks > 1 || !terms.early_q)
    opened.program = model::rank_program(opened, terms.ranks, query_order_of(terms.early_q));
  // Those who serve on the same processors go first: threads of the engine stay as they are.
  gpu::host_engine packers{engine_->threads(), engine_->ops()};
  const auto packer = packers.make_device("host/packer");
  const auto pack = [&](gpu::device& where, uint32_t rank) {
    auto packed = pack_weights(
        opened, where.on_host() ? *packer : where,
        [&](uint64_t, uint64_t) {
          if (stop()) throw stopped_here{};
        },
        rank);
    for (const auto& x : where.remarks())
      spdlog::warn("device warning device=\"{}\" text=\"{}\"", where.name(), x);
    spdlog::info("weights loaded path={} rank={} of={} bytes={}", path.string(), rank, terms.ranks,
                 packed->bytes());
    return packed;
  };
  weights_.reset(); // before others take their memory
  other_weights_.clear();
  auto weights = pack(*device_, 0); // all ranks' or none's: whoever joins again looks at them
  std::vector<std::shared_ptr<const gpu::packed_weights>> others;
  for (uint32_t r = 1; r < terms.ranks; ++r) others.push_back(pack(*other_devices_[r - 1], r));
  program_ = opened.program;
  weights_ = std::move(weights);
  other_weights_ = std::move(others);
}

worker_facts worker_process::facts() const {
  worker_facts x;
  x.version = LAMELLA_VERSION;
  x.shapes = shapes_;
  x.model_digest = digest_;
  x.refusal = refusal_;
  if (!device_) return x;
  const auto numerics = device_->numerics();
  x.kernels = numerics.kernels;
  x.sizes = numerics.sizes;
  x.device = device_->on_host() ? "host" : names_of(*device_, other_devices_);
  return x;
}

/// From the door to the end of the seat. Its actor must be gone before the system ends.
class worker_process::session {
public:
  /// Throws link_error, denied_error, refused_error.
  session(worker_process& process, caf::actor_system& system, const std::function<bool()>& stop,
          const std::function<bool()>& hurry)
      : process_{process}, system_{system}, stop_{stop}, hurry_{hurry}, self_{system},
        reached_{
            reach_door(system, process.options_.join, process.options_.control, process.secret_)} {
    self_->monitor(reached_.door);
  }

  session_end run() {
    if (const auto end = join()) return *end;
    spdlog::info("serving seat={}/{}", grant_.role, grant_.index);
    process_.served_ = true;
    const auto result = serve();
    self_->send_exit(have_.handle, caf::exit_reason::user_shutdown);
    return result;
  }

private:
  join_ask question() const;
  std::optional<session_end> join();
  void start_worker();
  session_end serve();
  bool ask_to_drain();
  bool drain_goes_on();

  /// What the WORKER says at its end; it may outlive our wait, so it has its own place.
  struct outcome {
    std::atomic<bool> told{false};
    std::atomic<worker_end> how{worker_end::failed}; ///< when told
  };

  worker_process& process_;
  caf::actor_system& system_;
  const std::function<bool()>&stop_, &hurry_;
  std::optional<std::chrono::steady_clock::time_point> drained_by_; ///< nothing: not asked to stop
  /// When to ask for others to take its part over; nothing: they do, or it was not asked to stop.
  std::optional<std::chrono::steady_clock::time_point> asks_at_;
  bool told_that_it_waits_ = false; ///< in the log: the drain cannot begin yet
  caf::scoped_actor self_;
  const reached_door reached_;
  join_grant grant_;
  worker_facts have_;
  const std::shared_ptr<outcome> ended_ = std::make_shared<outcome>();
};

join_ask worker_process::session::question() const {
  const auto& options = process_.options_;
  return {join_protocol,
          std::string{scheduler::to_string(options.role)},
          options.name,
          LAMELLA_VERSION,
          host_name(),
          static_cast<uint32_t>(getpid()),
          options.preferred,
          static_cast<uint32_t>(options.control.heartbeat.count()),
          static_cast<uint32_t>(options.control.dead.count()),
          net::random_bytes(nonce_bytes),
          options.cell};
}

/// Takes a seat, loads what it needs and reports that. Nothing: it is taken.
std::optional<session_end> worker_process::session::join() try {
  const auto asked = question();
  const auto challenge = ask<join_challenge>(self_, reached_.door, asked);
  grant_ = ask<join_grant>(
      self_, reached_.door,
      join_proof{challenge.nonce, worker_proof(process_.secret_, asked, challenge)});
  if (!proves_control(process_.secret_, grant_.proof, asked, challenge)) {
    spdlog::error("not joined reason=\"the control process has another secret\"");
    return session_end::denied;
  }
  spdlog::info("joined seat={}/{} incarnation={}", grant_.role, grant_.index, grant_.incarnation);
  process_.load(grant_.terms, stop_);
  have_ = process_.facts();
  if (process_.refusal_.empty()) start_worker();
  ask<bool>(self_, reached_.door, have_);
  return std::nullopt;
} catch (const join_failure& failure) {
  if (have_.handle) self_->send_exit(have_.handle, caf::exit_reason::user_shutdown);
  return meaning_of(system_, failure.reason);
} catch (const stopped_here&) {
  return session_end::stopped;
}

void worker_process::session::start_worker() {
  const auto& terms = grant_.terms;
  auto port =
      process_.links_({terms.link_secret, terms.link_cluster, terms.transport, terms.link_folder,
                       process_.engine_->bell(), reached_.here, reached_.there,
                       scheduler::failing_needed(process_.options_.control.dead)});
  have_.address = port.address;
  worker_config config;
  config.where = {process_.options_.role, grant_.index};
  config.incarnation = grant_.incarnation;
  config.terms = grant_.terms;
  config.engine = process_.engine_;
  config.make_device = [devices = process_.devices_, option = process_.device_option(terms)](
                           const std::string& name, uint32_t rank) {
    return devices->get(config::device_of_rank(option, rank), name);
  };
  config.program = process_.program_;
  config.weights = process_.weights_;
  config.other_weights = process_.other_weights_;
  config.port = std::move(port);
  config.on_end = [ended = ended_](const std::string& reason, worker_end how) {
    spdlog::info("worker exiting failed={} reason=\"{}\"", how == worker_end::failed, reason);
    ended->how = how;
    ended->told = true;
  };
  have_.handle = actors::start_worker(system_, std::move(config));
  self_->monitor(have_.handle);
}

/// Asks for others to take its part over. It serves on until it is sent away.
bool worker_process::session::ask_to_drain() try {
  const auto limit = process_.options_.drain;
  const auto seat = scheduler::to_string(scheduler::seat{process_.options_.role, grant_.index});
  const auto answer = ask<pool_change>(self_, reached_.door, worker_drain{seat, true});
  if (answer.state == ask_again) {
    // Once: it asks each second.
    if (!std::exchange(told_that_it_waits_, true))
      spdlog::info("drain has to wait seat={} reason=\"{}\"", seat, answer.reason);
    asks_at_ = std::chrono::steady_clock::now() + drain_again;
    return true;
  }
  asks_at_.reset();
  spdlog::info("draining seat={} limit_seconds={:.1f}", seat,
               std::chrono::duration<double>{limit}.count());
  return true;
} catch (const join_failure& failure) {
  spdlog::warn("not drained reason=\"{}\"", explain(system_, failure.reason));
  return false;
}

/// Asked to stop: whether it is to serve on for a while.
bool worker_process::session::drain_goes_on() {
  const auto limit = process_.options_.drain;
  if (limit.count() == 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!drained_by_) {
    drained_by_ = now + limit;
    asks_at_ = now;
  }
  if (asks_at_ && now >= *asks_at_ && !ask_to_drain()) return false;
  if (hurry_()) {
    spdlog::warn("not drained reason=\"told to stop again\"");
    return false;
  }
  if (std::chrono::steady_clock::now() < *drained_by_) return true;
  spdlog::warn("not drained reason=\"nobody has taken its part over in time\"");
  return false;
}

/// Waits until the control process or the WORKER is gone, or for `stop` and its drain.
session_end worker_process::session::serve() {
  auto result = session_end::stopped;
  bool over = false;
  while (!over && (!stop_() || drain_goes_on())) {
    self_->receive(
        [&](const caf::down_msg& down) {
          over = true;
          if (down.source == caf::actor_cast<caf::actor_addr>(reached_.door)) {
            if (down.reason == caf::exit_reason::user_shutdown)
              spdlog::info("the service has stopped");
            else
              spdlog::warn("control process lost reason=\"{}\"", explain(system_, down.reason));
            result = session_end::lost;
            return;
          }
          // A WORKER that was not sent away has ended by a fault, with a word or without.
          result = end_of(ended_->how);
          if (!ended_->told)
            spdlog::critical("worker exited reason=\"{}\"", explain(system_, down.reason));
        },
        caf::after(look_around) >> [] {});
  }
  // Whoever was asked to stop does not look for a service again.
  return drained_by_ && result == session_end::lost ? session_end::stopped : result;
}

session_end worker_process::run(const std::function<bool()>& stop,
                                const std::function<bool()>& hurry) try {
  served_ = false;
  system_config configuration{2, options_.control, system_config::heartbeats::once_connected};
  std::optional<end_watch> watch; // while the system ends, below
  caf::actor_system system{configuration};
  auto result = session_end::stopped;
  const auto watched = caf::detail::make_scope_guard(
      [&] { watch.emplace(result == session_end::failed ? failed_timeout : hang_limit); });
  session one{*this, system, stop, hurry};
  result = one.run();
  return result;
} catch (const denied_error& e) {
  spdlog::error("not joined reason=\"{}\"", e.what());
  return session_end::denied;
} catch (const refused_error& e) {
  spdlog::error("not joined reason=\"{}\"", e.what());
  return session_end::refused;
} catch (const link_error& e) {
  spdlog::warn("{}", e.what());
  return session_end::unreachable;
} catch (const std::bad_alloc&) {
  spdlog::error("not joined reason=\"not enough memory for the model's weights\"");
  return session_end::failed;
}

} // namespace lamella::actors
