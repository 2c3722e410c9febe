#include "cli/bench_decode.hpp"

#include "actors/node.hpp"
#include "cli/log.hpp"
#include "cli/machine_limits.hpp"
#include "model/json_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <stdexcept>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using actors::sequence_id;

constexpr uint32_t warm_up = 4;
constexpr std::chrono::seconds patience{600};

double seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

/// Counts tokens as they come and answers when `wanted` iterations of all sequences are there.
using collector_actor =
    caf::typed_actor<caf::replies_to<caf::get_atom, uint32_t, uint32_t>::with<std::vector<double>>,
                     caf::reacts_to<caf::reset_atom>>::extend_with<actors::decode_client_actor>;

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
          st.times.push_back(seconds(clock::now().time_since_epoch()));
          check();
        }
      },
      [](const actors::preempted&) {},
      [](const actors::sequence_failed&) {},
  };
}

/// The pipeline seen by a benchmark: prompts in, running sequences out.
class driver {
public:
  explicit driver(actors::node& n)
      : node_{n}, server_{n.server()}, self_{n.system()}, collector_{n.system().spawn(collector)} {}
  ~driver() {
    leave(0);
    caf::anon_send_exit(collector_, caf::exit_reason::user_shutdown);
  }

  /// Prefills a prompt of random tokens; returns the seconds it took.
  double prefill(uint32_t tokens, bool keep) {
    const auto sequence = scheduler::sequence_of(actors::request_id{++last_request_}, 0);
    auto place =
        ask<actors::admitted>(server_->scheduler, actors::admit{sequence, 1, tokens, false});
    actors::prefill x;
    x.first = sequence;
    for (uint32_t i = 0; i < tokens; ++i)
      x.tokens.push_back(static_cast<uint32_t>(random_() % server_->text->vocabulary()));
    x.member = place.holdings.front().member;
    x.runs = place.holdings.front().runs;
    x.samplings.resize(1);
    x.draws = {0};
    x.edits.resize(1);
    const auto began = clock::now();
    auto first = ask<actors::prefilled>(server_->prefill_workers.front(), x);
    const auto took = seconds(clock::now() - began);
    actors::batch_join join;
    join.sequence = sequence;
    join.client = caf::actor_cast<actors::decode_client_actor>(collector_);
    join.member = x.member;
    join.runs = x.runs;
    join.position = tokens;
    join.last = first.tokens.front().token;
    join.max_tokens = 1u << 30;
    join.ignore_end = true;
    if (keep) {
      ready_.push_back({place.batch, std::move(join)});
    } else {
      self_->send(server_->allocator, actors::kv_release{{sequence}});
      self_->send(server_->scheduler, actors::retire{sequence});
    }
    return took;
  }

  /// Everything prefilled so far starts to decode.
  void join() {
    for (auto& x : ready_) {
      running_.push_back({x.batch, x.join.sequence});
      self_->send(server_->batches.at(static_cast<uint32_t>(x.batch)), std::move(x.join));
    }
    ready_.clear();
  }

  /// Ends sequences until `count` are left.
  void leave(size_t count) {
    for (; running_.size() > count; running_.pop_back())
      self_->send(server_->batches.at(static_cast<uint32_t>(running_.back().first)),
                  actors::batch_leave{running_.back().second});
  }

  /// Seconds of each of the next `iterations` iterations of all that runs.
  std::vector<double> measure(uint32_t iterations) {
    const auto count = static_cast<uint32_t>(running_.size());
    self_->send(collector_, caf::reset_atom_v);
    auto times = ask<std::vector<double>>(collector_, caf::get_atom_v, count, iterations + warm_up);
    std::vector<double> gaps;
    for (size_t i = warm_up; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
    return gaps;
  }

private:
  template <class Answer, class Handle, class... Question>
  Answer ask(const Handle& whom, Question&&... question) {
    Answer answer;
    self_->request(whom, patience, std::forward<Question>(question)...)
        .receive(
            [&](Answer& x) { answer = std::move(x); },
            [&](caf::error& reason) { throw std::runtime_error(node_.system().render(reason)); });
    return answer;
  }

  struct prefilled_sequence {
    actors::stream_id batch;
    actors::batch_join join;
  };
  actors::node& node_;
  actors::service_ptr server_;
  caf::scoped_actor self_;
  collector_actor collector_;
  std::mt19937_64 random_{42};
  uint64_t last_request_ = 1u << 20;
  std::vector<prefilled_sequence> ready_;
  std::vector<std::pair<actors::stream_id, sequence_id>> running_;
};

struct row {
  std::string what; ///< decode or prefill
  uint32_t batch, context;
  double best, median; ///< tokens per second
};

/// Tokens of two iterations may arrive together, so single gaps say little: means over four.
std::vector<double> smoothed(const std::vector<double>& gaps) {
  constexpr size_t window = 4;
  if (gaps.size() < window) return gaps;
  std::vector<double> means;
  for (size_t i = 0; i + window <= gaps.size(); ++i)
    means.push_back((gaps[i] + gaps[i + 1] + gaps[i + 2] + gaps[i + 3]) / window);
  return means;
}

row decode_row(driver& d, uint32_t batch, uint32_t context, uint32_t iterations) {
  auto gaps = smoothed(d.measure(iterations));
  const double best = *std::min_element(gaps.begin(), gaps.end());
  return {"decode", batch, context, batch / best, batch / median(gaps)};
}

row prefill_row(driver& d, uint32_t tokens, uint32_t repeats) {
  std::vector<double> times;
  for (uint32_t i = 0; i < repeats; ++i) times.push_back(d.prefill(tokens, false));
  const double best = *std::min_element(times.begin(), times.end());
  return {"prefill", 1, tokens, tokens / best, tokens / median(times)};
}

std::string as_json(const actors::node& n, const std::vector<row>& rows, double read) {
  model::json_writer out;
  out.begin_object().member("version", 1).member("model", n.parts().base.model_name);
  out.member("threads", n.parts().engine->threads());
  out.member("kernels", n.parts().engine->ops().name);
  out.key("limits").begin_object().member("read_gb_per_s", read).end_object();
  out.key("rows").begin_array();
  for (const auto& r : rows)
    out.begin_object()
        .member("test", r.what)
        .member("batch", r.batch)
        .member("context", r.context)
        .member("tokens_per_s_best", r.best)
        .member("tokens_per_s_median", r.median)
        .end_object();
  out.end_array().end_object();
  return out.take();
}

} // namespace

int bench_decode(config::settings settings, const bench_options& options) {
  configure_log(settings.log, true);
  const auto largest = options.batches.empty()
                           ? 1
                           : *std::max_element(options.batches.begin(), options.batches.end());
  settings.batching.max_batch = std::max(settings.batching.max_batch, largest);
  actors::node n{settings, false};
  n.start([](const std::string&, uint64_t, uint64_t) {});
  const auto threads = n.parts().engine->threads();
  const double before = measure_read_bandwidth(threads);
  if (!options.json)
    std::printf("%s\n%-8s %6s %8s %14s %14s\n", n.summary().c_str(), "test", "batch", "context",
                "tok/s best", "tok/s median");
  std::vector<row> rows;
  const auto add = [&](row r) {
    rows.push_back(r);
    if (options.json) return;
    std::printf("%-8s %6u %8u %14.1f %14.1f\n", r.what.c_str(), r.batch, r.context, r.best,
                r.median);
    std::fflush(stdout);
  };
  {
    driver d{n};
    for (auto tokens : options.prefills) add(prefill_row(d, tokens, options.repeats));
    auto batches = options.batches;
    std::sort(batches.rbegin(), batches.rend());
    for (auto context : options.contexts) {
      if (batches.empty()) break;
      for (uint32_t i = 0; i < batches.front(); ++i) d.prefill(context, true);
      d.join();
      for (auto batch : batches) {
        d.leave(batch);
        add(decode_row(d, batch, context, options.iterations));
      }
      d.leave(0);
    }
  }
  const double read = std::max(before, measure_read_bandwidth(threads));
  if (options.json)
    std::printf("%s\n", as_json(n, rows, read).c_str());
  else
    std::printf("read bandwidth of this machine, %u threads, same run: %.1f GB/s\n", threads, read);
  return 0;
}

} // namespace lamella::cli
