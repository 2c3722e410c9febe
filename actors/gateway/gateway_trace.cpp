#include "actors/gateway/gateway_trace.hpp"

#include "actors/gateway/tracer.hpp"
#include "actors/shared/events.hpp"
#include "actors/worker/worker_trace.hpp"
#include "base/environment.hpp"
#include "net/api/api_route.hpp"
#include "net/http/api_error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace lamella::actors {

namespace {

constexpr double default_seconds = 0.5, least_seconds = 0.05, newest_most = 10;

/// A number of seconds of the query; nothing: it has none. Throws api_error (400).
std::optional<std::chrono::milliseconds>
seconds_of(const net::http_request& request, const std::string& name, double least, double most) {
  const auto text = net::query_value(request.query, name);
  if (!text) return std::nullopt;
  double seconds = 0;
  const auto* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, seconds);
  if (error != std::errc{} || at != end || !(seconds >= least && seconds <= most))
    throw net::invalid_value(name,
                             fmt::format("{} is '{}'; it must be a number of seconds from {} to {}",
                                         name, *text, least, most));
  return std::chrono::milliseconds{static_cast<int64_t>(seconds * 1e3)};
}

} // namespace

void answer_trace(gateway_ptr self, const exchange_ptr& exchange) {
  auto& st = self->state;
  const double most = std::chrono::duration<double>(trace_longest).count();
  const auto length =
      seconds_of(exchange->request(), "for", least_seconds, most)
          .value_or(std::chrono::milliseconds{static_cast<int64_t>(default_seconds * 1e3)});
  const auto newest = seconds_of(exchange->request(), "newest", 0, newest_most);
  if (!st.members) throw net::loading({});
  const auto now = self->clock().now();
  if (newest && st.watched && st.watched->take_in(exchange, now, *newest)) return;
  if (!st.tracing.expired()) {
    auto error = net::bad_request("a recording is under way, and there is one at a time: retry "
                                  "when it is over (30 s at most)");
    error.status = 409;
    error.code = "trace_under_way";
    throw error;
  }
  tracer_config x;
  x.owner = caf::actor_cast<caf::actor_addr>(self);
  x.members = st.members;
  x.aside = st.config.aside;
  x.token = std::make_shared<bool>(true);
  x.audience = std::make_shared<trace_audience>(exchange, now, x.token);
  if (newest)
    st.watched = x.audience;
  else
    x.alone = exchange;
  x.id = st.config.world.chance() | 1; // never 0
  x.length = length;
  x.empty.release = st.config.version;
  x.empty.model = st.server ? st.server->model_name : "";
  x.empty.time = utc_text(date_of_machine());
  x.empty.seconds = std::chrono::duration<double>(length).count();
  st.tracing = x.token;
  self->spawn(tracer, std::move(x));
}

} // namespace lamella::actors
