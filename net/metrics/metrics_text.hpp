/// Metrics as text. Internal to net/metrics/metrics.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace lamella::net {

/// Prometheus text format 0.0.4.
std::string prometheus_text(const std::vector<prometheus::MetricFamily>& families);

/// OpenMetrics 1.0: counter families lose their `_total`, and the text has an end mark.
std::string openmetrics_text(const std::vector<prometheus::MetricFamily>& families);

/// The `process_*` series of this process, from /proc.
std::vector<prometheus::MetricFamily> process_families();

} // namespace lamella::net
