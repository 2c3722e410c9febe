// Steps from one state to the next.
#include "model/grammar/grammar_states.hpp"

#include <algorithm>
#include <utility>

namespace lamella::model {

namespace {

/// Bytes that a character goes on with.
const byte_set& later_bytes() {
  static const auto all = bytes_between(0x80, 0xBF);
  return all;
}

} // namespace

grammar_states::state_id grammar_states::step(state_id from, uint8_t byte) {
  if (const auto* known = states_[from].leads_to)
    if (const auto to = known[grammar_->classes.of[byte]]; (to & counts) == 0) return to;
  return make_step(from, byte);
}

grammar_states::state_id grammar_states::make_step(state_id from, uint8_t byte) {
  if (memory_bytes() > bytes_end_) refuse_more();
  auto alike = step_places(from, byte);
  const auto behind = states_[from].behind;
  const bool asks_behind = behind != dead && terminals_go() != going::on;
  auto to = asks_behind ? take_state_behind(behind, byte) : take_ended_state();
  if (states_[to].barred) to = dead;
  if (known_steps_ == steps::made_again) return to;
  if (asks_behind) alike &= known_alike(behind, byte);
  keep_step(from, to, alike);
  return to;
}

/// Begins the state that the places lead to. Returns the bytes that lead each of them to the same.
byte_set grammar_states::step_places(state_id from, uint8_t byte) {
  begin_state();
  const auto& nodes = grammar_->rules.nodes();
  auto alike = byte_set{}.set();
  for (size_t i = 0; i < states_[from].places; ++i) {
    const auto p = places(from)[i];
    const auto& node = nodes[p.at];
    if (!node.set[byte]) {
      alike &= ~node.set;
      continue;
    }
    const auto& way = grammar_->rules.way_of(node, byte);
    alike &= way.set;
    reach_all(way.next, p.top, node.in_terminal ? terminals::end : terminals::begin);
  }
  return alike;
}

/// Do terminals go on with the byte, or is that not known before their character is whole?
grammar_states::going grammar_states::terminals_go() const {
  if (!ended_.empty()) return going::on;
  const auto& nodes = grammar_->rules.nodes();
  for (const auto& p : found_)
    if (const auto& node = nodes[p.at]; node.in_terminal)
      return (node.set & later_bytes()).any() ? going::within_character : going::on;
  return going::no;
}

/// What is put together, and what `behind` leads to: beside it where no terminal goes on, behind it
/// where one has begun a character that it may yet not take.
grammar_states::state_id grammar_states::take_state_behind(state_id behind, uint8_t byte) {
  const bool beside = terminals_go() == going::no;
  auto own = std::move(found_);
  const auto accepts = accepts_;
  const auto visits = visits_;
  behind = step(behind, byte);
  if (beside && own.empty() && !accepts) return behind;
  begin_state();
  found_ = std::move(own);
  accepts_ = accepts;
  visits_ = visits;
  behind_ = behind;
  if (beside) {
    const auto others = places(behind);
    found_.insert(found_.end(), others.begin(), others.end());
    accepts_ |= states_[behind].accepts;
    behind_ = states_[behind].behind;
  }
  return take_state();
}

/// What is put together, with the state behind it where terminals end.
grammar_states::state_id grammar_states::take_ended_state() {
  if (ended_.empty()) return take_state();
  const auto& nodes = grammar_->rules.nodes();
  auto own = std::move(found_);
  const auto ended = std::move(ended_);
  const auto accepts = accepts_;
  const auto visits = visits_;
  auto rank = nodes[ended.front().at].rank;
  for (const auto& p : ended) rank = std::min(rank, nodes[p.at].rank);
  begin_state();
  for (const auto& p : ended)
    if (nodes[p.at].rank == rank) reach_all(nodes[p.at].next, p.top, terminals::begin);
  const auto behind = take_state();
  begin_state();
  found_ = std::move(own);
  accepts_ = accepts;
  visits_ = visits;
  behind_ = behind;
  return take_state();
}

/// States with counts far from their limits do not come again, and are not worth a row. In a row
/// all bytes that the same places take are known at once.
void grammar_states::keep_step(state_id from, state_id to, const byte_set& alike) {
  if (states_[from].leads_to == nullptr && near(from) == from) states_[from].leads_to = make_row();
  auto* known = states_[from].leads_to;
  if (known == nullptr) return;
  const auto beside = near(to);
  const auto leads = beside == to ? to : beside | counts;
  const auto& first = grammar_->classes.first;
  for (size_t c = 0; c < first.size(); ++c)
    if (alike[first[c]]) known[c] = leads;
}

/// Bytes that lead from `x` to the same as `byte`, as far as that is known: the first one of each
/// class.
byte_set grammar_states::known_alike(state_id x, uint8_t byte) const {
  const auto& classes = grammar_->classes;
  const auto own = classes.of[byte];
  const auto* known = states_[x].leads_to;
  byte_set alike;
  for (size_t c = 0; c < classes.first.size(); ++c)
    if (c == own || (known != nullptr && known[c] == known[own])) alike.set(classes.first[c]);
  return alike;
}

/// Null where there are enough of them.
grammar_states::state_id* grammar_states::make_row() {
  const auto width = grammar_->classes.first.size();
  if (rows_left_ == 0) {
    if ((rows_.size() + 1) * rows_together * width * sizeof(state_id) > rows_bytes_max)
      return nullptr;
    rows_.push_back(std::make_unique_for_overwrite<state_id[]>(rows_together * width));
    rows_left_ = rows_together;
  }
  auto* made = rows_.back().get() + (rows_together - rows_left_--) * width;
  std::fill_n(made, width, state_id{unknown});
  return made;
}

} // namespace lamella::model
