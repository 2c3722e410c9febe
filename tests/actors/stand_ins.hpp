/// Actors of our interfaces that do what the test says, and write down what they were told.
#pragma once

#include "actors/device/iteration.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/moves.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/protocol/tokens.hpp"
#include "scheduler/slot_pool.hpp"
#include "tests/actors/stage.hpp"

#include <deque>
#include <map>
#include <set>

namespace lamella::actors::test {

constexpr sequence_id seq(uint64_t request, uint32_t k = 0) {
  return scheduler::sequence_of(request_id{request}, k);
}

/// The token that stand-in replicas draw: printable, and a function of what the sampler may depend
/// on alone.
/// What kv_adopt says of the one table.
inline std::vector<uint32_t> tables_if(bool x) {
  return x ? std::vector<uint32_t>{0} : std::vector<uint32_t>{};
}

inline token_id token_for(uint64_t seed, uint32_t choice, uint32_t draw) {
  tests::splitmix random{seed * 1'000'003 + choice * 10'007 + draw};
  return static_cast<token_id>(3 + 'a' + random.below(26));
}

inline sampled_token draw(const sample_record& x) {
  sampled_token result;
  if (x.given != gpu::no_token) {
    result.token = x.given;
    result.rank = 1;
    result.logprob = -static_cast<float>(x.given);
    return result;
  }
  result.token = token_for(x.seed, x.choice, x.draw);
  result.logprob = -1;
  return result;
}

/// A prompt of its own tokens, with slots for them.
inline prefill prompt_of(uint64_t request, uint32_t tokens, uint32_t choices = 1,
                         uint32_t member = 0) {
  prefill x;
  x.first = seq(request);
  for (uint32_t i = 0; i < tokens; ++i)
    x.tokens.push_back(static_cast<token_id>(request * 100 + i));
  x.member = member;
  x.runs = {{static_cast<uint32_t>(request) * 1000, tokens}};
  x.samplings.resize(choices);
  for (uint32_t k = 0; k < choices; ++k) {
    x.samplings[k].seed = request;
    x.samplings[k].choice = k;
  }
  x.draws.assign(choices, 0);
  x.changes.resize(choices);
  return x;
}

/// An answer that the test gives later, from outside of the actor that owes it.
template <class T> struct owed {
  caf::typed_response_promise<T> promise;
  caf::local_actor* debtor;
  template <class X> void deliver(X&& x) {
    debtor->context(nullptr); // it is not running: CAF would use the unit it last ran on
    promise.deliver(std::forward<X>(x));
  }
};

/// A replica: keeps launches and answers them on command, or at once.
struct replica_book {
  std::vector<iteration_launch> launches;
  std::map<std::pair<uint32_t, uint64_t>, owed<sampled>> asked;
  bool at_once = false;
  uint32_t fail_per_mille = 0; ///< with `random`, but no last attempt
  tests::splitmix random{0};

  static sampled answer_to(const iteration_launch& x) {
    sampled result{x.stream, x.iteration, {}};
    for (const auto& s : x.samples) result.tokens.push_back(draw(s));
    return result;
  }
  const iteration_launch& launch_of(uint64_t iteration) const {
    for (auto it = launches.rbegin(); it != launches.rend(); ++it)
      if (it->iteration == iteration) return *it;
    throw std::logic_error("no such iteration was launched");
  }
  bool waits_for(uint64_t iteration, uint32_t stream = 0) const {
    return asked.contains({stream, iteration});
  }
  void answer(uint64_t iteration, uint32_t stream = 0) {
    asked.extract({stream, iteration}).mapped().deliver(answer_to(launch_of(iteration)));
  }
  void fail(uint64_t iteration, ec why = ec::device_lost, uint32_t stream = 0) {
    asked.extract({stream, iteration}).mapped().deliver(caf::make_error(why));
  }
};

inline auto stand_in_replica(std::shared_ptr<replica_book> book) {
  return [book](model_replica_actor::pointer self) -> model_replica_actor::behavior_type {
    return {
        [book](const iteration_launch& x) { book->launches.push_back(x); },
        [book, self](const sampled_of& x) -> caf::result<sampled> {
          if (book->at_once) {
            for (auto it = book->launches.rbegin(); it != book->launches.rend(); ++it)
              if (it->stream == x.stream && it->iteration == x.iteration) {
                if (it->attempt + 1 < attempts_max
                    && book->random.below(1000) < book->fail_per_mille)
                  return caf::make_error(ec::aborted);
                return replica_book::answer_to(*it);
              }
            return caf::make_error(caf::sec::runtime_error, "asked before it was launched");
          }
          auto promise = self->make_response_promise<sampled>();
          book->asked.emplace(std::make_pair(static_cast<uint32_t>(x.stream), x.iteration),
                              owed<sampled>{promise, self});
          return promise;
        },
    };
  };
}

/// A shard: counts launches; trims at once, or when told.
struct shard_book {
  uint32_t launches = 0, trims = 0;
  bool holds_trims = false;
  std::vector<owed<bool>> trimming;
  std::vector<kv_pull> pulled;
  std::map<uint64_t, owed<kv_moved>> pulling; ///< by number, not answered
  uint32_t cancels = 0;
};

inline auto stand_in_shard(std::shared_ptr<shard_book> book) {
  return [book](attention_shard_actor::pointer self) -> attention_shard_actor::behavior_type {
    return {
        [book](const iteration_launch&) { ++book->launches; },
        [book, self](kv_trim) -> caf::result<bool> {
          ++book->trims;
          if (!book->holds_trims) return true;
          auto promise = self->make_response_promise<bool>();
          book->trimming.push_back({promise, self});
          return promise;
        },
        [book, self](const kv_pull& x) -> caf::result<kv_moved> {
          book->pulled.push_back(x);
          auto promise = self->make_response_promise<kv_moved>();
          book->pulling.emplace(x.number, owed<kv_moved>{promise, self});
          return promise;
        },
        [book](kv_pull_cancel) { ++book->cancels; },
        [](const kv_offer& x) {
          return kv_moved{x.number, 0, 0};
        },
        [](const kv_check& x) {
          return kv_checked{std::vector<uint32_t>(scheduler::length_of(x.runs))};
        },
    };
  };
}

/// An allocator that answers on command, or grants (refuses) at once.
struct allocator_book {
  enum class mode : uint8_t { grants, refuses, holds };
  mode does = mode::grants;
  uint32_t next_slot = 1000;
  uint32_t cached = 0; ///< of what it grants
  std::vector<kv_reserve> questions;
  std::deque<owed<kv_grant>> asked;
  std::vector<sequence_id> released;
  std::vector<kv_filled> filled;
  std::vector<sequence_id> doubted;
  std::vector<kv_written> written; ///< of the holders released
  std::vector<kv_pulled> pulled;
  kv_usage usage;                   ///< as it says
  kv_balance balance;               ///< likewise
  std::deque<kv_move_piece> pieces; ///< that it has to be copied; then an empty one

  kv_grant grant_for(const kv_reserve& x) {
    kv_grant result;
    for (const auto& need : x.needs) {
      result.holdings.push_back(
          {need.holder, 0, {{next_slot, need.slots + need.share_tokens}}, false, cached});
      next_slot += need.slots + need.share_tokens;
    }
    return result;
  }
  void grant() {
    asked.front().deliver(grant_for(questions.at(questions.size() - asked.size())));
    asked.pop_front();
  }
  void refuse() {
    asked.front().deliver(caf::make_error(ec::kv_exhausted));
    asked.pop_front();
  }
};

inline auto stand_in_allocator(std::shared_ptr<allocator_book> book) {
  return [book](kv_allocator_actor::pointer self) -> kv_allocator_actor::behavior_type {
    return {
        [book, self](const kv_reserve& x) -> caf::result<kv_grant> {
          book->questions.push_back(x);
          if (book->does == allocator_book::mode::grants) return book->grant_for(x);
          if (book->does == allocator_book::mode::refuses) return caf::make_error(ec::kv_exhausted);
          auto promise = self->make_response_promise<kv_grant>();
          book->asked.push_back({promise, self});
          return promise;
        },
        [book](const kv_release& x) {
          book->released.insert(book->released.end(), x.holders.begin(), x.holders.end());
          book->written.insert(book->written.end(), x.written.begin(), x.written.end());
        },
        [](const kv_adopt&) {},
        [](const kv_inventory_ask&) { return kv_inventory{}; },
        [](const kv_sweep&) { return kv_swept{}; },
        [](const kv_protection&) -> caf::result<bool> { return true; },
        [book](const kv_filled& x) { book->filled.push_back(x); },
        [book](const kv_doubt& x) { book->doubted.push_back(x.holder); },
        [book](const kv_pulled& x) { book->pulled.push_back(x); },
        [](const kv_move_begin&) { return kv_move_plan{}; },
        [book](const kv_move_ask&) {
          if (book->pieces.empty()) return kv_move_piece{};
          auto next = std::move(book->pieces.front());
          book->pieces.pop_front();
          return next;
        },
        [](const kv_move_done&) { return true; },
        [](const kv_move_abort&) {},
        [book](const kv_balance_ask&) { return book->balance; },
        [book](status_atom) -> caf::result<kv_usage> { return book->usage; },
        [](wake_atom) {},
        [](wake_atom, uint64_t) {},
        [](caf::tick_atom) {},
    };
  };
}

/// A scheduler that only listens.
struct scheduler_book {
  std::vector<admit> asked;
  std::deque<owed<admitted>> promises;
  std::vector<sequence_id> retired, withdrawn, begun;
  std::vector<uint64_t> left; ///< tokens of started prompts, as told
  queue_status status;        ///< as it says
};

inline auto stand_in_scheduler(std::shared_ptr<scheduler_book> book) {
  return [book](global_scheduler_actor::pointer self) -> global_scheduler_actor::behavior_type {
    return {
        [book, self](const admit& x) -> caf::result<admitted> {
          book->asked.push_back(x);
          auto promise = self->make_response_promise<admitted>();
          book->promises.push_back({promise, self});
          return promise;
        },
        [book](const withdraw& x) { book->withdrawn.push_back(x.first); },
        [book](const retire& x) { book->retired.push_back(x.sequence); },
        [book](const prefill_begun& x) { book->begun.push_back(x.first); },
        [book](const prefill_load& x) { book->left.push_back(x.tokens); },
        [](const kv_freed&) {},
        [](drain_atom) {},
        [](const batch_ready&) {},
        [](wake_atom) {},
        [](const scheduler::admission_limits&) {},
        [book](status_atom) { return book->status; },
    };
  };
}

/// A client of a batch.
struct client_book {
  std::map<sequence_id, std::vector<token>> tokens;
  std::vector<sequence_id> preempted, failed;
  std::vector<sequence_id> refused; ///< those of the failed whose format is at fault
  std::vector<first_token> first;   ///< before their KV
  std::vector<sequence_id> begun;   ///< prompts whose prefill has started
};

inline auto stand_in_client(std::shared_ptr<client_book> book) {
  return [book](decode_client_actor::pointer) -> decode_client_actor::behavior_type {
    return {
        [book](const token& x) { book->tokens[x.sequence].push_back(x); },
        [book](const first_token& x) { book->first.push_back(x); },
        [book](const actors::preempted& x) { book->preempted.push_back(x.sequence); },
        [book](const sequence_failed& x) {
          book->failed.push_back(x.sequence);
          if (x.refused) book->refused.push_back(x.sequence);
        },
        [book](const prefill_begun& x) { book->begun.push_back(x.first); },
    };
  };
}

/// A batch that writes down what it is told of rebuilds.
inline auto stand_in_batch(std::shared_ptr<std::vector<bool>> told) {
  return [told](batch_actor::pointer) -> batch_actor::behavior_type {
    return {
        [](const batch_join&) {},
        [](const batch_leave&) {},
        [](const iteration_failed&) {},
        [told](const kv_rebuilding& x) { told->push_back(x.some); },
        [](const hand_over&) { return true; },
        [](wake_atom) {},
        [](status_atom) -> caf::result<uint32_t> { return uint32_t{0}; },
    };
  };
}

} // namespace lamella::actors::test
