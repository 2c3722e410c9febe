#include "actors/gateway/gateway_status.hpp"

#include "actors/gateway/status_text.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/status.hpp"
#include "actors/shared/explain.hpp"
#include "actors/shared/named_cells.hpp"
#include "net/http/api_error.hpp"
#include "scheduler/cell_tables.hpp"

namespace lamella::actors {

namespace {

/// For all that are asked together.
constexpr caf::timespan status_timeout = std::chrono::seconds{2};

/// An answer that is being put together.
struct status_answer {
  status_reader done;
  system_status status;
  kv_usage usage;
  uint64_t recovering = 0;
  size_t left = 1; ///< questions; one for who asks them
};
using status_answer_ptr = std::shared_ptr<status_answer>;

/// As MEMBERSHIP has it: cells may have come since the start, sizes and partitions have changed.
void use_sizes(system_status& status, const kv_usage& usage) {
  const auto members_of = [](const pool_change& x) {
    return x.state == "done" || x.state == "none" ? x.to : x.from;
  };
  for (auto& pool : status.pools) {
    for (const auto& x : status.changes)
      if (x.pool == "attention") pool.members = members_of(x);
    for (const auto& [name, x] : named_cells(status))
      pool.cells.push_back({name, members_of(x), 0, 0, x.partition});
    if (pool.cells.empty()) continue;
    pool.partition = "cells";
    for (uint32_t i = 0; i < usage.slots.size(); ++i) {
      const auto cell = scheduler::cell_of_table(i, pool.cells.size());
      if (cell >= pool.cells.size()) continue; // it has come since MEMBERSHIP answered
      pool.cells[cell].slots += usage.slots[i];
      pool.cells[cell].used += usage.used.at(i);
    }
  }
}

void one_less(const status_answer_ptr& x) {
  if (--x->left > 0) return;
  use_sizes(x->status, x->usage);
  x->done(x->status, x->recovering);
}

pool_info pool_of(const gateway_config& c, const kv_usage& usage) {
  pool_info pool{c.pool_name, c.partition, c.attention_members};
  for (auto n : usage.slots) pool.slots += n;
  for (auto n : usage.used) pool.used += n;
  pool.cached = usage.cached;
  pool.parity = usage.parity;
  pool.orphan = usage.orphan;
  pool.free = usage.free;
  pool.references = usage.references;
  pool.held = usage.held;
  return pool;
}

/// This process: what is vital in it, and the requests.
void add_roots(const gateway_state& st, std::vector<supervisor_status>& to) {
  supervisor_status node{"node", "none", {}, {{"gateway", {}}, {"membership", {}}}, 0};
  if (st.tree.children) node.children.push_back({"child_keeper", {}});
  if (st.tree.own) node.children.push_back({"own_seats", {}});
  if (st.tree.pipeline) node.children.push_back({"pipeline", {}});
  to.push_back(std::move(node));
  to.push_back(
      {"gateway", "none", {}, {{"request", {}, static_cast<uint32_t>(st.requests.size())}}, 0});
}

/// Asks who looks after others; they are told in the order asked.
template <class Handle>
void ask_tree(gateway_ptr self, const status_answer_ptr& x, const Handle& whom) {
  if (!whom) return;
  ++x->left;
  const auto place = x->status.supervisors.size();
  x->status.supervisors.emplace_back();
  self->request(whom, status_timeout, status_atom_v)
      .then(
          [=](supervisor_status& told) {
            x->status.supervisors[place] = std::move(told);
            one_less(x);
          },
          [=](caf::error&) { one_less(x); });
}

/// While a pipeline is being rebuilt its actors are gone: the workers are reported anyway.
void ask_others(gateway_ptr self, const status_answer_ptr& x) {
  const auto& st = self->state;
  const auto failed = [=](caf::error&) { one_less(x); };
  add_roots(st, x->status.supervisors);
  ask_tree(self, x, st.tree.children);
  ask_tree(self, x, st.tree.own);
  ask_tree(self, x, st.tree.pipeline);
  if (st.server) {
    x->left += 2;
    x->status.restarts = st.server->restarts;
    self->request(st.server->allocator, status_timeout, status_atom_v)
        .then(
            [=](const kv_usage& usage) {
              x->status.pools.push_back(pool_of(self->state.config, usage));
              x->usage = usage;
              one_less(x);
            },
            failed);
    self->request(st.server->scheduler, status_timeout, status_atom_v)
        .then(
            [=](const queue_status& queue) {
              x->status.running = queue.running;
              x->status.waiting = queue.waiting;
              one_less(x);
            },
            failed);
  }
  one_less(x);
}

} // namespace

void ask_status(gateway_ptr self, status_reader done,
                std::function<void(const caf::error& reason)> failed) {
  const auto x = std::make_shared<status_answer>();
  x->done = std::move(done);
  x->recovering = self->state.config.health->pauses.look(self->clock().now()).recovering;
  self->request(self->state.members, status_timeout, status_atom_v)
      .then(
          [=](system_status& told) {
            x->status = std::move(told);
            x->status.pool = self->state.config.pool_name;
            x->status.requests = self->state.requests.size();
            ask_others(self, x);
          },
          [failed = std::move(failed)](caf::error& reason) { failed(reason); });
}

void answer_status(gateway_ptr self, const exchange_ptr& exchange) {
  if (!self->state.members) throw net::loading({});
  const auto done = [self, exchange](const system_status& status, uint64_t recovering) {
    const auto write = [exchange, status, recovering] {
      exchange->respond(200, net::json_content, status_json(status, recovering));
    };
    self->send(self->state.config.aside, aside_job{aside_lane::brief, write});
  };
  ask_status(self, done, [self, exchange](const caf::error& reason) {
    net::respond_error(*exchange, net::internal_error(explain(self->system(), reason)));
  });
}

} // namespace lamella::actors
