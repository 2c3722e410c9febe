#include "model/grammar/grammar_states.hpp"

#include <algorithm>
#include <tuple>

namespace lamella::model {

namespace {

using kind = grammar::kind;

constexpr uint32_t one_less(uint32_t count) {
  return count == 0 || count == grammar::unbounded ? count : count - 1;
}

/// In the set of visits: the frame was opened by this step. No node has so high a number.
constexpr uint64_t opened(uint32_t frame) { return uint64_t{1} << 63 | frame; }

} // namespace

grammar_states::grammar_states(std::shared_ptr<const runnable_grammar> g, uint32_t reach,
                               steps known)
    : grammar_{std::move(g)}, reach_{reach}, known_steps_{known} {
  begin_state();
  take_state(); // of no places: dead
  begin_state();
  reach_all(grammar_->rules.first_of(0), bottom, terminals::begin);
  start_ = take_state();
}

void grammar_states::begin_state() {
  to_visit_.clear(); // a step may have been given up
  visited_.clear();
  found_.clear();
  ended_.clear();
  visits_ = 0;
  accepts_ = false;
  behind_ = dead;
}

// --- from a node to the bytes behind it
// -----------------------------------------------------------

void grammar_states::reach_all(grammar::node_id first, frame_id top, terminals may) {
  terminals_ = may;
  to_visit_.emplace_back(first, top);
  reach_all();
}

void grammar_states::reach_all() {
  while (!to_visit_.empty()) {
    const auto [at, open] = to_visit_.back();
    to_visit_.pop_back();
    if (!grammar_->productive[at] || !visited_.insert(uint64_t{at} << 32 | open)) continue;
    if ((work_ += visit_work) > work_end_) refuse_more();
    if (++visits_ > visits_max) {
      to_visit_.clear();
      return;
    }
    visit(at, open);
  }
}

void grammar_states::refuse_more() {
  throw grammar_error("it is too ambiguous or too large for token masks: finding out what may come"
                      " next takes too much work; use fewer parts that may be empty, fewer"
                      " alternatives, or smaller counts");
}

void grammar_states::visit(grammar::node_id at, frame_id open) {
  const auto& rules = grammar_->rules;
  const auto& node = rules.nodes()[at];
  switch (node.what) {
  case kind::bytes:
    found_.push_back({at, open});
    return;
  case kind::choice:
    for (const auto b : node.branches) to_visit_.emplace_back(b, open);
    return;
  case kind::call:
    if (rules.nodes()[node.next].what == kind::end) // what it would return to only returns
      to_visit_.emplace_back(rules.first_of(node.rule), open);
    else if (const auto top = open_frame(at, 0, 0, open); top != unknown)
      to_visit_.emplace_back(rules.first_of(node.rule), top);
    return;
  case kind::repeat:
    enter_repeat(at, node.min, node.max, open);
    return;
  case kind::terminal_end:
    if (terminals_ == terminals::end) ended_.push_back({at, open});
    return;
  case kind::end:
    leave_rule(open);
    return;
  }
}

void grammar_states::leave_rule(frame_id top) {
  if (top == bottom) {
    accepts_ = true;
    return;
  }
  const auto f = frames_[top];
  const auto& node = grammar_->rules.nodes()[f.at];
  if (node.what == kind::call)
    to_visit_.emplace_back(node.next, f.below);
  else if (!visited_.contains(opened(top)))
    enter_repeat(f.at, f.least, f.most, f.below);
}

/// Comes to a repeat that must be done `least` times and may be `most` times. Of a rule that may be
/// empty only the times count that are not: so none must be, and who has just begun one and leaves
/// it again is where it was.
void grammar_states::enter_repeat(grammar::node_id at, uint32_t least, uint32_t most,
                                  frame_id below) {
  const auto& node = grammar_->rules.nodes()[at];
  const auto first = grammar_->rules.first_of(node.rule);
  const bool may_be_empty = grammar_->nullable[first];
  if (may_be_empty) least = 0;
  if (least == 0) to_visit_.emplace_back(node.next, below);
  if (most == 0 || !grammar_->productive[first]) return;
  const auto top = open_frame(at, one_less(least), one_less(most), below);
  if (top == unknown) return;
  if (may_be_empty) visited_.insert(opened(top));
  to_visit_.emplace_back(first, top);
}

// --- frames
// ---------------------------------------------------------------------------------------

/// Unknown where it would be too deep.
grammar_states::frame_id grammar_states::open_frame(grammar::node_id at, uint32_t least,
                                                    uint32_t most, frame_id below) {
  const auto& under = frames_[below];
  const auto depth = under.depth + 1;
  if (depth > depth_max) return unknown;
  const auto hash = mix(mix(mix(under.hash, at), least), most);
  const auto known = frame_of_.find(hash, [&](frame_id x) {
    const auto& f = frames_[x];
    return f.at == at && f.least == least && f.most == most && f.below == below;
  });
  if (known != hash_index::none) return known;
  const auto id = static_cast<frame_id>(frames_.size());
  const auto shape = mix(under.shape, at);
  frames_.push_back({at, least, most, below, depth, unknown, hash, shape});
  frame_of_.add(hash, id);
  return id;
}

/// How often the rule that is called or repeated there may end within reach, once it is open.
uint32_t grammar_states::reach_of(grammar::node_id at) const {
  const auto first = grammar_->rules.first_of(grammar_->rules.nodes()[at].rule);
  return 1 + reach_ / std::max(1u, grammar_->bytes[first]);
}

grammar_states::frame_id grammar_states::near_frame(frame_id top) {
  auto& way = way_; // of those whose near one is to be found
  way.clear();
  auto near = bottom;
  for (auto at = top; at != bottom; at = frames_[at].below) {
    if (near = frames_[at].near; near != unknown) break;
    near = bottom;
    way.push_back(at);
  }
  for (auto i = way.size(); i-- > 0;) {
    const auto& f = frames_[way[i]];
    auto [at, least, most] = std::tuple{f.at, f.least, f.most};
    const auto times = reach_of(at);
    if (most > times) most = grammar::unbounded;
    if (least > times) least = most = grammar::unbounded; // too many: it is not left within reach
    near = open_frame(at, least, most, near);
    frames_[way[i]].near = near;
  }
  return near;
}

grammar_states::frame_id grammar_states::import_frame(const grammar_states& from, frame_id top) {
  std::vector<frame_id> way;
  for (auto at = top; at != bottom; at = from.frames_[at].below) way.push_back(at);
  auto made = bottom;
  for (auto i = way.size(); i-- > 0;) {
    const auto& f = from.frames_[way[i]];
    made = open_frame(f.at, f.least, f.most, made);
  }
  return made;
}

/// Is all allowed in `a` that is allowed in `b`?
bool grammar_states::covers(frame_id a, frame_id b) const {
  for (; a != b; a = frames_[a].below, b = frames_[b].below) {
    ++work_;
    const auto &x = frames_[a], &y = frames_[b];
    if (x.at != y.at || x.least > y.least || x.most < y.most) return false;
  }
  return true;
}

// --- states
// ---------------------------------------------------------------------------------------

/// Of places [begin, end), which differ in counts only, marks those that another one covers: they
/// get `unknown` as their top.
void grammar_states::drop_covered(size_t begin, size_t end) {
  constexpr size_t compared_max = 512; // each with each
  std::vector<frame_id> order;
  for (auto i = begin; i < end; ++i) order.push_back(found_[i].top);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    const auto &x = frames_[a], &y = frames_[b];
    return std::tie(x.below, x.least, y.most) < std::tie(y.below, y.least, x.most);
  });
  std::vector<frame_id> kept; // of those with the same open rules below
  for (const auto x : order)
    if (kept.empty() || frames_[kept.back()].below != frames_[x].below
        || frames_[kept.back()].most < frames_[x].most)
      kept.push_back(x);
  const bool one_below = frames_[kept.front()].below == frames_[kept.back()].below;
  if (!one_below && kept.size() <= compared_max)
    std::erase_if(kept, [all = kept, this](frame_id x) {
      return std::any_of(all.begin(), all.end(),
                         [&](frame_id y) { return x != y && covers(y, x); });
    });
  std::sort(kept.begin(), kept.end());
  for (auto i = begin; i < end; ++i)
    if (!std::binary_search(kept.begin(), kept.end(), found_[i].top)) found_[i].top = unknown;
}

/// The state that was put together, which may be known. Its places are in an order that depends on
/// nothing but what they are.
grammar_states::state_id grammar_states::take_state() {
  std::sort(found_.begin(), found_.end(), [&](const place& a, const place& b) {
    const auto &x = frames_[a.top], &y = frames_[b.top];
    return std::tie(a.at, x.shape, x.hash) < std::tie(b.at, y.shape, y.hash);
  });
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  for (size_t begin = 0, end = 0; begin < found_.size(); begin = end) {
    const auto alike = [&](const place& x) {
      return x.at == found_[begin].at && frames_[x.top].shape == frames_[found_[begin].top].shape;
    };
    for (end = begin; end < found_.size() && alike(found_[end]);) ++end;
    if (end - begin > 1) drop_covered(begin, end);
  }
  std::erase_if(found_, [](const place& x) { return x.top == unknown; });
  const auto& behind = states_.empty() ? state{} : states_[behind_];
  accepts_ |= behind.accepts;
  const bool narrowed = visits_ > visits_max || found_.size() > places_max || behind.narrowed;
  if (found_.size() > places_max) found_.resize(places_max);
  uint64_t hash = uint64_t{behind_} << 1 | (accepts_ ? 1 : 0);
  for (const auto& p : found_) hash = mix(hash, uint64_t{p.at} << 32 | p.top);
  const auto known = state_of_.find(hash, [&](state_id x) {
    const auto there = places(x);
    return states_[x].accepts == accepts_ && states_[x].behind == behind_
           && std::equal(there.begin(), there.end(), found_.begin(), found_.end());
  });
  if (known != hash_index::none) {
    states_[known].narrowed |= narrowed;
    return known;
  }
  const auto id = static_cast<state_id>(states_.size());
  states_.push_back({static_cast<uint32_t>(places_.size()), static_cast<uint32_t>(found_.size()),
                     accepts_, narrowed, false, behind_});
  places_.insert(places_.end(), found_.begin(), found_.end());
  state_of_.add(hash, id);
  return id;
}

grammar_states::state_id grammar_states::near(state_id x) {
  if (states_[x].near != unknown) return states_[x].near;
  const auto behind = x == dead ? dead : near(states_[x].behind);
  begin_state();
  accepts_ = states_[x].accepts;
  behind_ = behind;
  bool is_near = behind == states_[x].behind;
  for (size_t i = 0; i < states_[x].places; ++i) {
    const auto p = places(x)[i];
    const auto top = near_frame(p.top);
    is_near &= top == p.top;
    found_.push_back({p.at, top});
  }
  const auto to = is_near ? x : take_state();
  states_[x].near = to;
  return to;
}

/// Its places are in parts that tell the same apart, or take no plain character. Nothing is noted
/// of terminals.
const character_classes* grammar_states::classes_of(state_id x) const {
  const auto& rules = grammar_->rules;
  if (states_[x].behind != dead) return nullptr;
  const character_classes* found = nullptr;
  for (const auto& p : places(x)) {
    if ((rules.nodes()[p.at].set & plain_bytes()).none()) continue;
    const auto* here = rules.classes_at(p.at);
    if (here == nullptr || (found != nullptr && found != here)) return nullptr;
    found = here;
  }
  return found;
}

grammar_states::state_id grammar_states::import(const grammar_states& from, state_id x) {
  const auto behind = x == dead ? dead : import(from, from.states_[x].behind);
  begin_state();
  accepts_ = from.states_[x].accepts;
  behind_ = behind;
  for (const auto& p : from.places(x)) found_.push_back({p.at, import_frame(from, p.top)});
  return take_state();
}

void grammar_states::bar(const grammar_states& from, std::span<const state_id> all) {
  for (const auto x : all) states_[import(from, x)].barred = true;
}

size_t grammar_states::memory_bytes() const {
  return frames_.capacity() * sizeof(frame) + frame_of_.memory_bytes()
         + states_.capacity() * sizeof(state) + places_.capacity() * sizeof(place)
         + state_of_.memory_bytes()
         + rows_.size() * rows_together * grammar_->classes.first.size() * sizeof(state_id)
         + visited_.memory_bytes();
}

} // namespace lamella::model
