#include "net/metrics/metrics_http.hpp"

namespace lamella::net {

namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Registry;

Gauge& gauge(Registry& to, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(to).Add({});
}

Counter& counter(Registry& to, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(to).Add({});
}

} // namespace

http_families::http_families(Registry& to)
    : connections{gauge(to, "lamella_http_connections_open", "Open connections of clients.")},
      requests_open{gauge(to, "lamella_http_requests_open",
                          "HTTP requests whose answers are not written yet.")},
      answer_bytes{gauge(to, "lamella_http_answer_bytes",
                         "Memory of whole answers that wait for their readers.")},
      accepted{counter(to, "lamella_http_connections_total", "Connections of clients, accepted.")},
      refused{counter(to, "lamella_http_connections_refused_total",
                      "Connections rejected over http.connections_max or "
                      "http.connections_per_address_max.")},
      errors{counter(to, "lamella_http_errors_total",
                     "Errors that the server gave before a request had a route: framing, limits, "
                     "time.")},
      disconnects{counter(to, "lamella_http_disconnects_total",
                          "Answers cut because the connection ended before they were written.")},
      stalls{counter(to, "lamella_http_stalls_total",
                     "Connections closed because the client read nothing for "
                     "http.stream_stall_seconds, or a whole answer too slowly.")},
      answers_refused{counter(to, "lamella_http_answers_refused_total",
                              "Answers replaced by 503 because those that wait fill "
                              "limits.bodies_bytes.")} {}

} // namespace lamella::net
