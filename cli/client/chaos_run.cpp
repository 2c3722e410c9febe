#include "cli/client/chaos.hpp"

#include "base/json_writer.hpp"
#include "cli/bench/bench_request.hpp"
#include "cli/client/admin.hpp"
#include "cli/client/chaos_plan.hpp"
#include "cli/http_status.hpp"
#include "net/http/sse.hpp"

#include <algorithm>
#include <charconv>

namespace lamella::cli {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds soon{100}; ///< before asking again
/// For a page of a service that may stand still: a run of minutes is not given up for one.
constexpr std::chrono::seconds timeout{60};
/// For whom the plan names next to be there; then the plan goes on.
constexpr std::chrono::seconds victim_timeout{10};
constexpr size_t errors_kept = 5;
constexpr size_t prompts_timed = 16;

double milliseconds(nanoseconds x) { return static_cast<double>(x.count()) * 1e-6; }

nanoseconds span_of(double seconds) { return nanoseconds{static_cast<int64_t>(seconds * 1e9)}; }

/// The service's count of tokens computed again, on a page of its metrics.
uint64_t rebuilt_tokens(const std::string& page) {
  const std::string name = "\nlamella_kv_rebuilt_tokens_total ";
  const auto at = page.find(name);
  return at == std::string::npos
             ? 0
             : static_cast<uint64_t>(std::strtod(page.c_str() + at + name.size(), nullptr));
}

/// The service's counts of recovered requests, by method.
std::map<std::string, double> recovered(net::http_client& admin) {
  std::map<std::string, double> counts;
  const auto page = admin_get(admin, "/metrics", timeout);
  const std::string begin = "lamella_requests_recovered_total{method=\"";
  for (size_t at = page.body.find(begin); at != std::string::npos;
       at = page.body.find(begin, at + 1)) {
    const auto name = at + begin.size();
    const auto name_end = page.body.find('"', name);
    const auto value = page.body.find("} ", name);
    if (name_end == std::string::npos || value == std::string::npos) break;
    counts[page.body.substr(name, name_end - name)] =
        std::strtod(page.body.c_str() + value + 2, nullptr);
  }
  return counts;
}

/// Everything on the thread of one event loop.
class chaos_run {
public:
  chaos_run(const server_choice& server, const chaos_options& options)
      : options_{options}, url_{server.address()}, key_{server.api_key()},
        admin_url_{admin_choice{options.admin, options.admin_key_file}.url()},
        admin_key_{admin_choice{options.admin, options.admin_key_file}.api_key()},
        streams_(options.streams) {
    net::http_client client{url_, key_};
    model_ = first_model(client);
  }

  chaos_report run(interrupts& signals) {
    net::http_client admin{admin_url_, admin_key_};
    const auto before = recovered(admin);
    const auto status = admin_get(admin, "/admin/status", timeout);
    if (status.status != http_status::ok) throw admin_refused(status);
    plan_ = chaos_plan{worker_seats(parse_answer(status.body)), options_.target, options_.seed};
    victim_ = plan_.next();
    const interrupt_watch watch{signals, [this] { loop_.stop(); }};
    begin_ = clock::now();
    for (size_t i = 0; i < streams_.size(); ++i) ask(i);
    loop_.run();
    report_.interrupted = watch.interrupted();
    if (failure_) throw command_error{exit_failure, *failure_};
    for (const auto& [method, count] : recovered(admin)) {
      const auto had = before.find(method);
      report_.recoveries[method] =
          static_cast<uint64_t>(count - (had == before.end() ? 0 : had->second));
    }
    for (size_t i = 0; i < report_.injuries.size(); ++i)
      for (const auto& [index, pause] : pauses_[i]) report_.injuries[i].pauses_ms.push_back(pause);
    count_rebuilt(rebuilt_tokens(admin_get(admin, "/metrics", timeout).body));
    return std::move(report_);
  }

private:
  /// One place for an answer; the same answer again and again.
  struct stream {
    std::string golden; ///< without injuries
    bool known = false; ///< golden is there
    std::string text;
    bench_record record; ///< of the running answer
    std::unique_ptr<net::sse_reader> reader;
    bool complete = false;
    bool running = false; ///< has begun to be answered
    nanoseconds last{0};  ///< its newest piece
  };

  nanoseconds now() const { return clock::now() - begin_; }

  /// Gives each injury its part of the tokens computed again, and times such prompts.
  void count_rebuilt(uint64_t at_end) {
    uint64_t all = 0;
    for (size_t i = 0; i < report_.injuries.size(); ++i) {
      const auto until = i + 1 < rebuilt_.size() ? rebuilt_[i + 1] : at_end;
      all += report_.injuries[i].rebuilt_tokens = until - rebuilt_[i];
    }
    const auto found = report_.recoveries.find("recompute");
    if (all > 0 && found != report_.recoveries.end() && found->second > 0 && !report_.interrupted)
      time_prefill(std::max<uint64_t>(all / found->second, 1));
  }

  /// Prompts of so many tokens, one token asked of each, with nothing else to do for the service.
  void time_prefill(uint64_t tokens) {
    const auto begin = clock::now();
    uint64_t done = 0;
    for (size_t i = 0; i < std::min(streams_.size(), prompts_timed); ++i) {
      json_writer out;
      out.begin_object().member("model", model_).member("max_tokens", 1);
      out.key("prompt").begin_array();
      for (uint64_t k = 0; k < tokens; ++k) out.value(10 + (i + k) % 50);
      out.end_array();
      net::http_call_request request;
      request.method = "POST";
      request.path = "/v1/completions";
      request.body = out.end_object().take();
      if (!key_.empty()) request.headers.set("authorization", "Bearer " + key_);
      net::http_call_events events;
      events.on_done = [&](const net::http_reply& reply) {
        if (reply.status == http_status::ok) done += tokens;
      };
      events.on_error = [](const net::http_call_error&) {};
      loop_.call(url_, std::move(request), std::move(events));
    }
    loop_.run();
    report_.prefill_rate = static_cast<double>(done) / (milliseconds(clock::now() - begin) * 1e-3);
  }

  std::string body_of(size_t index) const {
    json_writer out;
    std::string prompt = "Story number " + std::to_string(index) + ":";
    for (size_t i = 0; i < index * 7 % 60; ++i) prompt += " and then";
    out.begin_object()
        .member("model", model_)
        .member("prompt", prompt)
        .member("max_tokens", options_.tokens)
        .member("temperature", 0.8)
        .member("seed", options_.seed + index)
        .member("ignore_eos", true)
        .member("stream", true);
    out.key("stream_options").begin_object().member("include_usage", true).end_object();
    return out.end_object().take();
  }

  void ask(size_t index) {
    auto& s = streams_[index];
    s.text.clear();
    s.record = {};
    s.complete = s.running = false;
    s.reader = std::make_unique<net::sse_reader>(
        [this, index](std::string_view data) { on_event(index, data); });
    net::http_call_request request;
    request.method = "POST";
    request.path = "/v1/completions";
    request.body = body_of(index);
    if (!key_.empty()) request.headers.set("authorization", "Bearer " + key_);
    net::http_call_events events;
    events.on_data = [&s](std::string_view bytes) { s.reader->feed(bytes); };
    events.on_done = [this, index](const net::http_reply& reply) { on_done(index, reply); };
    events.on_error = [this, index](const net::http_call_error& e) { on_lost(index, e.what()); };
    loop_.call(url_, std::move(request), std::move(events));
  }

  void on_event(size_t index, std::string_view data) {
    auto& s = streams_[index];
    if (data == "[DONE]") {
      s.complete = true;
      return;
    }
    const auto t = now();
    read_event(s.record, data, t);
    if (!s.record.error.empty()) return;
    json_value json = parse_json(data);
    const auto* text = find_path(json, {"choices", "0", "text"});
    if (text == nullptr) return;
    s.text += text_or(text, "");
    if (s.running) on_gap(index, s.last, t);
    s.running = true;
    s.last = t;
  }

  /// A silence of a stream belongs to the injury it covers, else to the one before it.
  void on_gap(size_t index, nanoseconds from, nanoseconds to) {
    const auto gap = milliseconds(to - from);
    auto& injuries = report_.injuries;
    const auto covered =
        std::find_if(injuries.begin(), injuries.end(), [&](const auto& x) { return x.at > from; });
    auto i = covered - injuries.begin();
    if (covered == injuries.end() || covered->at > to) --i;
    if (i < 0) {
      report_.calm_gap_ms = std::max(report_.calm_gap_ms, gap);
    } else if (auto felt = pauses_[static_cast<size_t>(i)].find(index);
               felt != pauses_[static_cast<size_t>(i)].end()) {
      felt->second = std::max(felt->second, gap);
    }
  }

  void on_done(size_t index, const net::http_reply& reply) {
    auto& s = streams_[index];
    if (reply.status == http_status::too_many_requests
        || reply.status == http_status::service_unavailable) {
      ++report_.refused;
      loop_.at(clock::now() + soon, [this, index] { next(index); });
    } else if (reply.status != http_status::ok) {
      on_lost(index, error_message(reply.status, reply.body));
    } else if (!s.record.error.empty() || !s.complete) {
      on_lost(index, s.record.error.empty() ? "cut" : s.record.error);
    } else {
      judge(index);
      next(index);
    }
  }

  void judge(size_t index) {
    auto& s = streams_[index];
    if (!std::exchange(s.known, true)) {
      s.golden = s.text;
      return;
    }
    if (s.record.completion_tokens > options_.tokens)
      ++report_.duplicates;
    else if (s.text != s.golden)
      ++report_.wrong;
    else
      ++report_.answers;
  }

  void on_lost(size_t index, const std::string& why) {
    auto& s = streams_[index];
    if (!s.known) { // not even without injuries
      failure_ = "an answer failed before any fault was injected: " + why;
      loop_.stop();
      return;
    }
    ++report_.lost;
    if (report_.errors.size() < errors_kept) report_.errors.push_back(why);
    loop_.at(clock::now() + soon, [this, index] { next(index); });
  }

  /// Once all answers are known, the injuries begin; after them every stream ends its answer.
  void next(size_t index) {
    if (!until_) {
      if (!streams_[index].known) return ask(index);
      if (!std::all_of(streams_.begin(), streams_.end(), [](const auto& s) { return s.known; }))
        return;
      until_ = now() + span_of(options_.for_s);
      for (size_t i = 0; i < streams_.size(); ++i) ask(i);
      loop_.at(clock::now() + span_of(options_.after_s.value_or(std::min(options_.every_s, 2.0))),
               [this] { injure(); });
      return;
    }
    if (now() < *until_) ask(index);
  }

  void injure() {
    if (now() >= *until_ || (options_.count && report_.injuries.size() >= *options_.count)) {
      until_ = now(); // what runs may end
      return;
    }
    net::http_call_request request;
    request.path = "/metrics";
    net::http_call_events events;
    events.on_done = [this](const net::http_reply& reply) { injure(rebuilt_tokens(reply.body)); };
    events.on_error = [this](const net::http_call_error& e) { on_admin_lost(e); };
    loop_.call(admin_url_, std::move(request), std::move(events));
  }

  void on_admin_lost(const net::http_call_error& e) {
    failure_ = std::string{"the admin listener does not answer: "} + e.what();
    loop_.stop();
  }

  /// `rebuilt`: tokens until now.
  void injure(uint64_t rebuilt) {
    json_writer body;
    body.begin_object().member("action", options_.action);
    if (!victim_.empty()) body.member("target", victim_);
    body.member("duration_ms", static_cast<uint64_t>(options_.duration_s * 1e3));
    net::http_call_request request;
    request.method = "POST";
    request.path = "/admin/chaos";
    request.body = body.end_object().take();
    if (!admin_key_.empty()) request.headers.set("authorization", "Bearer " + admin_key_);
    net::http_call_events events;
    const auto at = now();
    events.on_done = [=, this](const net::http_reply& reply) { on_injured(at, rebuilt, reply); };
    events.on_error = [this](const net::http_call_error& e) { on_admin_lost(e); };
    loop_.call(admin_url_, std::move(request), std::move(events));
  }

  void on_injured(nanoseconds at, uint64_t rebuilt, const net::http_reply& reply) {
    auto wait = span_of(options_.every_s);
    if (reply.status == http_status::accepted) {
      chaos_injury x;
      x.seat = text_or(find_path(parse_answer(reply.body), {"injured"}), "?");
      x.at = at;
      auto& felt = pauses_.emplace_back();
      for (size_t i = 0; i < streams_.size(); ++i)
        if (streams_[i].running && !streams_[i].complete) felt[i] = 0;
      x.streams = static_cast<uint32_t>(felt.size());
      report_.injuries.push_back(std::move(x));
      rebuilt_.push_back(rebuilt);
      next_victim();
    } else if (reply.status == http_status::conflict) { // it is being replaced
      wait = soon;
      if (!absent_since_) absent_since_ = at;
      if (at - *absent_since_ > victim_timeout) next_victim();
    } else {
      failure_ = error_message(reply.status, reply.body);
      loop_.stop();
      return;
    }
    loop_.at(clock::now() + wait, [this] { injure(); });
  }

  void next_victim() {
    victim_ = plan_.next();
    absent_since_.reset();
  }

  const chaos_options& options_;
  const net::http_url url_;
  const std::string key_;
  const net::http_url admin_url_;
  const std::string admin_key_;
  std::string model_;
  std::vector<stream> streams_;
  std::vector<std::map<size_t, double>> pauses_; ///< by injury and stream
  std::vector<uint64_t> rebuilt_;                ///< tokens computed again before each injury
  chaos_plan plan_;
  std::string victim_;                      ///< of the next injury
  std::optional<nanoseconds> absent_since_; ///< it is not there
  clock::time_point begin_;
  std::optional<nanoseconds> until_; ///< no injury after this; nothing: answers are not known yet
  std::optional<std::string> failure_;
  chaos_report report_;
  net::http_client_loop loop_; ///< last: its calls point to all of the above
};

} // namespace

chaos_report run_chaos(const server_choice& server, const chaos_options& options,
                       interrupts& signals) {
  return chaos_run{server, options}.run(signals);
}

} // namespace lamella::cli
