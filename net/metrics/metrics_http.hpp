/// The families of the HTTP server. For net/metrics/metrics_impl.hpp alone.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace lamella::net {

/// What the server counts itself, before a request has a route or behind its answer.
struct http_families {
  explicit http_families(prometheus::Registry& registry);

  prometheus::Gauge &connections, &requests_open, &answer_bytes;
  prometheus::Counter &accepted, &refused, &errors, &disconnects, &stalls, &answers_refused;
};

} // namespace lamella::net
