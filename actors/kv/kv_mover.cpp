#include "actors/kv/kv_mover.hpp"

#include "actors/protocol/moves.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/shared/explain.hpp"
#include "base/buggify.hpp"
#include "scheduler/types.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace lamella::actors {

namespace {

constexpr caf::timespan allocator_timeout = std::chrono::seconds{30};
/// Of one piece, on either side; the sides have a deadline of their own.
constexpr caf::timespan piece_timeout = std::chrono::seconds{60};
/// Of a piece that decoding waits for: a pipeline that is made anew costs less.
constexpr caf::timespan rest_timeout = std::chrono::seconds{3};

/// Of each table.
std::vector<uint32_t> slots_of(const scheduler::kv_layout& x) {
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < x.tables(); ++i) slots.push_back(x.slots_of(i));
  return slots;
}

stream_id stream_from(uint32_t member) { return stream_id{scheduler::move_streams + member}; }

} // namespace

/// Slots that are being copied, and what the two sides of each copy have said.
struct kv_mover::piece {
  kv_move_piece what;
  caf::timespan limit{};
  std::vector<scheduler::kv_copy> copies;
  std::vector<std::optional<kv_moved>> first; ///< of each copy: the side that ended first
  size_t open = 0;                            ///< answers that have not come
  std::optional<std::string> failure;
  caf::actor_clock::time_point began{};
};

void kv_mover::begin(result done) {
  self_
      ->request(config_.allocator, allocator_timeout,
                kv_move_begin{config_.epoch_before, slots_of(config_.shape.to), config_.level})
      .then(
          [me = shared_from_this(), done](const kv_move_plan& x) {
            const auto& c = me->config_;
            std::vector<uint64_t> bytes;
            for (const auto& member : scheduler::bytes_of_members(c.shape, x.loads, c.slot_bytes))
              bytes.push_back(scheduler::room_for(member.copied, member.whole, c.window_bytes));
            me->shortage_ = scheduler::shortage_of(bytes, c.rooms);
            done(std::nullopt);
          },
          [me = shared_from_this(), done](const caf::error& e) {
            done(explain(me->self_->system(), e));
          });
}

void kv_mover::copy(result done) {
  chase_.emplace();
  copy_next(piece_timeout, done);
}

void kv_mover::copy_rest(result done) {
  chase_.reset();
  copy_next(rest_timeout, done);
}

uint64_t kv_mover::piece_slots() const {
  return std::max<uint64_t>(config_.piece_bytes / config_.slot_bytes, 1);
}

bool kv_mover::goes_on(const kv_move_piece& x, const result& done) {
  using state = scheduler::kv_move_chase::state;
  if (!chase_) return true;
  const auto left = x.left + scheduler::length_of(x.from);
  const auto now = chase_->look(x.from_table, x.to_table, left, piece_slots());
  if (now == state::near) done(std::nullopt);
  if (now == state::behind)
    done("sequences grow faster than their KV is copied: " + std::to_string(left)
         + " slots are left");
  return now == state::on;
}

void kv_mover::copy_next(caf::timespan limit, const result& done) {
  const auto most = static_cast<uint32_t>(piece_slots());
  self_->request(config_.allocator, allocator_timeout, kv_move_ask{config_.epoch_before, most})
      .then(
          [me = shared_from_this(), limit, done](const kv_move_piece& x) {
            if (me->over_) return done("aborted");
            if (x.from.empty()) return done(std::nullopt);
            auto next = std::make_shared<piece>();
            next->what = x;
            next->limit = limit;
            next->copies = scheduler::copies_of(me->config_.shape, x.from_table, x.to_table);
            me->copy_piece(next, done);
          },
          [me = shared_from_this(), done](const caf::error& e) {
            done(explain(me->self_->system(), e));
          });
}

/// All copies of a piece at once; each member takes one after the other.
void kv_mover::copy_piece(const std::shared_ptr<piece>& x, const result& done) {
  x->began = self_->clock().now();
  x->first.resize(x->copies.size());
  x->open = 2 * x->copies.size();
  if (x->open == 0) return copied(x, done);
  const auto on_side = [me = shared_from_this(), x, done](size_t i, const kv_moved* moved,
                                                          std::optional<std::string> failure) {
    auto& first = x->first[i];
    if (moved != nullptr && first
        && (first->digest != moved->digest || first->bytes != moved->bytes
            || buggify(buggify_point::remake_fails)))
      failure = "KV transfer from member " + std::to_string(x->copies[i].from) + ": digests differ";
    if (moved != nullptr && !first) first = *moved;
    if (failure && !x->failure) {
      x->failure = failure;
      me->abort(); // the other sides need not wait
    }
    if (--x->open == 0) me->copied(x, done);
  };
  for (size_t i = 0; i < x->copies.size(); ++i) {
    const auto& c = x->copies[i];
    const auto number = ++number_;
    const auto stream = stream_from(c.from);
    const auto ended = [on_side, i](const kv_moved& moved) { on_side(i, &moved, std::nullopt); };
    const auto failed = [me = shared_from_this(), on_side, i](const caf::error& e) {
      on_side(i, nullptr, explain(me->self_->system(), e));
    };
    self_
        ->request(
            config_.lenders.at(c.from), x->limit,
            kv_offer{stream, config_.epoch, number, c.to, x->what.from, 0, c.from_head, c.heads})
        .then(ended, failed);
    self_
        ->request(config_.shards.at(c.to), x->limit,
                  kv_pull{stream, config_.epoch, number, x->what.to, false, c.to_head, c.heads})
        .then(ended, failed);
  }
}

/// The next piece, once the allocator knows of this one.
void kv_mover::copied(const std::shared_ptr<piece>& x, const result& done) {
  if (x->failure) return done(x->failure);
  const auto slots = scheduler::length_of(x->what.from);
  if (!x->copies.empty()) slots_copied_ += slots; // others stay where they are
  const std::chrono::duration<double> took = self_->clock().now() - x->began;
  spdlog::debug("KV copied epoch={} slots={} copies={} left={} seconds={:.4f}", config_.epoch,
                slots, x->copies.size(), x->what.left, took.count());
  self_->request(config_.allocator, allocator_timeout, kv_move_done{config_.epoch_before})
      .then(
          [me = shared_from_this(), x, done](bool) {
            if (me->goes_on(x->what, done)) me->copy_next(x->limit, done);
          },
          [me = shared_from_this(), done](const caf::error& e) {
            done(explain(me->self_->system(), e));
          });
}

void kv_mover::abort() {
  if (std::exchange(over_, true)) return;
  for (uint32_t from = 0; from < config_.lenders.size(); ++from) {
    self_->send(config_.lenders[from], kv_pull_cancel{stream_from(from)});
    for (const auto& shard : config_.shards) self_->send(shard, kv_pull_cancel{stream_from(from)});
  }
  self_->send(config_.allocator, kv_move_abort{config_.epoch_before});
}

} // namespace lamella::actors
