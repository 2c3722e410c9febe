#include "cli/bench/bench_run.hpp"

#include "base/environment.hpp"
#include "cli/bench/bench_request.hpp"
#include "cli/http_status.hpp"
#include "cli/open_files.hpp"
#include "cli/terminal.hpp"
#include "net/http/sse.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include <ctime>
#include <unistd.h>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The load: everything on the thread of one event loop.
class load_run {
public:
  load_run(net::http_url url, std::string key, const bench_serve_options& options,
           const workload& work, bool exact)
      : url_{std::move(url)}, key_{std::move(key)}, options_{options}, work_{work}, exact_{exact},
        open_{options.rate || options.trace_arrivals()} {
    if (options.rate) poisson_.emplace(*options.rate, options.seed);
    last_index_ = requests_of(options, work);
  }

  bench_result run(interrupts& signals) {
    allow_open_files();
    if (is_terminal(STDERR_FILENO)) bar_.emplace();
    const interrupt_watch watch{signals, [this] { loop_.stop(); }};
    begin_ = clock::now();
    result_.began_unix_s =
        std::chrono::duration<double>{date_of_machine().time_since_epoch()}.count();
    const auto cpu = thread_cpu_seconds();
    if (open_)
      schedule_arrival();
    else
      for (uint32_t i = 0; i < options_.concurrency; ++i) begin_next();
    tick(clock::now());
    loop_.run();
    const auto spent = since_begin();
    result_.cpu_share = (thread_cpu_seconds() - cpu) * 1e9 / static_cast<double>(spent.count());
    bar_.reset();
    collect(watch.interrupted(), spent);
    return std::move(result_);
  }

private:
  /// What one user asks, turn by turn: most have one.
  struct talk {
    uint64_t index = 0;
    std::vector<bench_item> turns; ///< made when the first one is sent
    std::vector<answered_turn> before;
  };
  using talk_ptr = std::shared_ptr<talk>;

  struct running {
    talk_ptr of;
    std::string answer; ///< kept where another turn follows
    bench_record record;
    std::unique_ptr<net::sse_reader> reader;
    uint32_t tokens = 0;   ///< asked for
    bool complete = false; ///< "[DONE]" came
    bool over = false;
  };

  nanoseconds since_begin() const { return clock::now() - begin_; }

  bool is_over_at(nanoseconds when) const {
    return options_.duration_s && static_cast<double>(when.count()) * 1e-9 >= *options_.duration_s;
  }

  bool more() const { return begun_ < last_index_ && !is_over_at(since_begin()); }

  void begin_next() {
    if (more()) begin(begun_++, since_begin());
  }

  void begin(uint64_t index, nanoseconds intended) {
    auto x = std::make_shared<talk>();
    x->index = index;
    ask(x, intended);
  }

  void ask(const talk_ptr& x, nanoseconds intended) {
    if (open_ && in_flight_ >= options_.max_in_flight)
      held_.emplace_back(x, intended);
    else
      send(x, intended);
  }

  void schedule_arrival() {
    if (begun_ >= last_index_) return arrivals_over();
    const auto when = poisson_ ? poisson_->next() : *work_.arrival(begun_);
    if (is_over_at(when)) return arrivals_over();
    loop_.at(begin_ + when, [this, when] {
      begin(begun_++, when);
      schedule_arrival();
    });
  }

  void arrivals_over() { begun_ = last_index_; }

  void send(const talk_ptr& of, nanoseconds intended) {
    if (of->turns.empty()) {
      of->turns = work_.turns(options_.first_index + of->index, options_.first_index);
      ++result_.begun;
    }
    const auto x = all_.emplace_back(std::make_shared<running>());
    x->of = of;
    x->record.conversation = of->index;
    x->record.turn = static_cast<uint32_t>(of->before.size() + 1);
    x->record.intended = intended;
    x->record.sent = since_begin();
    const bool last = x->record.turn == of->turns.size();
    x->reader =
        std::make_unique<net::sse_reader>([this, raw = x.get(), last](std::string_view data) {
          if (data == "[DONE]")
            raw->complete = true;
          else if (raw->record.error.empty())
            read_event(raw->record, data, since_begin(), last ? nullptr : &raw->answer);
        });
    ++in_flight_;
    auto item = of->turns[of->before.size()];
    item.before = of->before;
    x->tokens = item.output_tokens;
    call(x, request_body(options_, item, exact_));
  }

  void call(const std::shared_ptr<running>& x, std::string body) {
    net::http_call_request request;
    request.method = "POST";
    request.path = path_of(options_.endpoint);
    request.body = std::move(body);
    if (!key_.empty()) request.headers.set("authorization", "Bearer " + key_);
    const auto limit = std::chrono::milliseconds{static_cast<int64_t>(options_.timeout_s * 1e3)};
    request.total_timeout = request.idle_timeout = limit;
    request.connect_timeout = std::min(limit, std::chrono::milliseconds{30'000});
    net::http_call_events events;
    events.on_data = [x](std::string_view bytes) {
      try {
        x->reader->feed(bytes);
      } catch (const std::length_error&) {
        x->record.error = "oversized_event";
      }
    };
    events.on_done = [this, x](const net::http_reply& reply) {
      auto& r = x->record;
      if (reply.status != http_status::ok)
        r.error = code_of(reply);
      else if (r.error.empty() && !x->complete)
        r.error = "cut";
      else if (r.error.empty() && r.pieces == 0)
        r.error = "no_text";
      else if (r.error.empty() && exact_ && r.usage
               && (r.completion_tokens != x->tokens || r.finish != "length"))
        r.error = "wrong_length";
      finish(*x);
    };
    events.on_error = [this, x](const net::http_call_error& e) {
      if (x->record.error.empty()) x->record.error = code_of(e.why);
      finish(*x);
    };
    loop_.call(url_, std::move(request), std::move(events));
  }

  void finish(running& x) {
    x.over = true;
    x.record.end = since_begin();
    x.reader.reset();
    --in_flight_;
    const bool goes_on = go_on(x);
    x.of.reset();
    if (!goes_on) ++ended_;
    if (bar_) bar_->update("requests", ended_, std::max(ended_, progress_total()));
    if (!held_.empty()) {
      const auto [held, intended] = held_.front();
      held_.pop_front();
      send(held, intended);
    } else if (!open_ && !goes_on) {
      // A server that refuses at once must not be asked thousands of times a second.
      constexpr std::chrono::milliseconds pause{100};
      if (x.record.error.empty())
        begin_next();
      else if (more())
        loop_.at(clock::now() + pause, [this] { begin_next(); });
    }
  }

  /// The next turn, when its user has thought about the answer; false where there is none.
  bool go_on(running& x) {
    const auto of = x.of;
    if (!x.record.error.empty() || x.record.turn == of->turns.size()) return false;
    const auto when = since_begin() + think_time(options_, of->index, x.record.turn + 1);
    if (is_over_at(when)) return false;
    of->before.push_back({of->turns[of->before.size()].prompt, std::move(x.answer)});
    ++thinking_;
    loop_.at(begin_ + when, [this, of, when] {
      --thinking_;
      ask(of, when);
    });
    return true;
  }

  uint64_t progress_total() const {
    return last_index_ == std::numeric_limits<uint64_t>::max() ? begun_ : last_index_;
  }

  /// Watches how late timers come: then our own times are late, too.
  void tick(clock::time_point due) {
    const auto late = clock::now() - due;
    lags_ms_.push_back(std::chrono::duration<double, std::milli>(late).count());
    if (in_flight_ == 0 && thinking_ == 0 && held_.empty() && !more()) return;
    constexpr std::chrono::milliseconds between{10};
    const auto next = clock::now() + between;
    loop_.at(next, [this, next] { tick(next); });
  }

  void collect(bool interrupted, nanoseconds spent) {
    result_.interrupted = interrupted;
    result_.shares_prefixes = work_.shares_prefixes();
    nanoseconds last{0};
    for (auto& x : all_) {
      if (!x->over) continue; // only when interrupted
      last = std::max(last, x->record.end);
      if (x->record.turn == 1)
        result_.arrivals_s =
            std::max(result_.arrivals_s, static_cast<double>(x->record.intended.count()) * 1e-9);
      result_.records.push_back(std::move(x->record));
    }
    if (interrupted) last = spent;
    result_.duration_s = static_cast<double>(last.count()) * 1e-9;
    std::sort(lags_ms_.begin(), lags_ms_.end());
    constexpr double p99 = 0.99;
    result_.lag_p99_ms =
        lags_ms_[static_cast<size_t>(static_cast<double>(lags_ms_.size() - 1) * p99)];
  }

  const net::http_url url_;
  const std::string key_;
  const bench_serve_options& options_;
  const workload& work_;
  const bool exact_, open_;
  std::optional<poisson_arrivals> poisson_; ///< of an open loop; else its arrivals are a trace's
  uint64_t last_index_ = 0, begun_ = 0, in_flight_ = 0, thinking_ = 0, ended_ = 0;
  std::deque<std::pair<talk_ptr, nanoseconds>> held_; ///< arrived, beyond max_in_flight
  std::vector<std::shared_ptr<running>> all_;
  std::vector<double> lags_ms_;
  std::optional<progress_bar> bar_; ///< where there is a terminal
  clock::time_point begin_;
  bench_result result_;
  net::http_client_loop loop_; ///< last: its calls point to all of the above
};

} // namespace

uint64_t requests_of(const bench_serve_options& options, const workload& work) {
  if (options.requests) return *options.requests;
  if (options.trace_arrivals()) return work.size().value_or(requests_default);
  return options.duration_s ? std::numeric_limits<uint64_t>::max() : requests_default;
}

bench_result run_load(const net::http_url& url, const std::string& key,
                      const bench_serve_options& options, const workload& work, bool exact,
                      interrupts& signals) {
  return load_run{url, key, options, work, exact}.run(signals);
}

} // namespace lamella::cli
