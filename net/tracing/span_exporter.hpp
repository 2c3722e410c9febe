/// Sends spans to a collector of OpenTelemetry, on a thread of its own.
#pragma once

#include "net/tracing/otlp.hpp"
#include "net/tracing/span_sink.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lamella::net {

/// Why spans never came to a collector: the queue was full, the collector did not take them in any
/// of the tries, or the exporter was stopped, or told another collector, while they waited.
enum class span_loss : uint8_t { queue, collector, stopped };

struct span_exporter_settings {
  otlp_source source;
  size_t queue_spans = 8192;                      ///< that wait; more are dropped
  size_t batch_spans = 512;                       ///< of one POST
  std::chrono::milliseconds gather{1'000};        ///< how long a batch waits for more
  std::chrono::milliseconds call_timeout{10'000}; ///< of one POST, from name to answer
  uint32_t tries = 5;                             ///< of a batch
  std::chrono::milliseconds backoff{500};         ///< before the second try; doubles from then on
  std::chrono::milliseconds backoff_most{10'000}; ///< also of what a collector asks for
  std::chrono::milliseconds flush{2'000};         ///< longest time that stop() takes
  // Called on the exporter's thread or that of offer(), stop() and set_endpoint(); may not block.
  std::function<void(uint64_t spans)> on_exported;
  std::function<void(span_loss why, uint64_t spans)> on_lost;
  std::function<void(const std::string& why)> on_failing; ///< the first batch lost after a good one
};

/// Thread-safe. Neither a collector that is slow nor one that is gone delays who offers spans.
class span_exporter final : public span_sink {
public:
  explicit span_exporter(span_exporter_settings settings);
  /// As stop().
  ~span_exporter() override;
  span_exporter(const span_exporter&) = delete;
  span_exporter& operator=(const span_exporter&) = delete;

  /// Sends to POST `url`/v1/traces from now on; empty: to nobody, and what waits is dropped. Throws
  /// std::invalid_argument for what is no URL.
  void set_endpoint(const std::string& url);

  /// One load of an atomic.
  bool on() const override { return on_.load(std::memory_order_relaxed); }

  /// Queues the spans; drops and counts them where the queue has no room for all.
  void offer(std::vector<span> spans) override;

  /// Sends what waits, for `flush` at most, and drops the rest. Nothing is taken after that.
  void stop();

private:
  struct impl;
  std::atomic<bool> on_{false};
  std::unique_ptr<impl> impl_;
};

} // namespace lamella::net
