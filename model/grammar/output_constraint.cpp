#include "model/grammar/output_constraint.hpp"

#include "model/grammar/ambiguity.hpp"
#include "model/grammar/grammar_states.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

/// What follow_at_once() takes on: steps from so many places together.
constexpr size_t places_at_once = 1'024;
constexpr std::chrono::microseconds wait_at_once{50};

} // namespace

output_constraint::output_constraint(grammar g, std::shared_ptr<const token_trie> vocabulary,
                                     std::vector<token_id> ends, uint32_t vocabulary_size,
                                     size_t work_max)
    : vocabulary_{std::move(vocabulary)}, ends_{std::move(ends)}, vocabulary_size_{vocabulary_size},
      work_max_{work_max}, grammar_{std::make_shared<runnable_grammar>(
                               std::move(g), vocabulary_->single_bytes())},
      walks_{std::make_shared<grammar_states>(grammar_, vocabulary_->depth())},
      states_{std::make_shared<grammar_states>(grammar_, vocabulary_->depth())} {
  refuse_ambiguous(grammar_);
  count_bytes();
}

output_constraint::position output_constraint::start() const {
  const std::lock_guard guard{lock_};
  position x;
  x.in_ = states_;
  x.at_ = states_->start();
  return x;
}

output_constraint::position output_constraint::advance(const position& from, token_id token) {
  const std::lock_guard guard{lock_};
  renew_states();
  position to;
  to.at_ = after(enter(from), token);
  to.in_ = states_;
  count_bytes();
  return to;
}

std::shared_ptr<const token_mask> output_constraint::mask(const position& x) {
  {
    const std::lock_guard guard{lock_};
    if (auto known = known_mask(states_->near(enter(x)))) return known;
  }
  const std::lock_guard guard{walking_};
  const auto from = begin_walk(x);
  {
    const std::lock_guard states{lock_}; // somebody may have made it meanwhile
    if (auto known = known_mask(states_->near(enter(x)))) return known;
  }
  bool complete = false;
  auto made = walk(from, vocabulary_->depth(), complete);
  if (!complete) made = walk(from, 1, complete);
  walks_bytes_ = walks_->memory_bytes();
  auto shared = std::make_shared<const token_mask>(std::move(made));
  const std::lock_guard states{lock_};
  keep(states_->near(enter(x)), shared);
  return shared;
}

output_constraint::followed output_constraint::follow(position from,
                                                      std::span<const token_id> tokens) {
  for (const auto t : tokens) from = advance(from, t);
  auto allowed = mask(from);
  return {std::move(from), std::move(allowed)};
}

std::optional<output_constraint::followed>
output_constraint::follow_at_once(const position& from, std::span<const token_id> tokens) {
  const std::unique_lock guard{lock_, wait_at_once};
  if (!guard || from.in_ != states_ || states_->memory_bytes() > states_kept_bytes) return {};
  auto at = from.at_;
  size_t places = 0;
  for (const auto t : tokens)
    for (const char byte : vocabulary_->bytes_of(t)) {
      if ((places += states_->places_of(at)) > places_at_once) return {};
      at = states_->step(at, static_cast<uint8_t>(byte));
    }
  followed x{{}, known_mask(states_->near(at))};
  if (x.mask == nullptr) return {};
  x.at.in_ = states_;
  x.at.at_ = at;
  return x;
}

// --- under `lock_`
// --------------------------------------------------------------------------------

output_constraint::state_id output_constraint::enter(const position& x) {
  return x.in_ == states_ ? x.at_ : states_->import(*x.in_, x.at_);
}

output_constraint::state_id output_constraint::after(state_id from, token_id token) {
  for (const char byte : vocabulary_->bytes_of(token)) {
    if (from == grammar_states::dead) break;
    from = states_->step(from, static_cast<uint8_t>(byte));
  }
  return from;
}

std::shared_ptr<const token_mask> output_constraint::known_mask(state_id near) const {
  const auto known = masks_.find(near);
  return known != masks_.end() ? known->second : nullptr;
}

/// Answers keep the states they are in, and import them when they go on.
void output_constraint::renew_states() {
  if (states_->memory_bytes() <= states_kept_bytes) return;
  const auto old =
      std::exchange(states_, std::make_shared<grammar_states>(grammar_, vocabulary_->depth()));
  std::unordered_map<state_id, std::shared_ptr<const token_mask>> masks;
  for (auto& x : oldest_) {
    auto mask = std::move(masks_.at(x));
    x = states_->import(*old, x);
    masks.emplace(x, std::move(mask));
  }
  masks_ = std::move(masks);
}

void output_constraint::keep(state_id near, std::shared_ptr<const token_mask> mask) {
  const auto bytes = mask->words.size() * sizeof(uint32_t);
  if (!masks_.emplace(near, std::move(mask)).second) return;
  oldest_.push_back(near);
  masks_bytes_ += bytes;
  while (masks_bytes_ > masks_kept_bytes) {
    const auto gone = masks_.extract(oldest_.front());
    masks_bytes_ -= gone.mapped()->words.size() * sizeof(uint32_t);
    oldest_.pop_front();
  }
  count_bytes();
}

void output_constraint::count_bytes() {
  bytes_ = grammar_->rules.nodes().size() * sizeof(grammar::node) + states_->memory_bytes()
           + masks_bytes_ + walks_bytes_;
}

// --- under `walking_`
// -----------------------------------------------------------------------------

/// Where the walk of the mask of `x` begins.
output_constraint::state_id output_constraint::begin_walk(const position& x) {
  if (walks_->memory_bytes() > walks_kept_bytes) {
    walks_ = std::make_shared<grammar_states>(grammar_, vocabulary_->depth());
    plain_.clear();
  }
  const std::lock_guard guard{lock_};
  return walks_->import(*states_, states_->near(enter(x)));
}

/// Does every plain character of a string lead from the near state to itself, as between the
/// quotation marks of a free string?
bool output_constraint::takes_plain_text(state_id at) {
  if (walks_->near_step(at, ' ') != at) return false;
  const auto [result, is_new] = plain_.try_emplace(at, false);
  if (is_new) result->second = all_lead_back(at);
  return result->second;
}

bool output_constraint::all_lead_back(state_id at) {
  std::vector<std::pair<state_id, int>> known; // all characters from there lead to `at`
  // All bytes of a range, and so many more behind each.
  const auto comes_back = [&](auto&& self, state_id from, int low, int high, int more) -> bool {
    auto last = grammar_states::dead;
    for (auto b = low; b <= high; ++b) {
      const auto next = walks_->near_step(from, static_cast<uint8_t>(b));
      if (next == std::exchange(last, next) && b > low) continue;
      if (more == 0 ? next != at : next == grammar_states::dead) return false;
      if (more == 0 || std::find(known.begin(), known.end(), std::pair{next, more}) != known.end())
        continue;
      const bool first = from == at; // whose lead byte says which bytes may follow
      const auto least = !first ? 0x80 : b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
      const auto most = !first ? 0xBF : b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
      if (!self(self, next, least, most, more - 1)) return false;
      if (least == 0x80 && most == 0xBF) known.emplace_back(next, more);
    }
    return true;
  };
  const auto all = [&](int low, int high, int more) {
    return comes_back(comes_back, at, low, high, more);
  };
  return all(' ', '!', 0) && all('#', '[', 0) && all(']', 0x7F, 0) && all(0xC2, 0xDF, 1)
         && all(0xE0, 0xE0, 2) && all(0xE1, 0xEC, 2) && all(0xED, 0xED, 2) && all(0xEE, 0xEF, 2)
         && all(0xF0, 0xF0, 3) && all(0xF1, 0xF3, 3) && all(0xF4, 0xF4, 3);
}

/// Goes through the vocabulary's tree, and past what is below a byte that is not allowed, or deeper
/// than `depth_max`. Not `complete`: it has become too much work. Within free strings plain tokens
/// are allowed for certain, and only the others are gone through.
token_mask output_constraint::walk(state_id from, uint32_t depth_max, bool& complete) {
  constexpr uint32_t worth_a_look = 32; // nodes
  token_mask mask{std::vector<uint32_t>((vocabulary_size_ + 31) / 32)};
  const auto allow = [&](token_id t) {
    if (t < vocabulary_size_) mask.words[t / 32] |= 1u << t % 32;
  };
  if (walks_->accepts(from))
    for (const auto t : ends_) allow(t);
  const auto &all = vocabulary_->all(), &others = vocabulary_->others();
  std::vector<state_id> at(vocabulary_->depth() + 1, from); // by bytes from the root
  std::vector<bool> seen;
  size_t work = 0;
  const auto allow_plain = [&](uint32_t begin, uint32_t end) {
    for (auto i = begin; i < end; ++i)
      if (vocabulary_->is_plain(i)) allow(all.tokens[i]);
  };
  const auto go = [&](auto&& self, const token_trie::tree& tree, uint32_t i, uint32_t end) -> bool {
    while (i < end) {
      const auto& node = tree.nodes[i];
      const auto next = walks_->near_step(at[node.depth - 1], node.byte);
      if (next == grammar_states::dead) {
        i = node.behind;
        continue;
      }
      if (next >= seen.size()) seen.resize(walks_->states() + 1024);
      if (!seen[next]) {
        seen[next] = true;
        work += 1 + walks_->places_of(next);
        if (work > work_max_ && depth_max > 1) return false;
      }
      if (&tree == &all && node.behind - i > worth_a_look && depth_max > 1
          && takes_plain_text(next)) {
        allow_plain(node.first_token, tree.nodes[node.behind].first_token);
        const auto other = vocabulary_->in_others(i);
        if (other != token_trie::absent && !self(self, others, other, others.nodes[other].behind))
          return false;
        i = node.behind;
        continue;
      }
      at[node.depth] = next;
      for (auto t = node.first_token; t < tree.nodes[i + 1].first_token; ++t) allow(tree.tokens[t]);
      i = node.depth < depth_max ? i + 1 : node.behind;
    }
    return true;
  };
  const bool plain = depth_max > 1 && takes_plain_text(from);
  if (plain) allow_plain(0, static_cast<uint32_t>(all.tokens.size()));
  const auto& whole = plain ? others : all;
  complete = go(go, whole, 0, static_cast<uint32_t>(whole.nodes.size() - 1));
  return mask;
}

// --- one answer
// -----------------------------------------------------------------------------------

constrained_answer::constrained_answer(std::shared_ptr<output_constraint> held_to)
    : held_to_{std::move(held_to)} {
  if (held_to_) at_ = held_to_->start();
}

void constrained_answer::generated(std::span<const token_id> tokens) {
  if (!held_to_) return;
  unread_.insert(unread_.end(), tokens.begin(), tokens.end());
  mask_ = nullptr;
}

bool constrained_answer::knows_mask() {
  if (!held_to_ || mask_) return true;
  if (auto x = held_to_->follow_at_once(at_, unread_)) take(std::move(*x));
  return mask_ != nullptr;
}

void constrained_answer::make_mask() {
  if (!knows_mask()) take(held_to_->follow(at_, unread_));
}

void constrained_answer::take(output_constraint::followed x) {
  at_ = std::move(x.at);
  unread_.clear();
  mask_ = std::move(x.mask);
}

} // namespace lamella::model
