#include "model/grammar/output_constraint.hpp"

#include "model/grammar/ambiguity.hpp"
#include "model/grammar/grammar_states.hpp"
#include "model/grammar/mask_walk.hpp"

#include <algorithm>

namespace lamella::model {

namespace {

/// What follow_at_once() takes on: steps from so many places together, and so much work of the
/// states that they lead to, some 0.1 ms.
constexpr size_t places_at_once = 1'024;
constexpr uint64_t work_at_once = 16'384;
constexpr std::chrono::microseconds wait_at_once{50};

} // namespace

output_constraint::~output_constraint() = default;

output_constraint::output_constraint(grammar g, std::shared_ptr<const token_trie> vocabulary,
                                     std::vector<token_id> ends, uint32_t vocabulary_size,
                                     size_t work_max)
    : vocabulary_{std::move(vocabulary)}, ends_{std::move(ends)}, vocabulary_size_{vocabulary_size},
      work_max_{work_max}, grammar_{std::make_shared<runnable_grammar>(
                               std::move(g), vocabulary_->single_bytes())},
      endless_{std::make_unique<endless_states>(find_endless(grammar_, vocabulary_->depth()))},
      walks_{new_states()}, states_{new_states()} {
  refuse_ambiguous(grammar_);
  count_bytes();
}

std::shared_ptr<grammar_states> output_constraint::new_states() const {
  auto made = std::make_shared<grammar_states>(grammar_, vocabulary_->depth());
  made->bar(*endless_->in, endless_->all);
  return made;
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
  states_->allow(token_work_max, states_bytes_max);
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
  auto shared = std::make_shared<const token_mask>(walk(from));
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
  states_->allow(work_at_once, states_bytes_max);
  try {
    for (const auto t : tokens)
      for (const char byte : vocabulary_->bytes_of(t)) {
        if ((places += states_->places_of(at)) > places_at_once) return {};
        at = states_->step(at, static_cast<uint8_t>(byte));
      }
  } catch (const grammar_error&) {
    return {};
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
  const auto old = std::exchange(states_, new_states());
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
  if (!walks_know_) walks_know_ = std::make_unique<walk_knowledge>(*walks_);
  const std::lock_guard guard{lock_};
  return walks_->import(*states_, states_->near(enter(x)));
}

token_mask output_constraint::walk(state_id from) try {
  walks_->allow(walk_work_max, states_bytes_max);
  mask_walk walk{*vocabulary_, *walks_, *walks_know_, vocabulary_size_};
  if (!walk.run(from, work_max_)) walk.run_single_bytes(from);
  auto made = walk.take();
  if (walks_->accepts(from))
    for (const auto t : ends_)
      if (t < vocabulary_size_) made.words[t / 32] |= 1u << t % 32;
  if (walks_->memory_bytes() > walks_kept_bytes) forget_walks();
  walks_bytes_ = walks_->memory_bytes();
  return made;
} catch (const grammar_error&) {
  forget_walks(); // what is known may be half made
  throw;
}

void output_constraint::forget_walks() {
  walks_know_.reset();
  walks_ = new_states();
  walks_bytes_ = walks_->memory_bytes();
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
