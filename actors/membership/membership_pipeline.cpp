#include "actors/membership/membership_pipeline.hpp"

#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/shared/events.hpp"
#include "base/buggify.hpp"
#include "scheduler/cell_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace lamella::actors {

namespace {

using membership_ptr = membership_self::stateful_pointer<membership_state>;
using scheduler::timed_work;

scheduler::pipeline_patience::seconds now_of(membership_ptr self) {
  return self->clock().now().time_since_epoch();
}

/// The attention cell whose KV that worker keeps, by name or number; where a cell has several
/// tables, with the place of the worker's: "far/1". Empty where the pool is one.
std::string home_of(const membership_state& st, const scheduler::seat& where) {
  const auto& shards = st.newest.plan.shards;
  const auto found = std::ranges::find(shards, where);
  const auto& layout = st.newest.design.pool.layout;
  if (found == shards.end() || layout.tables() < 2) return "";
  const auto table = layout.cell_of(static_cast<uint32_t>(found - shards.begin()));
  const auto cells = st.config.cells.size();
  if (cells == 0) return std::to_string(table);
  const auto& name = st.config.cells[scheduler::cell_of_table(table, cells)];
  if (table < scheduler::cells_max) return name;
  return name + "/" + std::to_string(scheduler::place_of_table(table, cells));
}

/// Members that left, and cells that go, are waited for no more.
void forget_homes(membership_state& st) {
  std::set<std::string> homes;
  for (const auto& where : st.newest.plan.shards) homes.insert(home_of(st, where));
  constexpr auto unknown = std::numeric_limits<double>::quiet_NaN();
  for (const auto& x : st.measured.keep_homes(homes))
    if (st.config.metrics) st.config.metrics->set_expected_time(x.work, x.cell, unknown, unknown);
}

/// One iteration of a batch, as measured.
scheduler::iteration_times times_of(const membership_state& st, double rows, double positions) {
  const auto& times = st.measured.times();
  scheduler::iteration_times t;
  t.model = times.predict(timed_work::launch, "", rows).value_or(0);
  t.attention = times.attention_s(positions).value_or(0);
  t.network = st.config.chooses->layers * times.round_trip();
  return t;
}

struct choice {
  scheduler::pipeline_view view;
  scheduler::pipeline_choice got;
};

choice choose(const membership_state& st, uint32_t replicas) {
  const auto& times = st.measured.times();
  choice x;
  x.view.replicas = replicas;
  x.view.max_batch = st.config.chooses->max_batch;
  if (const auto& obstacle_of = st.config.chooses->obstacle_of)
    x.view.obstacle = obstacle_of(st.wanted);
  x.view.rotates = st.was_open && st.newest.design.shape.rotates;
  x.view.measured = times.predict(timed_work::launch, "", 1) && times.attention_s(1);
  if (const auto load = times.load()) {
    x.view.rows = load->rows;
    x.view.positions = load->positions;
  }
  x.got = scheduler::choose_pipeline(
      x.view, [&](double rows, double positions) { return times_of(st, rows, positions); });
  if (buggify(buggify_point::other_pipeline)) x.got = {!x.got.rotates, {}, "oddly"};
  return x;
}

void tell_choice(const membership_state& st, const choice& x) {
  const auto batches = x.view.replicas + (x.got.rotates ? 1 : 0);
  const auto times = x.view.measured
                         ? times_of(st, x.view.rows / batches, x.view.positions / batches)
                         : scheduler::iteration_times{};
  const auto number = [](const char* name, double value) {
    event_field field{name, fmt::format("{:.4g}", value)};
    field.is_number = true;
    return field;
  };
  tell(event_kind::pipeline_chosen, {{"pipeline", x.got.rotates ? "rotational" : "off"},
                                     {"batches", batches},
                                     {"replicas", x.view.replicas},
                                     number("sequences", x.view.rows),
                                     number("positions", x.view.positions),
                                     number("model_seconds", times.model),
                                     number("attention_seconds", times.attention),
                                     number("network_seconds", times.network),
                                     number("tokens_per_second_off", x.got.rates.each),
                                     number("tokens_per_second_rotational", x.got.rates.rotating),
                                     {"reason", x.got.reason}});
}

} // namespace

void note_times(membership_state& st, const membership_state::member& m, const worker_peers& x) {
  st.measured.note(m.where, m.info.incarnation, x, home_of(st, m.where));
}

void end_look(membership_ptr self) {
  auto& st = self->state;
  if (!st.open) return;
  const auto& shape = st.newest.design.shape;
  const auto decoding = st.newest.plan.decoding;
  const auto batches = scheduler::batches_of(st.newest.plan.streams) - shape.prompt_batches;
  st.measured.end_look(batches, shape.rotates ? decoding : 1);
  forget_homes(st);
  if (st.config.metrics)
    for (const auto& x : st.measured.rows())
      st.config.metrics->set_expected_time(x.work, x.cell, x.seconds, x.correction);
  if (!st.config.chooses) return;
  const bool other = choose(st, decoding).got.rotates != shape.rotates;
  st.other_pipeline = st.patience.look(now_of(self), other);
}

void take_pipeline(membership_ptr self, next_epoch& next) {
  auto& st = self->state;
  if (!st.config.chooses) return;
  auto& shape = next.design.shape;
  auto& plan = next.plan;
  const auto x = choose(st, plan.decoding);
  shape.rotates = x.got.rotates;
  shape.one_each = !x.got.rotates;
  shape.batches = plan.decoding + (x.got.rotates ? 1 : 0);
  plan.streams = scheduler::place_streams(
      shape, plan.decoding, static_cast<uint32_t>(plan.replicas.size()) - plan.decoding);
  st.other_pipeline = false;
  st.patience.opened(now_of(self));
  tell_choice(st, x);
}

} // namespace lamella::actors
