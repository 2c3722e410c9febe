/// The sequences of a BATCH (V-M14, V-M15): their rows, slots and tokens.
#pragma once

#include "model/token.hpp"
#include "scheduler/batch/join_gathering.hpp"
#include "scheduler/batch/slot_growth.hpp"
#include "scheduler/decode_pace.hpp"
#include "scheduler/finish.hpp"
#include "scheduler/seat_table.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace lamella::scheduler {

struct decode_batch_settings {
  slot_growth growth{};
  /// Share of the time for decoding while lost KV is recomputed on the same processors; 100: all.
  uint32_t rebuild_percent = 100;
  /// Launches that a sequence may sit out for prompts, from its joining to its end (S-M12).
  uint32_t stand_backs = 0;
  bool gathers = false; ///< an epoch before this one has left sequences, which will join
  join_share share{};   ///< of these
};

/// A sequence as it joins.
struct decode_join {
  sequence_id sequence{};
  uint32_t member = 0;                 ///< number of the slot table with its KV
  std::vector<slot_run> runs{};        ///< its slots
  uint32_t position = 0;               ///< of `last`: the number of tokens with K and V
  model::token_id last = 0;            ///< the newest token, not yet in the cache
  uint32_t generated = 1;              ///< tokens generated so far, `last` included
  uint32_t max_tokens = 0;             ///< generated tokens at which it finishes
  bool needs_history = false;          ///< its next row depends on the tokens before
  std::vector<model::token_id> ends{}; ///< tokens that finish it
};

/// Takes decisions and does nothing: its answers say what to send. Nothing of a failed iteration
/// counts; rows run again from the committed tokens. Costs are per call, in rows of the batch.
class decode_batch {
public:
  using nanoseconds = std::chrono::nanoseconds;

  /// A sequence with its row of the batch. Positions and counts are those of the committed tokens.
  struct row {
    decode_join of;
    uint32_t capacity = 0;                ///< number of its slots
    uint32_t in_flight = 0;               ///< launched iterations that include it
    bool growing = false;                 ///< has asked for slots
    bool leaving = false;                 ///< generates no more tokens
    bool evicted = false;                 ///< preempted because slots ran out
    bool yields = false;                  ///< keeps its slots and comes back
    bool exposed = false;                 ///< a dropped iteration may still write its slots
    bool waits = false;                   ///< sits out iterations, see wait()
    uint32_t stood_back = 0;              ///< launches that it sat out for prompts
    uint32_t joined_at = 0;               ///< its position then
    std::vector<model::token_id> written; ///< from joined_at on

    /// The position that its next launch writes.
    uint32_t next() const { return of.position + in_flight; }
  };

  /// A sequence that has left, and that no launch uses.
  struct departure {
    sequence_id sequence{};
    bool evicted = false;
    bool yields = false;
    uint32_t written_from = 0;            ///< position of the first of `written`
    std::vector<model::token_id> written; ///< since it joined
  };

  /// What the next iteration is made of.
  struct step {
    std::vector<uint32_t> rows;     ///< their seats, ascending
    std::vector<uint32_t> growing;  ///< seats that ask for slots; answer with granted(), refused()
    std::vector<uint32_t> standing; ///< seats that stand back for prompts; confirm: stood_back()
  };

  /// A token that was sampled for a row.
  struct commitment {
    bool counts = false; ///< else the sequence has left meanwhile
    uint32_t index = 0;  ///< of the generated token
    finish reason = finish::none;
  };

  explicit decode_batch(decode_batch_settings settings = {})
      : settings_{settings}, pace_{settings.rebuild_percent}, gathering_{settings.gathers,
                                                                         settings.share} {}

  /// It gets a row before the next launch that does not run ahead.
  void join(decode_join x, nanoseconds now);
  /// Gives rows to those that have joined. Returns their seats.
  std::vector<uint32_t> seat_joined();

  enum class leave_answer : uint8_t { leaves, ends_anyway, unknown };
  /// The sequence generates no more, and leaves when no launch uses its slots; it `yields` if it
  /// keeps them. ends_anyway: it was leaving before, and does not yield.
  leave_answer leave(sequence_id sequence, bool yields);
  /// The sequence of that seat cannot go on.
  void fail(uint32_t seat) { rows_.at(seat).leaving = true; }
  /// Frees the rows of those that have left. Cost: O(rows).
  std::vector<departure> depart();

  /// Rows of the next iteration: all but those that wait or have no slot left and, `prompts_first`,
  /// those that may still stand back. Those with few slots left ask for more. Cost: O(rows).
  step next(bool prompts_first = false);
  /// These rows sit the launch out: prompts are in it instead.
  void stood_back(const std::vector<uint32_t>& seats);
  /// The row is in an iteration that is launched.
  void launched(uint32_t seat) { ++rows_.at(seat).in_flight; }
  /// Are the rows of the next iteration known before the newest one has answered (decision 20)?
  /// Cost: O(rows).
  bool rows_are_known() const;

  /// The row sits out iterations, or no longer: something of its next launch is not known yet.
  void wait(uint32_t seat, bool on) { rows_.at(seat).waits = on; }

  /// Slots that a sequence has asked for; nothing happens when it has left.
  void granted(sequence_id sequence, const std::vector<slot_run>& runs);
  /// There are none. Returns the seat of the sequence that is preempted if it cannot go on without:
  /// the youngest with KV in the same slot table, one at a time of each table.
  std::optional<uint32_t> refused(sequence_id sequence);

  /// A sampled token of an iteration that has ended is final; `valid`: it was drawn from finite
  /// logits, else it neither counts nor ends the sequence: see fail().
  commitment commit(uint32_t seat, model::token_id token, bool valid = true);

  /// All that is in flight is dropped; rows of it that leave take part in the next attempt, which
  /// clears what is left of them on the devices.
  void drop();
  /// An iteration has ended at `now` that took `took`.
  void ran(nanoseconds now, nanoseconds took);

  /// Recomputation of KV on that prefill stream has started (`some`) or ended.
  void rebuilds(stream_id prefill_stream, bool some) { pace_.rebuilds(prefill_stream, some); }
  /// From `now` to the next launch; 0: at once. Cost: O(rows) before the first one.
  nanoseconds rest(nanoseconds now);

  /// The position of each sequence that goes on, those that have not got a row included.
  std::vector<std::pair<sequence_id, uint32_t>> positions() const;

  const row& at(uint32_t seat) const { return rows_.at(seat); }
  std::optional<uint32_t> seat_of(sequence_id sequence) const;
  size_t size() const { return rows_.size() + joining_.size(); }
  bool joins() const { return !joining_.empty(); } ///< some have no row yet
  seat_table& table() { return table_; }           ///< prompts have seats in it too

private:
  uint32_t seat(decode_join&& x);
  /// A dropped iteration may still run on a shard until the next attempt has cleared the streams.
  bool must_run_again(const row& x) const { return x.exposed && failing_; }

  decode_batch_settings settings_;
  seat_table table_;
  std::map<uint32_t, row> rows_;            ///< by seat
  std::map<sequence_id, uint32_t> seat_of_; ///< the same, by sequence: in order of arrival
  std::deque<decode_join> joining_;
  decode_pace pace_;
  join_gathering gathering_;
  bool failing_ = false; ///< no iteration has ended well since the last drop()
};

} // namespace lamella::scheduler
