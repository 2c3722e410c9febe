#include "actors/worker/link_book.hpp"

#include "scheduler/types.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace lamella::actors {

namespace {

/// A link as logs name it.
std::string name_of(const net::link_key& key) {
  if (!scheduler::is_context(key.stream)) return net::to_string(key);
  return fmt::format("epoch {}, context of batch {}, replica {} to {}", key.epoch,
                     key.stream - scheduler::context_streams, key.replica, key.shard);
}

/// Choices that are told at most; reasons have the peer's words in them.
constexpr size_t chosen_max = 256;

} // namespace

void link_book::note(const net::link_event& x) {
  const auto tier = net::to_string(x.transport);
  using kind = net::link_event::kind;
  if (x.what == kind::up)
    note_up(x, tier);
  else if (x.what == kind::refused)
    note_refused(x, tier);
  else if (x.key.epoch == 0)
    spdlog::debug("peer unreachable tier={} reason=\"{}\"", tier, x.text);
  else
    spdlog::debug("link ended {} tier={} reason=\"{}\"", name_of(x.key), tier, x.text);
}

void link_book::note_up(const net::link_event& x, std::string_view tier) {
  std::lock_guard lock{mutex_};
  // What was chosen and why is told once for two seats; the same for each stream and epoch is not.
  const auto choice = fmt::format("{} {} {} {} {}", x.key.replica, x.key.shard,
                                  scheduler::is_context(x.key.stream), tier, x.text);
  const auto level = chosen_.size() < chosen_max && chosen_.insert(choice).second
                         ? spdlog::level::info
                         : spdlog::level::debug;
  spdlog::log(level, "link up {} tier={} reason=\"{}\"", name_of(x.key), tier, x.text);
  if (ended_.begin(x.key.epoch)) links_[x.key] = {std::string{tier}, x.trips};
}

void link_book::note_refused(const net::link_event& x, std::string_view tier) {
  std::lock_guard lock{mutex_};
  const auto line = refusals_.next(std::chrono::steady_clock::now());
  if (line.unsaid > 0)
    spdlog::warn("{} more links and connections were refused meanwhile", line.unsaid);
  if (!line.say) return;
  if (x.key.epoch == 0)
    spdlog::warn("peer unreachable tier={} reason=\"{}\"", tier, x.text);
  else
    spdlog::warn("link refused {} tier={} reason=\"{}\"", name_of(x.key), tier, x.text);
}

link_report link_book::of(const net::link_key& key) {
  std::lock_guard lock{mutex_};
  const auto found = links_.find(key);
  if (found == links_.end()) return {};
  const auto& [tier, trips] = found->second;
  const auto now = trips->at(net::round_trips::clock::now());
  return {tier, std::chrono::duration<double, std::micro>{now.least}.count(), now.measured};
}

void link_book::forget(uint64_t epoch) {
  std::lock_guard lock{mutex_};
  ended_.end(epoch);
  std::erase_if(links_, [&](const auto& x) { return x.first.epoch == epoch; });
}

} // namespace lamella::actors
