#include "net/http/http_core.hpp"

#include "base/environment.hpp"
#include "net/http/http_ids.hpp"

namespace lamella::net {

namespace {

/// Connections over the limits of a listener that get an answer at the same time; beyond, they are
/// just closed.
constexpr size_t told_max = 256;

/// Spreads consecutive numbers over all 64 bits (the finaliser of SplitMix64).
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

} // namespace

http_core::http_core(http_settings settings)
    : limits(settings.limits), answer_time(settings.limits.answer_time),
      version(std::move(settings.version)), next_id_(chance_of_machine()) {}

http_core::verdict http_core::enter(const std::shared_ptr<http_session>& session,
                                    const std::string& listener, const std::string& address) {
  const std::lock_guard lock(mutex_);
  connection_counts& open = connections_[listener];
  const auto from_address = open.by_address.find(address);
  verdict result = verdict::serve;
  if (open.served >= limits.connections)
    result = verdict::too_many;
  else if (from_address != open.by_address.end()
           && from_address->second >= limits.connections_per_address)
    result = verdict::too_many_from_address;
  if (result == verdict::serve) {
    ++open.served;
    ++open.by_address[address];
  } else {
    if (open.told >= told_max) return verdict::drop;
    ++open.told;
  }
  sessions_.emplace(session.get(), session);
  return result;
}

void http_core::leave(http_session* session, const std::string& listener,
                      const std::string& address, bool served) {
  const std::lock_guard lock(mutex_);
  if (sessions_.erase(session) == 0) return;
  connection_counts& open = connections_.find(listener)->second;
  if (served) {
    --open.served;
    const auto from_address = open.by_address.find(address);
    if (--from_address->second == 0) open.by_address.erase(from_address);
  } else {
    --open.told;
  }
  changed_.notify_all();
}

void http_core::exchange_begun(const std::string& listener) {
  const std::lock_guard lock(mutex_);
  ++exchanges_[listener];
}

void http_core::exchange_ended(const std::string& listener) {
  const std::lock_guard lock(mutex_);
  const auto open = exchanges_.find(listener);
  if (--open->second == 0) exchanges_.erase(open);
  changed_.notify_all();
}

size_t http_core::sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

size_t http_core::exchanges() const {
  const std::lock_guard lock(mutex_);
  size_t all = 0;
  for (const auto& [listener, open] : exchanges_) all += open;
  return all;
}

std::vector<std::shared_ptr<http_session>> http_core::all_sessions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<http_session>> all;
  for (const auto& [key, weak] : sessions_)
    if (auto session = weak.lock()) all.push_back(std::move(session));
  return all;
}

bool http_core::wait_exchanges_of(std::string_view listener,
                                  std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return !exchanges_.contains(listener); });
}

bool http_core::wait_exchanges(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return exchanges_.empty(); });
}

bool http_core::wait_sessions(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return sessions_.empty(); });
}

std::string http_core::new_request_id() {
  const uint64_t number = next_id_.fetch_add(0x9E3779B97F4A7C15u, std::memory_order_relaxed);
  return make_response_id("req-", mixed(number), mixed(number ^ 0x94D049BB133111EBu));
}

} // namespace lamella::net
