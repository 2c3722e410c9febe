#include "actors/node/batch_stop.hpp"

#include "actors/protocol/batches.hpp"
#include "actors/shared/explain.hpp"

#include <algorithm>
#include <utility>

namespace lamella::actors {

namespace {

/// Whoever answers sooner runs no iteration, or one that nobody need wait for.
constexpr std::chrono::milliseconds at_once{1};

} // namespace

batch_stop::batch_stop(caf::event_based_actor* self, const std::vector<batch_actor>& batches,
                       std::function<bool()> goes_on)
    : self_{self}, goes_on_{std::move(goes_on)} {
  for (const auto& who : batches) batches_.push_back({who, {}, {}});
}

void batch_stop::observe(std::function<void()> ready) {
  if (batches_.empty()) return ready();
  ready_ = std::move(ready);
  for (size_t i = 0; i < batches_.size(); ++i) ask(i);
}

void batch_stop::ask(size_t i) {
  batches_[i].asked = self_->clock().now();
  self_->request(batches_[i].who, iteration_timeout, hand_over{false})
      .then([me = shared_from_this(), i](bool) { me->on_iteration_end(i, true); },
            [me = shared_from_this(), i](const caf::error&) { me->on_iteration_end(i, false); });
}

/// Of a batch that is gone the supervisor hears, and of one that hangs whoever stops it.
void batch_stop::on_iteration_end(size_t i, bool good) {
  if (!goes_on_() || batches_.empty()) return;
  auto& x = batches_[i];
  const auto now = self_->clock().now();
  x.rests = !good || (now - x.asked < at_once && x.ends > 0); // the first may have been ending
  x.newest = {now.time_since_epoch(), x.rests ? now - now : now - x.asked};
  ++x.ends;
  const bool told = stopping_ && x.further == 0;
  if (x.further > 0 && (x.rests || --x.further == 0)) {
    x.further = 0;
    tell_to_stop(i);
  } else if (!told && !x.rests) {
    ask(i);
  }
  if (ready_ && all_observed()) std::exchange(ready_, nullptr)();
}

/// The first answer came in the middle of an iteration.
bool batch_stop::all_observed() const {
  return std::ranges::all_of(batches_, [](const one& x) { return x.rests || x.ends > 1; });
}

void batch_stop::stop(result done) {
  if (batches_.empty()) return done(std::nullopt);
  done_ = std::move(done);
  stopping_ = true;
  left_ = batches_.size();
  std::vector<scheduler::running_iteration> ends;
  for (const auto& x : batches_) ends.push_back(x.newest);
  const auto further = scheduler::further_iterations(ends, self_->clock().now().time_since_epoch());
  for (size_t i = 0; i < batches_.size(); ++i) {
    batches_[i].further = further[i];
    if (further[i] == 0) tell_to_stop(i);
  }
}

void batch_stop::tell_to_stop(size_t i) {
  const auto ended = [me = shared_from_this()](std::optional<std::string> failure) {
    if (failure) me->failure_ = std::move(failure);
    if (--me->left_ == 0 && me->done_) std::exchange(me->done_, nullptr)(me->failure_);
  };
  self_->request(batches_[i].who, iteration_timeout, hand_over{true})
      .then([ended](bool) { ended(std::nullopt); },
            [ended, self = self_](const caf::error& e) { ended(explain(self->system(), e)); });
}

void batch_stop::abandon() {
  batches_.clear();
  ready_ = nullptr;
  done_ = nullptr;
}

} // namespace lamella::actors
