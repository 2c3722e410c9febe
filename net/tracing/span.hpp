/// Spans of a distributed trace, as plain values.
#pragma once

#include "net/tracing/trace_context.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace lamella::net {

/// A value of an attribute, of the types that OpenTelemetry has.
using span_value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

struct span_attribute {
  std::string key;
  span_value value;
};

/// An instant within a span.
struct span_event {
  std::string name;
  std::chrono::system_clock::time_point time;
  std::vector<span_attribute> attributes;
};

/// What a span is to its parent: work within a process, or the answer to a remote caller.
enum class span_kind : uint8_t { internal = 1, server = 2 };

struct span {
  trace_id trace{};
  span_id id{};
  std::optional<span_id> parent;
  bool parent_is_remote = false;
  std::string state; ///< `tracestate`
  span_kind kind = span_kind::internal;
  std::string name;
  std::chrono::system_clock::time_point from, to;
  std::vector<span_attribute> attributes;
  std::vector<span_event> events;
  std::optional<std::string> failure; ///< in words, where the span failed
};

} // namespace lamella::net
