#include "scheduler/scaling_needs.hpp"

#include <cmath>
#include <cstdio>

namespace lamella::scheduler {

namespace {

constexpr double half_idle = 0.5;

std::string percent(double ratio) { return std::to_string(std::llround(100 * ratio)) + " %"; }

/// Two digits or more: 0.40 ms, 4.2 ms, 42 ms, 42 s.
std::string text_of(scaling_seconds t) {
  const auto ms = t.count() * 1e3;
  if (ms >= 10'000) return std::to_string(std::llround(t.count())) + " s";
  const int digits = ms < 1 ? 2 : ms < 10 ? 1 : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f ms", digits, ms);
  return text;
}

bool late(scaling_seconds measured, scaling_seconds target, double high) {
  return target.count() > 0 && measured > target * high;
}

std::string late_text(const char* what, scaling_seconds measured, scaling_seconds target,
                      double high) {
  return std::string{what} + " p99 is " + text_of(measured) + ", above " + text_of(target * high);
}

/// Prompts for each replica above which the queue is long.
double queue_limit(const scaling_look& x, const scaling_settings& s, uint32_t replicas) {
  return s.queue_high * std::max(1u, x.pools[scaled_pool::model].exists() ? replicas : 1u);
}

std::string queue_text(const scaling_look& x, const scaling_settings& s) {
  const auto replicas = x.pools[scaled_pool::model].members;
  if (x.queue_age > s.queue_age_high)
    return "a prompt has waited " + text_of(x.queue_age) + ", more than "
           + text_of(s.queue_age_high);
  if (x.queue > queue_limit(x, s, replicas))
    return std::to_string(x.queue) + " prompts wait, more than "
           + std::to_string(std::llround(queue_limit(x, s, replicas)));
  return "";
}

/// An iteration of a batch can be no faster than alone, nor than the attention pool or the replicas
/// can serve all batches once.
double iteration(double model, double attention, double batches, double replicas) {
  return std::max({model + attention, batches * attention, batches * model / replicas});
}

/// How much longer a queue's wait becomes when those who serve it are busy `times` as much.
double waiting(double busy, double times) {
  return busy >= 0 && busy * times < 1 ? (1 - busy) / (1 - busy * times) : times;
}

bool queue_is_calm(const scaling_look& x, const scaling_settings& s, uint32_t replicas) {
  return x.queue <= queue_limit(x, s, replicas) / 2 && x.queue_age <= s.queue_age_high / 2;
}

} // namespace

by_pool<std::string> too_small(const scaling_look& x, const scaling_settings& s) {
  by_pool<std::string> why;
  const auto kv = x.kv_pool();
  const bool short_of_kv = x.kv_use() > s.kv_high;
  if (short_of_kv)
    why[kv] = (x.kv_wanted > 0 ? "KV in use and waited for is " : "KV in use is ")
              + percent(x.kv_use()) + " of the slots, above " + percent(s.kv_high);
  const auto blame = [&](scaled_pool pool, const std::string& text) {
    if (why[pool].empty()) why[pool] = text;
  };
  if (late(x.tbt_p99, x.tbt_target, s.tbt_high)) {
    const auto text = late_text("TBT", x.tbt_p99, x.tbt_target, s.tbt_high);
    const auto work = text_of(x.attention_work) + " against a turn of " + text_of(x.turn());
    if (!x.pools[scaled_pool::attention].exists())
      blame(scaled_pool::model, text);
    else if (x.attention_work > x.turn())
      blame(scaled_pool::attention, text + "; attention takes longer than a turn, " + work);
    else
      blame(scaled_pool::model, text + "; attention keeps up, " + work);
  }
  if (short_of_kv) return why;
  auto prompts = x.prompt_pool();
  if (prompts == scaled_pool::prefill) {
    const auto& p = x.pools[prompts];
    if (p.members > 0 && p.busy >= 0 && p.busy < half_idle) prompts = scaled_pool::model;
  }
  if (const auto text = queue_text(x, s); !text.empty()) blame(prompts, text);
  if (late(x.ttft_p99, x.ttft_target, s.ttft_high))
    blame(prompts, late_text("TTFT", x.ttft_p99, x.ttft_target, s.ttft_high));
  return why;
}

double slowdown(const scaling_look& x, scaled_pool pool, uint32_t count) {
  const double members = x.pools[pool].members, to = std::max(1u, count);
  if (pool == scaled_pool::prefill || members <= 0) return 1;
  const double model = x.model_work.count(), attention = x.attention_work.count();
  if (!(model > 0)) return members / to;
  const double n = std::max(1u, x.batches),
               replicas = std::max(1u, x.pools[scaled_pool::model].members);
  const double now = iteration(model, attention, n, replicas);
  if (pool == scaled_pool::attention)
    return iteration(model, attention * members / to, n, replicas) / now;
  if (!x.pools[scaled_pool::attention].exists()) return members / to; // servers of their own
  // A replica goes with its batch; the others get the rows.
  const double left = std::max(1.0, n - (members - to)), rows = n / left;
  return iteration(model * rows, attention * rows, left, to) / now;
}

bool kv_fits(const scaling_look& x, const scaling_settings& s, scaled_pool pool, uint32_t count) {
  return pool != x.kv_pool() || x.kv_use_with(count) <= s.kv_high;
}

std::optional<std::string> would_do(const scaling_look& x, const scaling_settings& s,
                                    scaled_pool pool, uint32_t count) {
  const double below = 1 - s.margin;
  const double times = static_cast<double>(x.pools[pool].members) / std::max(1u, count);
  std::string why = "the queue is calm";
  const bool model = pool == scaled_pool::model;
  if (!queue_is_calm(x, s, model ? count : x.pools[scaled_pool::model].members))
    return std::nullopt;
  if (pool == x.kv_pool()) {
    if (!(x.kv_use() < s.kv_low) || x.kv_use_with(count) > s.kv_high * below) return std::nullopt;
    why += ", KV in use would be " + percent(x.kv_use_with(count)) + " of the slots";
  }
  if (const auto slower = slowdown(x, pool, count); x.tbt_target.count() > 0 && slower > 1) {
    const auto tbt = x.tbt_p99 * slower;
    if (late(tbt, x.tbt_target, s.tbt_high * below)) return std::nullopt;
    if (tbt.count() > 0) why += ", TBT p99 would be at most " + text_of(tbt);
  }
  if (x.ttft_target.count() > 0 && pool == x.prompt_pool()) {
    const auto ttft = x.ttft_p99 * std::max(times, waiting(x.pools[pool].busy, times));
    if (late(ttft, x.ttft_target, s.ttft_high * below)) return std::nullopt;
    if (ttft.count() > 0) why += ", TTFT p99 would be at most " + text_of(ttft);
  }
  const auto busy = x.pools[pool].busy;
  if (pool == scaled_pool::prefill && busy >= 0) {
    if (busy * times > s.busy_high) return std::nullopt;
    why += ", members would work " + percent(busy * times) + " of the time";
  }
  return why;
}

} // namespace lamella::scheduler
