#include "actors/node/control_plane.hpp"

#include "actors/machine/model_store.hpp"
#include "actors/machine/overlap.hpp"
#include "actors/machine/processor_wait.hpp"
#include "actors/machine/seat_groups.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/membership/membership_config.hpp"
#include "actors/node/child_commands.hpp"
#include "actors/node/loss_reports.hpp"
#include "actors/node/pipeline.hpp"
#include "actors/node/roster.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/explain.hpp"
#include "actors/worker/control_link.hpp"
#include "actors/worker/seat_devices.hpp"
#include "base/failpoint.hpp"
#include "scheduler/cell_tables.hpp"
#include "scheduler/membership/reach_book.hpp"

#include <spdlog/spdlog.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <unistd.h>

namespace lamella::actors {

namespace {

using config::placement;
using scheduler::worker_role;

/// Between two looks at how long workers take for their work.
constexpr caf::timespan pace_look = std::chrono::seconds{1};

/// The groups of seats of a placement, those without seats included.
std::vector<scheduler::seat_group> groups_at(const config::settings& options, placement where) {
  auto groups = seat_groups(options);
  std::erase_if(groups, [&](const auto& x) { return pool_of(options, x).placement != where; });
  return groups;
}

/// The pools and cells of a placement, as `worker --role attention --cell far` names them.
std::set<std::string> pools_at(const config::settings& options, placement where) {
  std::set<std::string> names;
  for (const auto& group : groups_at(options, where)) names.insert(scheduler::to_string(group));
  for (const auto& [name, cell] : options.pools.attention.cells)
    if (cell.placement == where) names.insert("attention/" + name);
  return names;
}

const char* word_of(config::transport x) {
  switch (x) {
  case config::transport::shm:
    return "shm";
  case config::transport::tcp:
    return "tcp";
  case config::transport::verbs_staged:
    return "verbs_staged";
  case config::transport::verbs_gpudirect:
    return "verbs_gpudirect";
  case config::transport::mlx5_proxy:
    return "mlx5_proxy";
  case config::transport::fhbn:
    return "fhbn";
  default:
    return "auto";
  }
}

} // namespace

scheduler::identity identity_of(const pipeline_parts& parts, uint64_t model_digest) {
  const auto options = parts.options.now();
  return {LAMELLA_VERSION, std::string{parts.engine->ops().name},
          shapes_text(parts.program->spec, name_of(half_type_of(options->numerics.wire)),
                      name_of(half_type_of(options->kv.dtype))),
          model_digest, true};
}

control_plane::control_plane(caf::actor_system& system, control_plane_config config)
    : system_{system}, config_{std::move(config)}, maker_{
                                                       std::make_shared<own_maker>(config_.parts)} {
  const auto now = config_.parts->options.now();
  const auto& options = *now;
  distributed_ = options.pools.distributed();
  cells_at_start_ = std::max<size_t>(1, options.pools.attention.cells.size());
  if (!groups_at(options, placement::in_process).empty()) { // cells may have no members yet
    own_seats_config own;
    own.seats = own_seats_of(options);
    own.make = [maker = maker_](const scheduler::seat& where, const join_grant& grant) {
      return maker->make(where, grant);
    };
    own.is_over = config_.device_lost;
    own_ = start_own_seats(system_, std::move(own));
  }
  auto m = membership_of(options);
  tell_losses(m, {config_.parts->suspects, told_, own_});
  members_ = start_membership(system_, std::move(m));
}

membership_config control_plane::membership_of(const config::settings& options) {
  membership_config m;
  m.seats = seats_of(options); // start-up does not wait for spares
  m.extra_seats = extra_seats_of(options);
  m.wanted = identity_of(*config_.parts, config_.model_digest);
  for (const auto& group : seat_groups(options))
    if (config::is_cuda(device_option(options, group))) m.on_devices.insert(group.role);
  m.shape = shape_of(options);
  m.pool = pool_terms_of(options, config_.parts->program->spec, config_.parts->layout);
  m.kv_heads = config_.parts->program->spec.kv_heads;
  if (options.batching.pipeline == config::pipeline::automatic)
    m.chooses = pipeline_choosing{
        options.batching.max_batch, config_.parts->program->spec.layers, [this](const auto& sizes) {
          return why_no_overlap(at_sizes(*config_.parts->options.now(), sizes),
                                usable_processors());
        }};
  for (const auto& [name, cell] : options.pools.attention.cells) m.cells.push_back(name);
  m.design_of = [this](const pool_sizes& x) { return design_of(x, *config_.parts->options.now()); };
  m.least_slots = std::min(config_.parts->base.context_tokens, config_.parts->layout.largest());
  m.on_resize = [this](const std::set<scheduler::seat>& all) { keep_seats(all); };
  for (const auto& group : seat_groups(options)) {
    const auto& pool = pool_of(options, group);
    if (pool.placement == placement::local) m.of_children.insert(group);
    if (pool.placement != placement::remote) continue;
    m.resize_timeout = remote_resize;
    if (pool.autoscaled()) m.follows[group.role] = {pool.least, pool.most};
  }
  if (!options.pools.prefill.has_seats()) m.prefill_on_replicas = options.pools.prefill.members;
  m.terms_of = [this](const scheduler::seat& where, uint32_t place) {
    return terms_of(where, place);
  };
  m.on_change = config_.on_change;
  if (distributed_) m.poll_interval = pace_look, m.dead = options.control.dead;
  m.waited_of = [host = host_name()](const worker_info& x) {
    return x.host == host ? waited_for_processors(x.pid) : std::nullopt;
  };
  m.metrics = config_.parts->metrics;
  m.on_hopeless = config_.on_hopeless;
  return m;
}

control_plane::~control_plane() { stop(); }

/// Seats of this process are taken or left by OWN SEATS, those of child processes by their keeper.
void control_plane::keep_seats(const std::set<scheduler::seat>& all) {
  std::set<scheduler::seat> here;
  const auto options = config_.parts->options.now();
  for (const auto& where : all)
    if (pool_of(*options, where.group()).placement == placement::in_process) here.insert(where);
  if (own_) caf::anon_send(own_, std::make_shared<const std::set<scheduler::seat>>(here));
  told_->tell(children(all));
}

/// Members of the attention pool bring memory of their own: without a fixed size, their tables keep
/// the slots that they had at the start. Tables of new cells, and new ones of a cell by requests,
/// have those of one member.
epoch_design control_plane::design_of(const pool_sizes& sizes,
                                      const config::settings& settings) const {
  const auto& parts = *config_.parts;
  const auto& spec = parts.program->spec;
  const auto options = at_sizes(settings, sizes);
  auto layout = layout_of(options, spec, 0);
  if (auto why = scheduler::refuse_layout(spec.kv_heads, layout)) throw std::invalid_argument{*why};
  if (const auto replicas = options.pools.model.members; options.batching.leaves_idle(replicas))
    throw std::invalid_argument{
        "batching.batches is " + std::to_string(options.batching.batches_for(replicas))
        + ": some of " + std::to_string(replicas) + " replicas would be idle"};
  for (const auto& [name, cell] : options.pools.attention.cells)
    if (cell.parity && cell.partition == config::partition::requests)
      throw std::invalid_argument{"the cell '" + name + "' has parity, which needs heads"};
  const auto& start = parts.layout.cells;
  const auto cells = sizes.cells.size();
  for (uint32_t i = 0; i < layout.tables(); ++i) {
    if (options.kv.bytes || settings_of_cell(options, i).kv_bytes) continue;
    const auto cell = scheduler::cell_of_table(i, cells);
    const auto& first = start[cell < cells_at_start_ ? cell : 0];
    const bool is_new = cells > 0 && i >= cells_at_start_;
    layout.cells[i].slots = first.slots / (is_new ? std::max(1u, first.members) : 1);
  }
  if (auto why = why_too_small(options, spec, layout); !why.empty())
    throw std::invalid_argument{why};
  if (auto why = why_too_large(options, config_.weight_bytes, token_bytes(options, spec), layout);
      !why.empty())
    throw std::invalid_argument{why};
  return {shape_of(options), pool_terms_of(options, spec, std::move(layout))};
}

std::string control_plane::why_not(const pool_sizes& sizes,
                                   const config::settings& settings) const {
  try {
    design_of(sizes, settings);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

cells_ptr control_plane::roster_with(const config::settings& settings,
                                     const std::set<std::string>& taken,
                                     std::shared_ptr<std::atomic<bool>> settled) const {
  auto x = std::make_shared<cell_roster>(roster_of(settings, taken));
  x->take = [parts = config_.parts, settings, settled = std::move(settled)] {
    if (settled->exchange(true)) return false;
    parts->options.set(settings);
    return true;
  };
  return x;
}

worker_terms control_plane::terms_of(const scheduler::seat& where, uint32_t place) const {
  const auto& parts = *config_.parts;
  const auto now = parts.options.now();
  const auto& options = *now;
  const auto& spec = parts.program->spec;
  const auto wanted = identity_of(parts, config_.model_digest);
  const auto& pool = pool_of(options, where.group());
  worker_terms t;
  t.model_path = config_.model_path;
  t.model_digest = wanted.model_digest;
  t.version = wanted.version;
  t.kernels = wanted.kernels;
  t.shapes = wanted.shapes;
  t.device = device_of(options, where.group(), place);
  // Children share this machine; a worker of another host has its own.
  const auto sharers = std::max(1u, members_needed(options, where.group()));
  t.threads = pool.threads.value_or(
      pool.placement == placement::remote ? 0 : std::max(1u, usable_processors() / sharers));
  t.wire = half_type_of(options.numerics.wire);
  t.kv = half_type_of(options.kv.dtype);
  t.layers = spec.layers;
  t.kv_heads = spec.kv_heads;
  t.group = spec.group();
  t.head_dim = spec.head_dim;
  t.scale = spec.attention_scale();
  t.pool = pool_terms_of(options, spec, parts.layout);
  t.prefill_owns_kv = options.pools.prefill_owns_kv();
  t.ranks = ranks_of(options, where.role);
  t.early_q = options.batching.early_q;
  t.mini_batches = options.batching.mini_batches;
  t.rows = rows_most(options);
  t.transport = word_of(options.net.transport);
  t.link_secret = link_secret_;
  t.link_cluster = link_cluster_;
  t.chaos = options.chaos.enabled;
  if (pool.placement == placement::local) t.link_folder = folder_->path().string();
  t.decode_rank_bytes =
      std::max(rank_frame_bytes(options, spec, 0),
               decode_rows_most(options) * parts.program->context_bytes_per_row());
  t.prefill_rank_bytes = rank_frame_bytes(options, spec, scheduler::prefill_streams);
  return t;
}

std::vector<child_command> control_plane::children(const std::set<scheduler::seat>& seats) const {
  std::vector<child_command> result;
  const auto options = config_.parts->options.now();
  const auto machine = own_topology();
  for (const auto& where : seats) {
    const auto& pool = pool_of(*options, where.group());
    if (pool.placement != placement::local) continue;
    const auto alike = [&](const scheduler::seat& x) { return x.group() == where.group(); };
    const auto processes = static_cast<uint32_t>(std::ranges::count_if(seats, alike));
    const auto place = static_cast<uint32_t>(
        std::count_if(seats.begin(), seats.find(where), alike)); // in order of their numbers
    result.push_back(child_of(*options, where, config_.program, port_,
                              processors_for(pool, machine, place, processes)));
  }
  return result;
}

void control_plane::start() {
  if (distributed_) open_door();
  take_own_seats();
}

void control_plane::open_door() {
  const auto now = config_.parts->options.now();
  const auto& options = *now;
  secret_ = options.control.secret_file.empty()
                ? net::shared_secret::random()
                : net::shared_secret::from_file(options.control.secret_file);
  child_secret_ = net::shared_secret::random();
  link_secret_ = net::random_bytes(32);
  const auto tag = net::random_bytes(sizeof link_cluster_);
  std::memcpy(&link_cluster_, tag.data(), tag.size());
  try {
    folder_.emplace();
  } catch (const std::system_error& e) {
    throw link_error{e.what()};
  }
  door_config d{*secret_,
                net::hex_of(net::random_bytes(16)),
                LAMELLA_VERSION,
                static_cast<uint32_t>(options.control.heartbeat.count()),
                static_cast<uint32_t>(options.control.dead.count()),
                members_,
                [] { return net::random_bytes(nonce_bytes); },
                {},
                child_secret_};
  d.of_children = [parts = config_.parts](const std::string& pool) {
    return pools_at(*parts->options.now(), placement::local).contains(pool);
  };
  door_ = start_door(system_, std::move(d));
  gate_ = publish_door(system_, door_, options.control, {*secret_, *child_secret_});
  port_ = gate_->port();
  spdlog::info("control listening address={} port={} tls={}", options.control.listen, port_,
               options.control.tls());
  const auto of_children = groups_at(options, placement::local);
  for (const auto& group : of_children)
    warn_of_sharing(options, group, members_needed(options, group) + spares_of(options, group));
  if (!of_children.empty()) {
    child_keeper_config k;
    k.children = children(seats_of(options).all());
    k.secret_text = child_secret_->file_text();
    k.on_failing = [members = members_](const seat_failing& x) { caf::anon_send(members, x); };
    k.on_stopped = [members = members_](uint32_t pid) {
      caf::anon_send(members, worker_stopped{pid});
    };
    k.suspects = config_.parts->suspects;
    keeper_ = start_child_keeper(system_, std::move(k));
    told_->keep(keeper_);
  }
}

std::vector<vital_actor> control_plane::vital() const {
  std::vector<vital_actor> result{{"membership", caf::actor_cast<caf::strong_actor_ptr>(members_)}};
  if (own_) result.push_back({"own_seats", caf::actor_cast<caf::strong_actor_ptr>(own_)});
  if (door_) result.push_back({"door", caf::actor_cast<caf::strong_actor_ptr>(door_)});
  if (keeper_) result.push_back({"child_keeper", caf::actor_cast<caf::strong_actor_ptr>(keeper_)});
  return result;
}

std::vector<scheduler::seat> control_plane::own_seats_of(const config::settings& options) const {
  std::vector<scheduler::seat> seats;
  for (const auto& where : seats_of(options).all())
    if (pool_of(options, where.group()).placement == placement::in_process) seats.push_back(where);
  return seats;
}

void control_plane::take_own_seats() {
  if (!own_) return;
  const auto& parts = *config_.parts;
  const auto options = parts.options.now();
  std::optional<link_port> port; // one for all seats of this process
  if (distributed_)
    port = config_.links({link_secret_,
                          link_cluster_,
                          word_of(options->net.transport),
                          folder_->path().string(),
                          parts.engine->bell(),
                          {},
                          {},
                          scheduler::failing_needed(options->control.dead)});
  maker_->connect(std::move(port));
  caf::scoped_actor self{system_};
  self->request(own_, caf::infinite, caf::open_atom_v, members_)
      .receive([](bool) {}, [&](const caf::error& e) { throw link_error{explain(system_, e)}; });
}

void control_plane::on_serving() {
  if (own_) caf::anon_send(own_, begin_atom_v);
}

void control_plane::stop() {
  gate_.reset();
  caf::scoped_actor self{system_};
  if (members_) self->send_exit(members_, caf::exit_reason::user_shutdown);
  if (own_) self->send_exit(own_, caf::exit_reason::user_shutdown);
  if (keeper_)
    self->request(keeper_, caf::duration{caf::timespan{std::chrono::seconds{30}}},
                  caf::close_atom_v)
        .receive([](uint32_t) {}, [](caf::error&) {});
  if (keeper_) self->send_exit(keeper_, caf::exit_reason::user_shutdown);
  if (door_) self->send_exit(door_, caf::exit_reason::user_shutdown);
  folder_.reset(); // sockets of children that were killed lie there still
  members_ = nullptr;
  own_ = nullptr;
  keeper_ = nullptr;
  told_->keep({});
  door_ = nullptr;
}

} // namespace lamella::actors
