// DOOR and MEMBERSHIP of a small cluster on virtual time, and workers that join it as processes do.
#pragma once

#include "actors/membership/membership.hpp"
#include "actors/protocol/epoch_parts.hpp"
#include "actors/protocol/epochs.hpp"
#include "actors/protocol/iterations.hpp"
#include "actors/protocol/join.hpp"
#include "actors/protocol/parity.hpp"
#include "actors/protocol/pulls.hpp"
#include "actors/protocol/traces.hpp"
#include "actors/protocol/watches.hpp"
#include "actors/protocol/work_reports.hpp"
#include "actors/protocol/workers.hpp"
#include "actors/worker/door.hpp"
#include "tests/actors/stage.hpp"

namespace lamella::actors::test {

using namespace std::chrono_literals;
using scheduler::worker_role;

/// The scripted life of a worker process: what it was told.
struct worker_book {
  std::vector<uint64_t> opened, closed;
  std::vector<std::string> left, injuries;
  bool for_good = false; ///< it was told not to join again
  std::vector<epoch_open> orders;
  bool fails = false;   ///< to open an epoch
  uint64_t number = 99; ///< of its part in the epoch it opened last
  bool full = false;    ///< has no memory for a second cache
  bool silent = false;  ///< never answers
  bool late = false;    ///< does the next order and its answer never comes
  work_done work{};     ///< of its device
  work_done tokens{};   ///< of its iterations without prompts
  std::vector<peer_info> peers{{"model/0", "shm"}}; ///< at the other ends of its links
  uint32_t deaf = 0;                                ///< does not answer so many questions how it is
  /// What it says of a peer that it was told to ask; empty: its data plane cannot ask.
  std::function<watched_peer(const epoch_peer&)> watches;
  std::vector<epoch_peer> watched;      ///< whom it was told to ask
  std::map<std::string, uint32_t> torn; ///< links that it has ended, by the peer's seat
};

struct membership_world : stage {
  net::shared_secret secret = net::shared_secret::random();
  uint32_t nonces = 0;
  /// What a worker in the first seat says of a peer; empty: their data planes cannot ask.
  std::function<watched_peer(const std::string& by, const epoch_peer&)> hears;
  bool next_is_late = false; ///< who joins next
  scheduler::identity wanted{"1", "avx512", "3 layers", 77, true};
  std::vector<std::string> missing;  ///< after every change
  size_t ready = 0;                  ///< workers, at the last change
  std::vector<worker_role> lacking;  ///< at the last change
  std::set<scheduler::seat> slow;    ///< at the last change
  std::set<scheduler::seat> failing; ///< at the last change
  membership_actor members;
  door_actor gate;
  std::vector<std::pair<uint64_t, std::string>> lost, due; ///< told to the supervisor
  caf::actor supervisor_stand_in;
  std::vector<epoch_members> opened; ///< handed to the supervisor

  explicit membership_world(const std::function<void(membership_config&)>& change = {}) {
    membership_config m;
    m.seats.add(worker_role::model, 1);
    m.seats.add(worker_role::attention, 2);
    m.seats.add(worker_role::prefill, 1);
    m.wanted = wanted;
    m.shape.shards = 2;
    m.shape.prefill_seats = 1;
    m.kv_heads = 12;
    m.pool.layout.cells = {{2, 100}};
    m.terms_of = [](const scheduler::seat& x, uint32_t) {
      worker_terms t;
      t.threads = x.index;
      return t;
    };
    m.on_change = [this](const seat_news& x) {
      missing.push_back(x.seats.missing());
      ready = x.ready.size();
      lacking = x.lacking;
      slow = x.slow;
      failing = x.failing;
    };
    if (change) change(m);
    members = spawn(actors::membership, std::move(m));
    gate = spawn(actors::door, door_config{secret, "cluster", "1", 100, 1000, members, [this] {
                                             auto n = std::to_string(++nonces);
                                             return std::string(nonce_bytes - n.size(), '0') + n;
                                           }});
    settle();
  }
  ~membership_world() { end_all(); }

  /// Of who joins next.
  uint32_t pid = 7, preferred = any_seat;
  std::string name = "w", host = "host", next_kernels = "avx512", next_refusal, cell;

  join_ask question(const std::string& role = "model") const {
    return {join_protocol, role,      name, "1",  host,
            pid,           preferred, 100,  1000, std::string(nonce_bytes, 'w'),
            cell};
  }

  /// The supervisor asks for an epoch; it has built pipelines of all it has got, but for `unbuilt`.
  void want_epoch(size_t unbuilt = 0) {
    const uint64_t built = opened.size() > unbuilt ? opened.rbegin()[unbuilt].epoch : 0;
    supervisor_stand_in = spawn([this, built](caf::event_based_actor* self) -> caf::behavior {
      self->request(members, caf::infinite, caf::open_atom_v, built)
          .then([this](const epoch_members& x) { opened.push_back(x); }, [](const caf::error&) {});
      return {[this](const epoch_lost& x) { lost.emplace_back(x.epoch, x.reason); },
              [this](const epoch_due& x) { due.emplace_back(x.epoch, x.reason); },
              [=, this](const epoch_next& x) { // to be asked on
                self->request(members, caf::infinite, x)
                    .then([this](const epoch_members& y) { opened.push_back(y); },
                          [](const caf::error&) {});
              }};
    });
    settle();
  }

  /// It asks for the next epoch while the newest one serves.
  void want_next() {
    caf::anon_send(supervisor_stand_in, epoch_next{opened.empty() ? 0 : opened.back().epoch});
    settle();
  }

  /// Its pipeline runs on the newest epoch.
  void settled(bool taken = true, bool no_memory = false) {
    caf::anon_send(members, epoch_settled{opened.back().epoch, taken, "no", no_memory});
    settle();
  }

  /// An actor that joins like a worker process: ask, prove, facts. It ends when told.
  struct process {
    std::shared_ptr<worker_book> book = std::make_shared<worker_book>();
    worker_actor worker;
    caf::actor joiner;
    std::shared_ptr<std::string> result = std::make_shared<std::string>("pending");
    std::shared_ptr<join_grant> grant = std::make_shared<join_grant>();
  };

  worker_actor make_worker(std::shared_ptr<worker_book> book, bool attends) {
    return spawn(
        [=, this](watching_worker_actor::pointer self) -> watching_worker_actor::behavior_type {
          return {[=, this](const epoch_open& x) -> caf::result<epoch_ready> {
                    book->opened.push_back(x.epoch);
                    book->orders.push_back(x);
                    if (std::exchange(book->late, false)) {
                      book->number = x.number;
                      return self->make_response_promise<epoch_ready>();
                    }
                    if (book->silent) return self->make_response_promise<epoch_ready>();
                    if (book->full && x.beside != 0)
                      return caf::make_error(ec::no_memory, "none for its KV");
                    if (book->fails) return caf::make_error(ec::links_failed, "no way");
                    epoch_ready answer;
                    answer.kept = std::exchange(book->number, x.number) == x.number;
                    if (attends)
                      answer.shard = self->spawn([](attention_shard_actor::pointer) {
                        return attention_shard_actor::behavior_type{
                            [](const iteration_launch&) {},
                            [](kv_trim) { return true; },
                            [](const kv_pull&) { return kv_moved{}; },
                            [](kv_pull_cancel) {},
                            [](const kv_offer&) { return kv_moved{}; },
                            [](const kv_check&) { return kv_checked{}; }};
                      });
                    else
                      answer.replica = self->spawn([](model_replica_actor::pointer) {
                        return model_replica_actor::behavior_type{
                            [](const iteration_launch&) {},
                            [](const sampled_of&) { return sampled{}; }};
                      });
                    return answer;
                  },
                  [book](const epoch_close& x) { book->closed.push_back(x.epoch); },
                  [=](const worker_leave& x) {
                    book->left.push_back(x.reason);
                    book->for_good = x.for_good;
                    self->quit();
                  },
                  [book](const worker_injury& x) { book->injuries.push_back(x.what); },
                  [](wake_atom) {},
                  [=](const watch_order& x) -> caf::result<watch_report> {
                    if (!book->watches) return watch_report{false, x.version, {}};
                    book->watched = x.whole ? x.peers : book->watched;
                    watch_report answer{true, x.version, {}};
                    for (const auto& peer : book->watched)
                      answer.peers.push_back(book->watches(peer));
                    for (const auto& [peer, links] : book->torn)
                      answer.torn.push_back({peer, links});
                    return answer;
                  },
                  [=](status_atom) -> caf::result<worker_peers> {
                    if (book->deaf > 0) {
                      --book->deaf;
                      return self->make_response_promise<worker_peers>();
                    }
                    worker_peers answer{book->peers, book->work};
                    answer.tokens = book->tokens;
                    return answer;
                  }};
        });
  }

  process join(const std::string& role, uint64_t digest = 77, bool says_facts = true) {
    process p;
    p.book->late = std::exchange(next_is_late, false);
    if (hears)
      p.book->watches = [this, role, grant = p.grant](const epoch_peer& peer) {
        return hears(role + "/" + std::to_string(grant->index), peer);
      };
    p.worker = make_worker(p.book, role == "attention");
    const worker_facts facts{p.worker,     "1",    next_kernels, "3 layers",  digest,
                             "at " + role, "host", "sizes",      next_refusal};
    p.joiner = spawn([=, this](caf::event_based_actor* self) -> caf::behavior {
      const auto mine = question(role);
      const auto fail = [=, this](const caf::error& e) { *p.result = system.render(e); };
      self->request(gate, caf::infinite, mine)
          .then(
              [=, this](const join_challenge& challenge) {
                self->request(gate, caf::infinite,
                              join_proof{challenge.nonce, worker_proof(secret, mine, challenge)})
                    .then(
                        [=, this](const join_grant& grant) {
                          *p.grant = grant;
                          CHECK(proves_control(secret, grant.proof, mine, challenge));
                          if (!says_facts) return;
                          self->request(gate, caf::infinite, facts)
                              .then([=](bool) { *p.result = "in"; }, fail);
                        },
                        fail);
              },
              fail);
      return {[](int) {}};
    });
    settle();
    return p;
  }

  void end(const caf::strong_actor_ptr& x) {
    caf::anon_send_exit(x, caf::exit_reason::kill);
    settle();
  }
  template <class Handle> void end(const Handle& x) {
    end(caf::actor_cast<caf::strong_actor_ptr>(x));
  }
};

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace lamella::actors::test
