#include "model/grammar/grammar_states.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

using kind = grammar::kind;

constexpr uint64_t mix(uint64_t hash, uint64_t x) {
  hash = (hash ^ x) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

/// Takes the entry of `hash` with this value out.
template <class Map> void erase_entry(Map& map, uint64_t hash, uint32_t value) {
  auto [at, end] = map.equal_range(hash);
  for (; at != end; ++at)
    if (at->second == value) {
      map.erase(at);
      return;
    }
}

} // namespace

grammar_states::grammar_states(grammar g, const byte_set& available)
    : grammar_{std::move(g)}, productive_{productive_nodes(grammar_, available)} {
  take_state(); // of no places: dead
  const auto first = grammar_.first_of(0);
  if (!productive_[first])
    throw grammar_error("it allows no text at all, or none that the vocabulary can spell");
  reach_all(first, bottom);
  start_ = take_state();
}

void grammar_states::reach_all(grammar::node_id first, frame_id top) {
  to_visit_.emplace_back(first, top);
  while (!to_visit_.empty()) {
    const auto [at, open] = to_visit_.back();
    to_visit_.pop_back();
    if (!productive_[at] || !visited_.insert(uint64_t{at} << 32 | open).second) continue;
    if (++visits_ > visits_max)
      throw grammar_error("it is too ambiguous: finding the next tokens takes too long");
    const auto& node = grammar_.nodes()[at];
    switch (node.what) {
    case kind::bytes:
      if (places_.size() >= places_max)
        throw grammar_error("it is too ambiguous: a text may be at more than "
                            + std::to_string(places_max) + " places of it at once");
      places_.push_back({at, open});
      break;
    case kind::choice:
      for (const auto b : node.branches) to_visit_.emplace_back(b, open);
      break;
    case kind::call:
      if (grammar_.nodes()[node.next].what == kind::end) // what it would return to only returns
        to_visit_.emplace_back(grammar_.first_of(node.rule), open);
      else
        open_rule(at, 0, open);
      break;
    case kind::repeat:
      enter_repeat(at, 0, open);
      break;
    case kind::end:
      leave_rule(open);
      break;
    }
  }
}

void grammar_states::leave_rule(frame_id top) {
  if (top == bottom) {
    accepts_ = true;
    return;
  }
  const auto& f = frames_[top];
  const auto& node = grammar_.nodes()[f.at];
  if (node.what == kind::call) {
    to_visit_.emplace_back(node.next, f.below);
    return;
  }
  // Where there is no upper bound, counts beyond the lower one are alike.
  const bool counts = node.max != grammar::unbounded || f.count < node.min;
  enter_repeat(f.at, f.count + (counts ? 1 : 0), f.below);
}

void grammar_states::enter_repeat(grammar::node_id at, uint32_t count, frame_id below) {
  const auto& node = grammar_.nodes()[at];
  if (count >= node.min) to_visit_.emplace_back(node.next, below);
  if (count < node.max && productive_[grammar_.first_of(node.rule)]) open_rule(at, count, below);
}

void grammar_states::open_rule(grammar::node_id at, uint32_t count, frame_id below) {
  const auto depth = frames_[below].depth + 1;
  if (depth > depth_max) return;
  const auto hash = mix(mix(mix(0, at), count), below);
  frame_id id = 0;
  for (auto [x, end] = frame_of_.equal_range(hash); x != end; ++x)
    if (const auto& f = frames_[x->second]; f.at == at && f.count == count && f.below == below)
      id = x->second;
  if (id == 0) {
    id = static_cast<frame_id>(frames_.size());
    frames_.push_back({at, count, below, depth});
    frame_of_.emplace(hash, id);
  }
  to_visit_.emplace_back(grammar_.first_of(grammar_.nodes()[at].rule), id);
}

/// The state that was put together, which may be known.
grammar_states::state_id grammar_states::take_state() {
  std::sort(places_.begin(), places_.end());
  uint64_t hash = accepts_ ? 1 : 0;
  for (const auto& p : places_) hash = mix(hash, uint64_t{p.at} << 32 | p.top);
  auto id = unknown;
  for (auto [x, end] = state_of_.equal_range(hash); x != end; ++x)
    if (const auto& s = states_[x->second]; s.accepts == accepts_ && s.places == places_)
      id = x->second;
  if (id == unknown) {
    if (states_.size() >= states_max)
      throw grammar_error("it is too ambiguous: a text has gone through more than "
                          + std::to_string(states_max) + " states of it");
    id = static_cast<state_id>(states_.size());
    states_.push_back({places_, accepts_, nullptr});
    state_of_.emplace(hash, id);
  }
  return id;
}

grammar_states::state_id grammar_states::step(state_id from, uint8_t byte) {
  if (const auto& known = states_[from].next; known && (*known)[byte] != unknown)
    return (*known)[byte];
  to_visit_.clear(); // an error may have left something there
  visited_.clear();
  places_.clear();
  accepts_ = false;
  for (const auto& p : states_[from].places) {
    const auto& node = grammar_.nodes()[p.at];
    if (node.set[byte]) reach_all(node.next, p.top);
  }
  const auto to = take_state();
  if (from < states_kept && to < states_kept) {
    auto& next = states_[from].next;
    if (!next) {
      next = std::make_unique<std::array<state_id, 256>>();
      next->fill(unknown);
    }
    (*next)[byte] = to;
  }
  return to;
}

void grammar_states::forget(mark since) {
  const auto keep = std::max(since.states, states_kept);
  if (states_.size() <= keep) return;
  while (states_.size() > keep) {
    const auto& s = states_.back();
    uint64_t hash = s.accepts ? 1 : 0;
    for (const auto& p : s.places) hash = mix(hash, uint64_t{p.at} << 32 | p.top);
    erase_entry(state_of_, hash, static_cast<uint32_t>(states_.size() - 1));
    states_.pop_back();
  }
  frame_id highest = bottom;
  for (auto i = std::min(since.states, keep); i < states_.size(); ++i)
    for (const auto& p : states_[i].places) highest = std::max(highest, p.top);
  while (frames_.size() > std::max<size_t>(since.frames, highest + 1)) {
    const auto& f = frames_.back();
    erase_entry(frame_of_, mix(mix(mix(0, f.at), f.count), f.below),
                static_cast<uint32_t>(frames_.size() - 1));
    frames_.pop_back();
  }
}

size_t grammar_states::memory_bytes() const {
  constexpr size_t of_entry = 48; // of a hash map
  size_t bytes = grammar_.nodes().size() * sizeof(grammar::node)
                 + frames_.size() * (sizeof(frame) + of_entry)
                 + states_.size() * (sizeof(state) + of_entry);
  for (const auto& s : states_)
    bytes += s.places.capacity() * sizeof(place) + (s.next ? sizeof *s.next : 0);
  return bytes;
}

} // namespace lamella::model
