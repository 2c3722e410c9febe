#include "actors/node.hpp"

#include "actors/gateway.hpp"
#include "actors/sizing.hpp"
#include "actors/supervisor.hpp"
#include "actors/system_config.hpp"
#include "model/load.hpp"
#include "net/http_server.hpp"
#include "scheduler/head_partition.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace lamella::actors {

namespace {

/// Fewer slots than this serve nobody.
constexpr uint32_t slots_min = 128;

/// Restarts of the whole pipeline before the process gives up (reliability A8).
constexpr uint32_t restarts_max = 5;
constexpr std::chrono::seconds restart_window{30};

/// For the first token after a start or a rebuild.
constexpr std::chrono::seconds first_token_patience{60};

uint64_t hash_of(std::string_view text, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325 ^ seed;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}

/// version + numerics_id: two answers with one fingerprint came from the same arithmetic
/// (decision 29).
std::string fingerprint_of(const config::settings& options, const gpu::operators& ops,
                           uint64_t digest) {
  const auto wire = options.numerics.wire == config::number_type::f32 ? "f32" : "f16";
  const auto kv = options.kv.dtype == config::number_type::f32 ? "f32" : "f16";
  const auto id = hash_of(fmt::format("{} wire={} kv={} chunk=256", ops.name, wire, kv), digest);
  return fmt::format("lamella-{}-{:08x}", LAMELLA_VERSION, static_cast<uint32_t>(id ^ id >> 32));
}

const char* name_of(config::operator_set set) {
  switch (set) {
  case config::operator_set::automatic:
    return "auto";
  case config::operator_set::reference:
    return "reference";
  case config::operator_set::portable:
    return "portable";
  case config::operator_set::avx2:
    return "avx2";
  case config::operator_set::avx512:
    return "avx512";
  }
  return "auto";
}

net::api_keys keys_from(const std::filesystem::path& file) {
  if (file.empty()) return {};
  try {
    return net::api_keys::from_file(file);
  } catch (const std::exception& e) {
    throw start_error{78, e.what()};
  }
}

} // namespace

struct node::impl {
  impl(config::settings x, bool with_http)
      : options{std::move(x)}, listens{with_http}, health{std::make_shared<health_board>(
                                                       options.health.iteration_max_age)},
        system_options{2}, system{system_options} {}

  void open_model(const load_progress& progress);
  void choose_kernels();
  void size_cache();
  void describe_service();
  void listen();
  void load_weights(const load_progress& progress);
  void build();
  void set_roles(bool up);

  config::settings options;
  bool listens;
  std::shared_ptr<health_board> health;
  model::loaded_model model;
  std::shared_ptr<pipeline_parts> parts = std::make_shared<pipeline_parts>();
  // Everything above outlives the actors, everything below may hold handles to them.
  system_config system_options;
  caf::actor_system system;
  std::shared_ptr<net::metrics> numbers;
  gateway_actor front;
  caf::actor root;
  std::unique_ptr<net::http_server> http;
  std::function<void(bool)> end_callback = [](bool) {};
  std::atomic<bool> hurried{false};
  std::atomic<bool> drained{false};
  bool stopped = false;
  std::mutex server_mutex;
  service_ptr server;                   ///< of the newest pipeline
  std::vector<caf::actor_addr> members; ///< of the newest pipeline; weak, so that they may end
};

void node::impl::open_model(const load_progress& progress) {
  auto path = options.model.path;
  const bool is_default = path.empty();
  if (is_default) path = model::default_model_path();
  if (!std::filesystem::exists(path))
    throw start_error{66, "model file not found: " + path.string(),
                      is_default ? "run 'lamella model fetch', or give --model PATH"
                                 : "check the path given with --model or model.path"};
  progress("map", 0, 1);
  try {
    model = model::load_model(path);
  } catch (const model::file_error& e) {
    throw start_error{65, e.what()};
  }
  progress("map", 1, 1);
  const auto& spec = model.program->spec;
  const auto& pool = options.pools.attention;
  if (!pool.cells.empty())
    throw start_error{78, "pools.attention.cells: several pools are not available in this version",
                      "give the options of the one pool under pools.attention"};
  if (pool.partition == config::partition::heads)
    if (auto why = scheduler::refuse_partition(spec.kv_heads, pool.members))
      throw start_error{78, "pools.attention.members: " + *why};
  if (options.model.context_tokens && *options.model.context_tokens > spec.context_tokens)
    throw start_error{78, fmt::format("model.context_tokens: {} is more than the {} the model was "
                                      "trained for",
                                      *options.model.context_tokens, spec.context_tokens)};
}

void node::impl::choose_kernels() {
  std::string reason;
  const auto* ops = gpu::find_operators(name_of(options.numerics.operators), &reason);
  if (ops == nullptr) throw start_error{78, "numerics.operators: " + reason};
  const auto threads = options.pools.model.threads.value_or(usable_processors());
  parts->engine = std::make_shared<gpu::host_engine>(threads, *ops);
  spdlog::info("host device kernels={} threads={}{}", ops->name, threads,
               reason.empty() ? "" : " (" + reason + ")");
}

void node::impl::size_cache() {
  const auto& spec = model.program->spec;
  parts->slots = slots_for(options, spec);
  if (parts->slots < slots_min)
    throw start_error{78,
                      fmt::format("kv.bytes: room for {} tokens, too small for one request; at "
                                  "least {} bytes ({} tokens) are needed",
                                  parts->slots, slots_min * slot_bytes(options, spec), slots_min)};
}

void node::impl::describe_service() {
  const auto& spec = model.program->spec;
  auto& base = parts->base;
  base.text = model.text;
  if (const auto& source = model.file->chat_template(); !source.empty()) {
    try {
      base.chat = model::chat_template::compile(source);
    } catch (const model::chat_template_error& e) {
      spdlog::warn("the model's chat template cannot be used line={} reason=\"{}\"", e.line(),
                   e.what());
    }
    base.chat_knows_developer = source.find("developer") != std::string::npos;
  }
  base.model_file = model.file->path().string();
  base.model_name =
      options.model.name.empty() ? model.file->path().stem().string() : options.model.name;
  base.aliases = options.model.aliases;
  base.created = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  base.context_tokens = options.model.context_tokens.value_or(spec.context_tokens);
  base.fingerprint = fingerprint_of(options, parts->engine->ops(), model.file->digest());
  for (model::token_id t = 0; t < model.text->vocabulary(); ++t)
    if (model.text->is_end(t)) base.end_tokens.push_back(t);
  base.limits.messages = options.limits.messages_per_chat;
  base.limits.prompts = options.limits.prompts_per_request;
  base.limits.max_n = std::min(options.limits.max_n, options.batching.max_batch);
  base.limits.logit_bias = options.limits.logit_bias_entries;
  base.limits.stop_strings = options.limits.stop_strings;
  base.limits.tokens_per_request = options.limits.tokens_per_request;
  base.limits.default_max_tokens = options.limits.default_output_tokens;
  base.limits.vocabulary = model.text->vocabulary();
  base.limits.strict = options.api.strict;
  base.ping = options.http.sse_ping;
  base.piece_bytes = std::min<size_t>(base.piece_bytes, options.http.stream_buffer_bytes);
  base.deadline = options.limits.request_deadline;
  net::metrics::settings m;
  m.model_name = base.model_name;
  m.context_tokens = base.context_tokens;
  m.version = LAMELLA_VERSION;
  m.caf = "0.17.6";
  m.simd = std::string{parts->engine->ops().name};
  const bool by_request = options.pools.attention.partition == config::partition::requests;
  const auto tables = by_request ? options.pools.attention.members : 1;
  const auto name = [&](const char* role, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      m.workers.push_back({role, std::string{role} + "-" + std::to_string(i)});
  };
  name("model", options.pools.model.members);
  name("attention", options.pools.attention.members);
  name("prefill", options.pools.prefill.members);
  m.slot_count = uint64_t{parts->slots} * tables;
  numbers = std::make_shared<net::metrics>(m);
  base.numbers = parts->numbers = numbers;
  parts->health = health;
  parts->options = options;
  parts->program = model.program;
}

void node::impl::listen() {
  gateway_config c;
  c.health = health;
  c.numbers = numbers;
  c.keys = keys_from(options.http.api_keys_file);
  c.admin_keys = keys_from(options.admin.api_keys_file);
  c.version = LAMELLA_VERSION;
  c.partition =
      options.pools.attention.partition == config::partition::requests ? "requests" : "heads";
  c.attention_members = options.pools.attention.members;
  c.on_drain = [this] {
    if (!drained.exchange(true)) end_callback(false);
  };
  front = system.spawn(gateway, std::move(c));
  net::http_server::settings s;
  s.version = LAMELLA_VERSION;
  s.limits.connections = options.http.connections_max;
  s.limits.connections_per_address = options.http.connections_per_address_max;
  s.limits.body_bytes = options.http.max_body_bytes;
  s.limits.stall_time = options.http.stream_stall;
  s.limits.stream_buffer_bytes = options.http.stream_buffer_bytes;
  s.limits.answer_time = options.limits.request_deadline + std::chrono::minutes{1};
  std::vector<net::http_listener> listeners;
  const auto add = [&](const char* name, const std::string& address, bool probes) {
    const auto where = config::parse_address(address);
    if (!where) throw start_error{78, std::string{name} + ": bad address " + address};
    listeners.push_back(
        {name, where->host, where->port, [this, probes](net::http_exchange_ptr exchange) {
           if (probes && answer_probe(*health, exchange)) return;
           caf::anon_send(front, std::move(exchange));
         }});
  };
  add("public", options.http.listen, options.http.probes);
  add("admin", options.admin.listen, true);
  http = std::make_unique<net::http_server>(s, std::move(listeners));
  try {
    http->start();
  } catch (const net::http_listen_error& e) {
    throw start_error{69, e.what(), "choose another address with http.listen or admin.listen"};
  }
}

void node::impl::load_weights(const load_progress& progress) {
  auto loader = parts->engine->make_device("host/loader");
  const auto began = std::chrono::steady_clock::now();
  try {
    parts->weights = std::make_shared<gpu::packed_weights>(
        *model.program,
        [this](const model::weight_use& w) -> const model::tensor_view& { return model.tensor(w); },
        *loader,
        [&](uint64_t done, uint64_t total) {
          const auto ratio =
              total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
          const auto spent =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
          health->set_progress("weights", ratio, ratio > 0 ? spent / ratio * (1 - ratio) : 0);
          numbers->set_load_progress("weights", ratio);
          progress("weights", done, total);
        });
    model.file->check_intact();
  } catch (const model::file_error& e) {
    throw start_error{65, e.what()};
  } catch (const std::bad_alloc&) {
    throw start_error{71, "not enough memory for the model's weights",
                      "use a smaller or more strongly quantised model"};
  }
  model.file->release_pages();
}

void node::impl::set_roles(bool up) {
  const auto count = [&](uint32_t n) { return up ? n : 0; };
  const auto& pools = options.pools;
  health->set_roles({{"model", pools.model.members, count(pools.model.members)},
                     {"attention", pools.attention.members, count(pools.attention.members)},
                     {"prefill", pools.prefill.members, count(pools.prefill.members)}});
}

void node::impl::build() {
  subtree tree;
  tree.name = "pipeline";
  tree.start = [this](caf::event_based_actor* self, uint64_t generation) {
    auto built = build_pipeline(self, *parts, generation);
    if (front) {
      caf::anon_send(front, built.members);
      caf::anon_send(front, built.server);
    }
    {
      std::lock_guard lock{server_mutex};
      server = built.server;
      members.clear();
      for (const auto& x : built.actors) members.push_back(caf::actor_cast<caf::actor_addr>(x));
    }
    set_roles(true);
    if (health->where() == health_board::phase::rebuilding)
      health->enter(health_board::phase::serving);
    return built.actors;
  };
  tree.on_trouble = [this](bool given_up) {
    set_roles(false);
    numbers->failover("pipeline", "exit");
    if (given_up) {
      health->enter(health_board::phase::failed);
      if (!drained.exchange(true)) end_callback(true);
    } else if (health->where() == health_board::phase::serving) {
      health->enter(health_board::phase::rebuilding);
    }
  };
  root = system.spawn(supervisor, std::move(tree),
                      scheduler::restart_policy{restarts_max, restart_window});
}

node::node(config::settings options, bool listens)
    : impl_{std::make_unique<impl>(std::move(options), listens)} {
  // Prompts run on the replicas in this process: one worker cuts them even where none is asked for.
  auto& prefill = impl_->options.pools.prefill.members;
  prefill = std::max(1u, prefill);
}

void node::start(const load_progress& progress) {
  impl_->open_model(progress);
  impl_->choose_kernels();
  impl_->size_cache();
  impl_->describe_service();
  if (impl_->listens) impl_->listen();
  impl_->load_weights(progress);
  impl_->build();
  progress("warm", 0, 1);
  // The canary of the new pipeline beats; polled because a probe's shared state has no subscribers.
  const auto until = std::chrono::steady_clock::now() + first_token_patience;
  while (impl_->health->beats.count() == 0 || (impl_->front && !impl_->health->served())) {
    if (std::chrono::steady_clock::now() > until || impl_->drained)
      throw start_error{70, "no token came through the pipeline"};
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  impl_->health->enter(health_board::phase::serving);
  progress("warm", 1, 1);
}

uint16_t node::http_port() const { return impl_->http->port("public"); }
uint16_t node::admin_port() const { return impl_->http->port("admin"); }

std::string node::summary() const {
  const auto& x = *impl_;
  const auto& spec = x.model.program->spec;
  return fmt::format(
      "model {} ({} layers, {} slices), {} replica(s), {} attention shard(s) by {}, {} KV slots\n"
      "kernels {} on {} thread(s), fingerprint {}",
      x.parts->base.model_name, spec.layers, x.model.program->slices.size(),
      x.options.pools.model.members, x.options.pools.attention.members,
      x.options.pools.attention.partition == config::partition::requests ? "request" : "head",
      x.parts->slots, x.parts->engine->ops().name, x.parts->engine->threads(),
      x.parts->base.fingerprint);
}

bool node::drain(std::chrono::milliseconds limit) {
  auto& x = *impl_;
  x.stopped = true;
  x.drained = true;
  bool complete = true;
  if (x.front) {
    x.health->enter(health_board::phase::draining);
    const auto until = std::chrono::steady_clock::now() + limit;
    // A gateway that answers late must not find this frame gone: the flag is shared.
    auto finished = std::make_shared<std::promise<void>>();
    auto waits = finished->get_future();
    x.system.spawn([front = x.front, finished](caf::event_based_actor* asker) {
      asker->request(front, std::chrono::seconds{86400}, drain_atom_v)
          .then([finished](bool) { finished->set_value(); },
                [finished](caf::error&) { finished->set_value(); });
    });
    while (waits.wait_for(std::chrono::milliseconds{20}) != std::future_status::ready) {
      if (std::chrono::steady_clock::now() < until && !x.hurried) continue;
      complete = false;
      caf::anon_send(x.front, wake_atom_v);
      waits.wait_for(std::chrono::seconds{2});
      break;
    }
  }
  if (x.http) x.http->stop(std::chrono::milliseconds{500});
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

const pipeline_parts& node::parts() const { return *impl_->parts; }

node::~node() {
  auto& x = *impl_;
  if (!x.stopped) drain(std::chrono::milliseconds{0});
  x.http.reset();
  if (x.root) caf::anon_send_exit(x.root, caf::exit_reason::user_shutdown);
  if (x.front) caf::anon_send_exit(x.front, caf::exit_reason::user_shutdown);
  x.root = nullptr;
  x.front = nullptr;
  // Actors end when told; one that does not must not keep the process.
  x.system.await_actors_before_shutdown(true);
}

} // namespace lamella::actors
