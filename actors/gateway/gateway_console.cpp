#include "actors/gateway/gateway_console.hpp"

#include "actors/gateway/gateway_pools.hpp"
#include "actors/gateway/gateway_status.hpp"
#include "actors/gateway/request_list.hpp"
#include "actors/gateway/status_text.hpp"
#include "actors/protocol/status.hpp"
#include "actors/shared/events.hpp"
#include "actors/shared/explain.hpp"
#include "base/environment.hpp"
#include "base/json_writer.hpp"
#include "net/console/pages.hpp"
#include "net/http/api_error.hpp"

#include <array>

namespace lamella::actors {

namespace {

/// What the console draws and tells.
constexpr std::array<std::string_view, 15> samples{
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:num_preemptions_total",
    "vllm:prefix_cache_hits_total",
    "vllm:prefix_cache_queries_total",
    "lamella_requests_total",
    "lamella_requests_recovered_total",
    "lamella_requests_lost_total",
    "lamella_recovery_pause_seconds_sum",
    "lamella_recovery_pause_seconds_count",
    "lamella_kv_rebuilt_tokens_total",
    "lamella_parity_rebuilt_slots_total",
    "lamella_failovers_total",
};

/// What a page is made of, beside the metrics.
struct console_facts {
  std::string model, version, health, trouble;
  uint64_t newest_event = 0;
  bool chaos = false;
  std::optional<system_status> status;
  uint64_t recovering = 0;
  std::string requests; ///< JSON
  uint64_t all_requests = 0;
};

std::string page_of(const console_facts& x, const net::metrics& metrics) {
  json_writer out;
  out.begin_object()
      .member("version", 1)
      .member("time", utc_text(date_of_machine()))
      .member("release", x.version)
      .member("model", x.model)
      .member("trouble", x.trouble)
      .member("newest_event", x.newest_event)
      .member("chaos", x.chaos)
      .key("health")
      .raw(x.health)
      .key("changes")
      .begin_array();
  if (x.status)
    for (const auto& change : x.status->changes)
      out.begin_object()
          .member("pool", change.pool)
          .member("from", change.from)
          .member("members", change.to)
          .member("state", change.state)
          .member("reason", change.reason)
          .end_object();
  out.end_array().key("status");
  if (x.status)
    out.raw(status_json(*x.status, x.recovering));
  else
    out.null();
  out.member("all_requests", x.all_requests).key("requests").raw(x.requests);
  out.member("samples", metrics.samples(samples)).end_object();
  return out.take();
}

/// Makes a page of what is known now, in a thread that no actor waits for.
void show(gateway_ptr self, console_facts x) {
  const auto& st = self->state;
  const auto now = self->clock().now();
  x.model = st.server ? st.server->model_name : "";
  x.version = st.config.version;
  x.health = st.config.health->ask(health_board::probe::health, now).body;
  x.newest_event = events().after(0, std::chrono::system_clock::time_point::max()).newest;
  x.chaos = st.config.chaos;
  x.all_requests = st.requests.size();
  x.requests = requests_json(most_urgent(requests_of(st, now)));
  const auto make = [board = st.console, metrics = st.config.metrics, x = std::move(x), now] {
    board->show(page_of(x, *metrics), now);
  };
  self->send(st.config.aside, aside_job{aside_lane::brief, make});
}

/// 127.0.0.1 and the like, [::1] or localhost, each with a port or none.
bool is_this_machine(std::string_view host) {
  constexpr std::string_view six = "[::1]";
  if (host.starts_with(six)) return host.size() == six.size() || host[six.size()] == ':';
  host = host.substr(0, host.find(':'));
  return host == "localhost"
         || (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

} // namespace

void answer_page(const gateway_config& config, const exchange_ptr& exchange) {
  const auto& request = exchange->request();
  const bool admin = request.listener == "admin";
  if (!admin && !config.public_page)
    throw net::route_not_found(request.method, request.path,
                               "there are no pages here (http.ui is false); the API is under /v1");
  const auto* file = net::find_page(request.path, admin ? net::page_reader::operators
                                                        : net::page_reader::everybody);
  if (!file)
    throw net::route_not_found(request.method, request.path,
                               admin ? "the pages of this listener are / and /chat"
                                     : "the page of this listener is /");
  exchange->respond(200, net::page_headers(*file), std::string{file->text});
}

void answer_console(gateway_ptr self, const exchange_ptr& exchange) {
  if (!self->state.console->ask(exchange, self->clock().now())) return;
  if (!self->state.members) return show(self, {});
  const auto done = [self](const system_status& status, uint64_t recovering) {
    console_facts x;
    x.status = status;
    x.status->changes = with_queued(self->state.config, status.changes);
    x.recovering = recovering;
    show(self, std::move(x));
  };
  ask_status(self, done, [self](const caf::error& reason) {
    console_facts x;
    x.trouble = explain(self->system(), reason);
    show(self, std::move(x));
  });
}

bool is_of_console(const net::http_request& request) {
  const auto host = request.headers.get("host");
  return is_this_machine(host) && request.headers.get("origin") == "http://" + std::string{host};
}

} // namespace lamella::actors
