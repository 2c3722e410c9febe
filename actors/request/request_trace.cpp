#include "actors/request/request_trace.hpp"

#include "actors/protocol/tokens.hpp"

namespace lamella::actors {

namespace {

using steady = std::chrono::steady_clock::time_point;

using seconds = std::chrono::duration<double>;

constexpr const char* outcome_names[] = {"done", "error", "cancelled", "rejected"};

std::string_view operation_of(net::api_route route) {
  return route == net::api_route::completions ? "text_completion" : "chat";
}

int64_t count_of(uint64_t n) { return static_cast<int64_t>(n); }

/// Makes the spans of one request, the root first.
class span_maker {
public:
  span_maker(const request_state& st, const request_ending& x)
      : st_{st}, end_{x}, date_{st.server->world.date()}, root_{net::span_id_of(
                                                              st.server->world.chance())} {}

  std::vector<net::span> all() {
    add_root();
    const auto first_token = st_.has_first_token ? st_.first_token : end_.when;
    const auto started = st_.has_started ? st_.started : first_token;
    add("admission", st_.arrived, st_.admitted.value_or(end_.when));
    if (st_.admitted) add("queue", *st_.admitted, started);
    if (st_.has_started) add("prefill", started, first_token);
    if (st_.has_first_token) add("decode", first_token, end_.when);
    for (const auto& x : st_.pauses) add_recovery(x);
    for (const auto& s : st_.sequences) // those that nothing ended
      if (s.paused_since && !s.text->over())
        add_recovery({s.text->tokens().empty() ? *s.paused_since : s.last_token, end_.when, {}});
    return std::move(spans_);
  }

private:
  /// Time that passes is that of the actor's clock; where it stands now, by the date.
  std::chrono::system_clock::time_point date_of(steady when) const {
    return date_
           - std::chrono::duration_cast<std::chrono::system_clock::duration>(end_.when - when);
  }

  net::span& add(std::string name, steady from, steady to) {
    auto& x = spans_.emplace_back();
    x.trace = st_.trace->trace;
    x.id = spans_.size() == 1 ? root_ : net::span_id_of(st_.server->world.chance());
    x.state = st_.trace->state;
    x.name = std::move(name);
    x.from = date_of(std::min(from, to));
    x.to = date_of(to);
    if (spans_.size() > 1) x.parent = root_;
    return x;
  }

  void add_recovery(const request_pause& x) {
    auto& made = add("recovery", x.from, x.to);
    if (x.method != nullptr)
      made.attributes.push_back({"lamella.recovery.method", std::string{x.method}});
    else
      made.failure = "not recovered";
  }

  void add_root() {
    const std::string operation{operation_of(st_.route)};
    const auto& model = st_.head.model;
    auto& x = add(model.empty() ? operation : operation + " " + model, st_.arrived, end_.when);
    x.kind = net::span_kind::server;
    x.parent = st_.trace->parent;
    x.parent_is_remote = x.parent.has_value();
    describe_call(x.attributes, operation);
    if (!model.empty()) describe_generation(x.attributes);
    if (st_.has_first_token) x.events.push_back({"first_token", date_of(st_.first_token), {}});
    // Once a stream is open its status is 200, whatever becomes of it.
    if (end_.outcome == net::request_outcome::error) x.failure = end_.code;
  }

  void describe_call(std::vector<net::span_attribute>& to, const std::string& operation) const {
    const auto& request = st_.exchange->request();
    to.push_back({"gen_ai.operation.name", operation});
    to.push_back({"gen_ai.provider.name", std::string{"lamella"}});
    to.push_back({"http.request.method", request.method});
    to.push_back({"http.route", std::string{net::route_name(st_.route)}});
    to.push_back({"http.response.status_code", int64_t{end_.status}});
    to.push_back({"lamella.request.id", request.request_id});
    to.push_back(
        {"lamella.outcome", std::string{outcome_names[static_cast<size_t>(end_.outcome)]}});
    if (end_.outcome == net::request_outcome::cancelled)
      to.push_back({"error.type", std::string{"cancelled"}});
    else if (!end_.code.empty())
      to.push_back({"error.type", end_.code});
    if (st_.recoveries > 0) to.push_back({"lamella.recoveries", int64_t{st_.recoveries}});
  }

  void describe_generation(std::vector<net::span_attribute>& to) const {
    const auto& p = st_.params;
    to.push_back({"gen_ai.request.model", st_.head.model});
    to.push_back({"gen_ai.response.model", st_.server->model_name});
    to.push_back({"gen_ai.response.id", st_.head.id});
    to.push_back({"gen_ai.request.stream", p.stream});
    if (st_.has_first_token)
      to.push_back(
          {"gen_ai.response.time_to_first_chunk", seconds{st_.first_token - st_.arrived}.count()});
    to.push_back({"gen_ai.request.max_tokens", int64_t{st_.max_tokens}});
    to.push_back({"gen_ai.request.temperature", p.sampling.temperature});
    to.push_back({"gen_ai.request.top_p", p.sampling.top_p});
    if (p.sampling.top_k > 0) to.push_back({"gen_ai.request.top_k", int64_t{p.sampling.top_k}});
    to.push_back({"gen_ai.request.frequency_penalty", p.sampling.frequency_penalty});
    to.push_back({"gen_ai.request.presence_penalty", p.sampling.presence_penalty});
    if (p.sampling.seed) to.push_back({"gen_ai.request.seed", *p.sampling.seed});
    if (p.n > 1) to.push_back({"gen_ai.request.choice.count", int64_t{p.n}});
    to.push_back({"gen_ai.usage.input_tokens", count_of(end_.usage.prompt_tokens)});
    to.push_back({"gen_ai.usage.cache_read.input_tokens", count_of(end_.usage.cached_tokens)});
    to.push_back({"gen_ai.usage.output_tokens", count_of(end_.usage.completion_tokens)});
    std::vector<std::string> reasons;
    for (const auto& s : st_.sequences)
      if (s.text->over())
        reasons.emplace_back(s.text->reason() == finish::length ? "length" : "stop");
    if (!reasons.empty()) to.push_back({"gen_ai.response.finish_reasons", std::move(reasons)});
  }

  const request_state& st_;
  const request_ending& end_;
  const std::chrono::system_clock::time_point date_; ///< of the end
  const net::span_id root_;
  std::vector<net::span> spans_;
};

} // namespace

void begin_trace(request_state& st) {
  const auto& traces = st.server->traces;
  if (!traces || !traces->spans->on()) return;
  auto found = net::read_trace_headers(st.exchange->request().headers);
  if (found.malformed) st.server->metrics->traceparent_malformed();
  if (found.context) {
    if (found.context->sampled) st.trace = std::move(*found.context);
    return;
  }
  const auto& chance = st.server->world.chance;
  constexpr uint64_t percent = 100;
  if (chance() % percent >= traces->sample_percent) return;
  st.trace.emplace();
  const auto high = chance();
  st.trace->trace = net::trace_id_of(high, chance());
}

void end_trace(const request_state& st, const request_ending& x) {
  if (!st.trace || !st.server->traces) return;
  st.server->traces->spans->offer(span_maker{st, x}.all());
}

} // namespace lamella::actors
