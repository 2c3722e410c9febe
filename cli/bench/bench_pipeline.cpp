#include "cli/bench/bench_pipeline.hpp"

#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/protocol/kv.hpp"
#include "actors/protocol/prefills.hpp"
#include "actors/protocol/tokens.hpp"
#include "actors/shared/explain.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds question_timeout{600};

struct collector_state {
  std::map<uint64_t, uint32_t> counts; ///< tokens by sequence since the last reset
  std::vector<double> times;           ///< when the k-th iteration was complete, seconds
  std::vector<uint32_t> complete;      ///< sequences that have their k-th token
  uint32_t sequences = 0, iterations = 0;
  std::optional<caf::typed_response_promise<std::vector<double>>> asked;
  const char* name = "collector";
};

collector_actor::behavior_type collector(collector_actor::stateful_pointer<collector_state> self) {
  const auto check = [self] {
    auto& st = self->state;
    if (st.asked && st.times.size() >= st.iterations) {
      st.asked->deliver(st.times);
      st.asked.reset();
    }
  };
  return {
      [self, check](caf::get_atom, uint32_t sequences,
                    uint32_t iterations) -> caf::result<std::vector<double>> {
        self->state.sequences = sequences;
        self->state.iterations = iterations;
        self->state.asked = self->make_response_promise<std::vector<double>>();
        auto promise = *self->state.asked;
        check();
        return promise;
      },
      [self](caf::reset_atom) {
        self->state.counts.clear();
        self->state.times.clear();
        self->state.complete.clear();
      },
      [self, check](const actors::token& x) {
        auto& st = self->state;
        const auto k = st.counts[static_cast<uint64_t>(x.sequence)]++;
        if (st.complete.size() <= k) st.complete.resize(k + 1, 0);
        if (++st.complete[k] == st.sequences) {
          st.times.push_back(seconds{clock::now().time_since_epoch()}.count());
          check();
        }
      },
      [](const actors::prefill_begun&) {},
      [](const actors::first_token&) {}, // told to those who ask for it
      [](const actors::preempted&) {},
      [](const actors::sequence_failed&) {},
  };
}

/// Iterations complete at `when`, the one under way by its share.
double progress_at(const std::vector<double>& times, double when) {
  const auto next = std::upper_bound(times.begin(), times.end(), when);
  const auto whole = static_cast<double>(next - times.begin());
  if (next == times.begin() || next == times.end()) return whole;
  return whole + (when - *std::prev(next)) / (*next - *std::prev(next));
}

} // namespace

pipeline_driver::pipeline_driver(actors::node& n)
    : node_{n}, server_{n.server()}, self_{n.system()}, collector_{n.system().spawn(collector)} {}

pipeline_driver::~pipeline_driver() {
  leave(0);
  caf::anon_send_exit(collector_, caf::exit_reason::user_shutdown);
}

template <class Answer, class Handle, class... Question>
Answer pipeline_driver::ask(const Handle& whom, Question&&... question) {
  Answer answer;
  self_->request(whom, question_timeout, std::forward<Question>(question)...)
      .receive([&](Answer& x) { answer = std::move(x); },
               [&](caf::error& reason) {
                 throw std::runtime_error(actors::explain(node_.system(), reason));
               });
  return answer;
}

/// A place for a prompt of these tokens, and what its prefill worker is to be asked.
std::pair<actors::admitted, actors::prefill>
pipeline_driver::admit(std::vector<actors::token_id> tokens) {
  const auto sequence = scheduler::sequence_of(actors::request_id{++last_request_}, 0);
  const auto count = static_cast<uint32_t>(tokens.size());
  auto place = ask<actors::admitted>(server_->scheduler, actors::admit{sequence, 1, count, false});
  actors::prefill x;
  x.first = sequence;
  x.tokens = std::move(tokens);
  x.member = place.holdings.front().member;
  x.runs = place.holdings.front().runs;
  x.samplings.resize(1);
  x.draws = {0};
  x.changes.resize(1);
  return {std::move(place), std::move(x)};
}

void pipeline_driver::give_back(actors::sequence_id sequence) {
  self_->send(server_->allocator, actors::kv_release{{sequence}, server_->epoch});
  self_->send(server_->scheduler, actors::retire{sequence});
}

std::vector<actors::sampled_token> pipeline_driver::score(std::vector<actors::token_id> tokens) {
  auto [place, x] = admit(std::move(tokens));
  constexpr uint32_t with_the_best = 2;
  x.scored = with_the_best;
  const auto sequence = x.first;
  auto result =
      ask<actors::prefilled>(server_->prefill_workers.at(place.prefill_worker), std::move(x));
  give_back(sequence);
  return std::move(result.scores);
}

double pipeline_driver::prefill(uint32_t tokens, bool keep) {
  std::vector<actors::token_id> drawn(tokens);
  for (auto& x : drawn) x = static_cast<uint32_t>(random_() % server_->text->vocabulary());
  auto [place, x] = admit(std::move(drawn));
  const auto sequence = x.first;
  const auto began = clock::now();
  auto first =
      ask<actors::prefilled>(server_->prefill_workers.at(place.prefill_worker), std::move(x));
  const auto took = seconds{clock::now() - began}.count();
  if (!keep) {
    give_back(sequence);
    return took;
  }
  actors::batch_join join;
  join.sequence = sequence;
  join.client = caf::actor_cast<actors::decode_client_actor>(collector_);
  join.member = place.holdings.front().member;
  join.runs = place.holdings.front().runs;
  join.position = tokens;
  join.last = first.tokens.front().token;
  join.max_tokens = 1u << 30;
  join.ignore_end = true;
  ready_.push_back({place.batch, std::move(join)});
  return took;
}

void pipeline_driver::join() {
  generated_ = 0;
  for (auto& x : ready_) {
    running_.push_back({x.batch, x.join.sequence});
    self_->send(server_->batches.at(static_cast<uint32_t>(x.batch)), std::move(x.join));
  }
  ready_.clear();
}

void pipeline_driver::leave(size_t count) {
  for (; running_.size() > count; running_.pop_back())
    self_->send(server_->batches.at(static_cast<uint32_t>(running_.back().first)),
                actors::batch_leave{running_.back().second});
}

std::vector<double> pipeline_driver::times_of(uint32_t iterations) {
  return ask<std::vector<double>>(collector_, caf::get_atom_v,
                                  static_cast<uint32_t>(running_.size()), iterations);
}

std::vector<double> pipeline_driver::measure(uint32_t iterations) {
  self_->send(collector_, caf::reset_atom_v);
  const auto times = times_of(iterations + warm_up);
  generated_ += times.size();
  std::vector<double> gaps;
  for (size_t i = warm_up; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return gaps;
}

pipeline_driver::mixture pipeline_driver::measure_beside(uint32_t tokens, uint32_t prompts) {
  self_->send(collector_, caf::reset_atom_v);
  times_of(2); // so that there is something to count from
  mixture sum;
  std::vector<std::pair<double, double>> beside; ///< from when to when
  for (uint32_t i = 0; i < prompts; ++i) {
    const auto took = prefill(tokens, false);
    const auto ended = seconds{clock::now().time_since_epoch()}.count();
    beside.emplace_back(ended - took, ended);
    sum.seconds += took;
  }
  const auto so_far = times_of(0).size();
  const auto times = times_of(static_cast<uint32_t>(so_far) + 2);
  generated_ += times.size();
  for (const auto& [from, to] : beside)
    sum.iterations += progress_at(times, to) - progress_at(times, from);
  return {sum.iterations / prompts, sum.seconds / prompts};
}

} // namespace lamella::cli
