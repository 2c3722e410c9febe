#include "actors/gateway/gateway_pools.hpp"

#include "actors/protocol/pools.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/shared/explain.hpp"
#include "base/json_writer.hpp"
#include "net/api/api_request.hpp"
#include "net/http/api_error.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

constexpr caf::timespan pools_timeout = std::chrono::seconds{5};
/// A body is one small object.
constexpr size_t body_max = 4096;

void write(json_writer& out, const pool_change& x) {
  out.begin_object()
      .member("pool", x.pool)
      .member("from", x.from)
      .member("members", x.to)
      .member("state", x.state)
      .member("reason", x.reason);
  if (!x.partition.empty()) out.member("partition", x.partition);
  const bool comes = x.state == "under way" || x.state == "queued";
  if (comes && !x.to_partition.empty()) out.member("to_partition", x.to_partition);
  if (x.kv_bytes > 0) out.member("kv_bytes", x.kv_bytes);
  if (comes && x.to_kv_bytes != kv_as_it_is) out.member("to_kv_bytes", x.to_kv_bytes);
  out.end_object();
}

const std::string& small_body(const exchange_ptr& exchange) {
  const auto& body = exchange->request().body;
  if (body.size() > body_max) throw net::body_too_large(body_max);
  return body;
}

/// What is wrong. Where MEMBERSHIP says it, not behind the words of its code: "there is no pool
/// 'x'" is not about a seat.
std::string text_of(caf::actor_system& system, const caf::error& reason) {
  const auto& told = reason.context();
  const bool has_own =
      reason == ec::nobody_there && !told.empty() && told.match_element<std::string>(0);
  return has_own ? told.get_as<std::string>(0) : explain(system, reason);
}

/// Asks MEMBERSHIP for a change and answers what becomes of it. `name`, `value`: the fields of the
/// body that are told where nothing has that name, and where the change is refused.
template <class Question>
void ask_for(gateway_ptr self, const exchange_ptr& exchange, const Question& what, const char* name,
             const char* value) {
  self->request(self->state.members, pools_timeout, what)
      .then(
          [exchange](const pool_change& x) {
            json_writer out;
            write(out, x);
            exchange->respond(x.state == "done" ? 200 : 202, net::json_content, out.take());
          },
          [self, exchange, name, value](const caf::error& reason) {
            const auto* field = reason == ec::nobody_there ? name : value;
            const auto why = text_of(self->system(), reason);
            auto error = net::invalid_value(field, why);
            error.status = 409;
            error.retryable = passes_by_itself(reason, why);
            error.code = "resize_refused";
            net::respond_error(*exchange, error);
          });
}

} // namespace

std::vector<pool_change> with_queued(const gateway_config& config,
                                     std::vector<pool_change> changes) {
  if (!config.queued) return changes;
  for (const auto& next : config.queued()) {
    const auto found = std::ranges::find(changes, next.pool, &pool_change::pool);
    if (found == changes.end() || found->state == "under way") continue;
    auto& x = *found;
    const bool is_there = x.state == "none" || x.state == "done";
    x.from = is_there ? x.to : x.from;
    x.to = next.to == members_as_they_are ? x.from : next.to;
    x.state = next.state;
    x.reason = next.reason;
    x.to_partition = next.to_partition;
    x.to_kv_bytes = next.to_kv_bytes;
  }
  return changes;
}

void answer_scale(gateway_ptr self, const exchange_ptr& exchange) {
  const auto x = net::parse_scale_request(small_body(exchange));
  const auto* field = !x.partition.empty() ? "partition" : x.kv_bytes ? "kv_bytes" : "members";
  ask_for(self, exchange,
          pool_resize{x.pool, x.members, x.partition, x.kv_bytes.value_or(kv_as_it_is)}, "pool",
          field);
}

void answer_drain_worker(gateway_ptr self, const exchange_ptr& exchange) {
  const worker_drain x{net::parse_drain_request(small_body(exchange))};
  ask_for(self, exchange, x, "worker", "worker");
}

void answer_pools(gateway_ptr self, const exchange_ptr& exchange) {
  self->request(self->state.members, pools_timeout, status_atom_v)
      .then(
          [self, exchange](const system_status& status) {
            json_writer out;
            out.begin_object().member("version", 1).member("epoch", status.epoch).key("pools");
            out.begin_array();
            for (const auto& x : with_queued(self->state.config, status.changes)) write(out, x);
            out.end_array().end_object();
            exchange->respond(200, net::json_content, out.take());
          },
          [self, exchange](const caf::error& reason) {
            net::respond_error(*exchange, net::internal_error(explain(self->system(), reason)));
          });
}

} // namespace lamella::actors
