#include "actors/request/response_store.hpp"

#include <iterator>
#include <utility>

namespace lamella::actors {

namespace {

/// Bytes that a value takes, roughly.
size_t size_of(const json_value& x) {
  size_t bytes = sizeof x;
  if (const auto* text = x.get_if<std::string>()) bytes += text->size();
  if (const auto* items = x.get_if<json_value::array>())
    for (const auto& item : *items) bytes += size_of(item);
  if (const auto* members = x.get_if<json_value::object>())
    for (const auto& [key, value] : *members) bytes += key.size() + size_of(value);
  return bytes;
}

size_t size_of(const net::chat_message& x) {
  size_t bytes = sizeof x + x.content.size() + x.name.size() + x.reasoning.size();
  for (const auto& part : x.parts) bytes += sizeof part + part.size();
  for (const auto& call : x.tool_calls)
    bytes += sizeof call + call.id.size() + call.name.size() + call.arguments.size();
  for (const auto& [key, value] : x.more) bytes += key.size() + size_of(value);
  return bytes;
}

size_t size_of(const kept_response& x) {
  constexpr size_t of_an_entry = 256;
  return of_an_entry + sizeof x + x.id.size() + x.body.size() + bytes_of(x.messages);
}

} // namespace

size_t bytes_of(const std::vector<net::chat_message>& conversation) {
  size_t bytes = 0;
  for (const auto& m : conversation) bytes += size_of(m);
  return bytes;
}

void response_store::add(kept_response x, time now) {
  const auto bytes = size_of(x);
  const std::lock_guard guard{lock_};
  drop_old(now);
  if (bytes > bytes_max_ || by_id_.contains(x.id)) return;
  while (bytes_ + bytes > bytes_max_) drop(entries_.begin());
  auto what = std::make_shared<const kept_response>(std::move(x));
  const auto& id = what->id;
  entries_.push_back({what, bytes, now + keep_});
  by_id_.emplace(id, std::prev(entries_.end()));
  bytes_ += bytes;
}

std::shared_ptr<const kept_response> response_store::find(const std::string& id, uint64_t caller,
                                                          time now) {
  const std::lock_guard guard{lock_};
  drop_old(now);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->what->caller != caller) return nullptr;
  return found->second->what;
}

bool response_store::erase(const std::string& id, uint64_t caller, time now) {
  const std::lock_guard guard{lock_};
  drop_old(now);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->what->caller != caller) return false;
  drop(found->second);
  return true;
}

size_t response_store::bytes() const {
  const std::lock_guard guard{lock_};
  return bytes_;
}

void response_store::drop_old(time now) {
  while (!entries_.empty() && entries_.front().until <= now) drop(entries_.begin());
}

void response_store::drop(std::list<entry>::iterator at) {
  bytes_ -= at->bytes;
  by_id_.erase(at->what->id);
  entries_.erase(at);
}

} // namespace lamella::actors
