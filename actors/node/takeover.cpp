#include "actors/node/takeover.hpp"

#include "actors/kv/kv_mover.hpp"
#include "actors/machine/sizing.hpp"
#include "actors/node/batch_stop.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/error.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/explain.hpp"
#include "gpu/runners/kv_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lamella::actors {

namespace {

/// Until MEMBERSHIP has opened the epoch.
constexpr caf::timespan epoch_timeout = std::chrono::minutes{1};
/// Until a prefill worker has ended what it has launched. A prompt on its own KV with which nobody
/// else can go on is computed to its end first.
constexpr caf::timespan prompt_timeout = std::chrono::minutes{2};
constexpr uint64_t mb = 1'000'000;
/// The epoch before stays open for so long beside the pipeline that has taken over.
constexpr caf::timespan settle_after = std::chrono::milliseconds{100};

class takeover : public std::enable_shared_from_this<takeover> {
public:
  takeover(caf::event_based_actor* self, takeover_config config, std::function<void(renewal)> done)
      : self_{self}, config_{std::move(config)}, done_{std::move(done)} {}

  void run() {
    self_->request(config_.parts->members, epoch_timeout, epoch_next{config_.server->epoch})
        .then(
            [me = shared_from_this()](const epoch_members& x) {
              me->next_ = x;
              me->began_ = me->self_->clock().now();
              if (me->config_.goes_on()) me->begin_copy();
            },
            [me = shared_from_this()](const caf::error& e) {
              const auto why = explain(me->self_->system(), e);
              if (e == ec::no_memory) tell_recomputed(why);
              me->done_({e == ec::no_memory ? renewal::outcome::broken : renewal::outcome::stays,
                         {},
                         why});
            });
  }

  /// Its pipeline is lost.
  void abandon() {
    stop_copy("a worker was lost");
    if (batches_) batches_->abandon();
    config_.server = nullptr;
    config_.parity_keepers.clear();
  }

private:
  using step = void (takeover::*)();

  /// Goes on with a step, or ends with the reason of a failure.
  std::function<void(std::optional<std::string>)> then(step next) {
    return [me = shared_from_this(), next](const std::optional<std::string>& failure) {
      if (!me->config_.goes_on()) return me->stop_copy("a worker was lost");
      if (failure) return me->fail(*failure);
      ((*me).*next)();
    };
  }

  void begin_copy() {
    batches_ = std::make_shared<batch_stop>(self_, config_.server->batches, config_.goes_on);
    if (next_.lenders.empty()) return observe_batches();
    mover_ = std::make_shared<kv_mover>(self_, mover_config());
    tell(event_kind::kv_move_begun, {{"epoch", next_.epoch},
                                     {"from", next_.sizes_before.attention},
                                     {"to", next_.sizes.attention}});
    mover_->begin(then(&takeover::look_at_memory));
  }

  /// Copies that fill the memory of a host would end processes there.
  void look_at_memory() {
    const auto& lacks = mover_->shortage();
    if (!lacks) return copy_first();
    const auto why = fmt::format(
        "host '{}' has {} MB free; a copy of the KV in use, cached prefixes included, "
        "takes {} MB, and {} MB must stay free",
        lacks->host, lacks->free / mb, lacks->needed / mb, scheduler::memory_reserve / mb);
    const bool apart = !next_.level; // tables that are not levelled do no harm
    stop_copy(why);
    self_->send(config_.parts->members, epoch_settled{next_.epoch, false, why, apart});
    if (!apart) return done_({renewal::outcome::stays, {}, why});
    tell_recomputed(why);
    done_({renewal::outcome::broken, {}, why});
  }

  static void tell_recomputed(const std::string& why) {
    tell(event_kind::kv_not_moved, {{"reason", why}});
  }

  kv_mover_config mover_config() const {
    const auto& parts = *config_.parts;
    const auto& spec = parts.program->spec;
    kv_mover_config c;
    c.epoch_before = config_.server->epoch;
    c.epoch = next_.epoch;
    c.shape.kv_heads = spec.kv_heads;
    c.shape.from = next_.layout_before;
    c.shape.to = next_.layout;
    c.level = next_.level;
    for (uint32_t i = 0; i < c.shape.to.members(); ++i)
      if (!std::ranges::count(next_.empty, i)) c.shape.kept.insert(i);
    c.lenders = next_.lenders;
    c.shards = next_.shards;
    c.rooms = next_.rooms;
    c.allocator = config_.server->allocator;
    c.slot_bytes = token_bytes(*parts.options.now(), spec);
    c.window_bytes = spec.layers * gpu::kv_pages::page_bytes;
    c.piece_bytes = parts.move_bytes;
    return c;
  }

  void copy_first() { mover_->copy(then(&takeover::observe_batches)); }

  /// What was decoded meanwhile is told then, too: otherwise every few tokens only.
  void observe_batches() {
    batches_->observe([me = shared_from_this()] { me->copy_again(); });
  }

  void copy_again() {
    if (!mover_) return stop_prompts();
    mover_->copy(then(&takeover::stop_prompts));
  }

  void stop_prompts() {
    stopping_ = true;
    prompts_stop_ = prompts_stopped_ = self_->clock().now();
    auto workers = config_.server->prefill_workers; // a worker may serve several streams
    workers.resize(workers.size() - config_.server->mixed_batches); // they stop as batches
    std::ranges::sort(workers);
    const auto same = std::ranges::unique(workers);
    workers.erase(same.begin(), same.end());
    if (workers.empty()) return stop_parity();
    ask_all(workers, prompt_timeout, hand_over{true}, then(&takeover::copy_prompts));
  }

  /// What shards have pulled since, so that nobody waits for that while nothing runs.
  void copy_prompts() {
    prompts_stopped_ = self_->clock().now();
    if (!mover_) return stop_parity();
    mover_->copy(then(&takeover::stop_parity));
  }

  /// A copy of theirs would write parity of slots that sequences of the next epoch may have by
  /// then.
  void stop_parity() {
    ask_all(config_.parity_keepers, iteration_timeout, hand_over{true},
            then(&takeover::stop_batches));
  }

  void stop_batches() {
    stopped_ = self_->clock().now();
    batches_->stop(then(&takeover::count_sequences));
  }

  /// The next batches know then when all of them have come.
  void count_sequences() {
    committed_ = self_->clock().now();
    ask_all<uint32_t>(config_.server->batches, iteration_timeout, status_atom_v,
                      then(&takeover::copy_rest), [this](uint32_t x) { returning_ += x; });
  }

  void copy_rest() {
    if (!mover_) return start();
    mover_->copy_rest(then(&takeover::start));
  }

  void start() {
    copied_ = self_->clock().now();
    auto& parts = *config_.parts;
    auto before = parts.workers;
    parts.workers = std::make_shared<epoch_members>(next_);
    parts.planned = true;
    parts.moved = mover_ != nullptr;
    parts.returning = returning_;
    if (parts.moved) parts.workers->empty.clear(); // they have what was copied
    use_parity();
    renewal result{renewal::outcome::taken, {}, {}};
    try {
      result.children = config_.start();
    } catch (const std::exception& e) {
      parts.moved_in_vain = parts.moved_in_vain || parts.moved;
      parts.planned = parts.moved = false;
      parts.workers = std::move(before);
      return fail(e.what());
    }
    parts.planned = parts.moved = false;
    tell_taken();
    done_(std::move(result));
    // The end of processes and links takes processors from the first iterations.
    self_->delayed_send(parts.members, settle_after, epoch_settled{next_.epoch, true, {}});
  }

  void tell_taken() {
    using seconds = std::chrono::duration<double>;
    const auto now = self_->clock().now();
    const auto took = seconds{now - began_}.count(), stopped = seconds{now - stopped_}.count();
    const auto slots = mover_ ? mover_->slots_copied() : 0;
    auto& metrics = config_.parts->metrics;
    if (mover_) {
      tell(event_kind::kv_moved, {{"epoch", next_.epoch},
                                  {"slots", slots},
                                  {"bytes", mover_->bytes_copied()},
                                  {"seconds", took}});
      if (metrics) metrics->kv_moved(slots, mover_->bytes_copied(), took);
    }
    tell(event_kind::epoch_taken_over,
         {{"epoch", next_.epoch},
          {"from", config_.server->epoch},
          {"slots_moved", slots},
          {"seconds", took},
          {"prompts_seconds", seconds{prompts_stopped_ - prompts_stop_}.count()},
          {"stopped_seconds", stopped},
          {"last_iteration_seconds", seconds{committed_ - stopped_}.count()},
          {"last_copy_seconds", seconds{copied_ - committed_}.count()}});
    if (metrics) metrics->launches_stopped(stopped);
  }

  /// The parity of the next epoch's shards is made while it serves, unless it is there.
  void use_parity() {
    auto& parts = *config_.parts;
    if (!parts.parity) return;
    parts.parity->add(parity_cells(*parts.options.now()));
    if (mover_) {
      parts.parity->clear();
      parts.digests = std::make_shared<digest_book>(2 * next_.layout.slots());
    }
    std::vector<uint32_t> empty;
    for (auto holder = next_.layout.members(); holder < next_.layout.all(); ++holder)
      if (mover_ || std::ranges::count(next_.empty, holder)) empty.push_back(holder);
    parts.parity->open(next_.epoch, next_.layout, empty);
  }

  void fail(const std::string& why) {
    stop_copy(why);
    if (stopping_) return done_({renewal::outcome::broken, {}, why});
    self_->send(config_.parts->members, epoch_settled{next_.epoch, false, why});
    done_({renewal::outcome::stays, {}, why});
  }

  void stop_copy(const std::string& why) {
    if (!mover_) return;
    tell(event_kind::kv_move_aborted, {{"epoch", next_.epoch},
                                       {"slots", mover_->slots_copied()},
                                       {"bytes", mover_->bytes_copied()},
                                       {"reason", why}});
    if (config_.parts->metrics) config_.parts->metrics->kv_move_aborted();
    std::exchange(mover_, nullptr)->abort();
  }

  /// Asks all of them the same; goes on when all have answered.
  template <class Answer = bool, class Actor, class Message, class Then>
  void ask_all(
      const std::vector<Actor>& whom, caf::timespan timeout, const Message& what, Then then,
      const std::function<void(Answer)>& take = [](Answer) {}) {
    struct round {
      size_t left = 0;
      std::optional<std::string> failure;
    };
    if (whom.empty()) return then(std::nullopt);
    const auto x = std::make_shared<round>(round{whom.size(), std::nullopt});
    for (const auto& who : whom)
      self_->request(who, timeout, what)
          .then(
              [x, then, take, me = shared_from_this()](Answer answer) {
                take(answer);
                if (--x->left == 0) then(x->failure);
              },
              [x, then, me = shared_from_this()](const caf::error& e) {
                x->failure = explain(me->self_->system(), e);
                if (--x->left == 0) then(x->failure);
              });
  }

  caf::event_based_actor* self_;
  takeover_config config_;
  std::function<void(renewal)> done_;
  epoch_members next_;
  std::shared_ptr<batch_stop> batches_;
  std::shared_ptr<kv_mover> mover_; ///< null: no KV has to move
  bool stopping_ = false;           ///< launchers were asked to stop
  uint32_t returning_ = 0;          ///< sequences that decoded when they stopped
  /// The copy began; prefill workers were to stop, and had; launchers were to stop; nothing ran any
  /// more; the rest was copied.
  caf::actor_clock::time_point began_{}, prompts_stop_{}, prompts_stopped_{}, stopped_{},
      committed_{}, copied_{};
};

} // namespace

std::function<void()> take_over(caf::event_based_actor* self, takeover_config config,
                                std::function<void(renewal)> done) {
  const auto x = std::make_shared<takeover>(self, std::move(config), std::move(done));
  x->run();
  return [weak = std::weak_ptr{x}] {
    if (const auto alive = weak.lock()) alive->abandon();
  };
}

} // namespace lamella::actors
