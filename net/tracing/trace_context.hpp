/// Where a request stands in a distributed trace: the headers of W3C Trace Context.
#pragma once

#include "net/http/http_exchange.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamella::net {

using trace_id = std::array<uint8_t, 16>;
using span_id = std::array<uint8_t, 8>;

/// Lower-case hexadecimal digits, as all formats of traces write ids.
std::string hex_of(const trace_id& id);
std::string hex_of(const span_id& id);

/// An id made of random words; never zero, which means none.
trace_id trace_id_of(uint64_t high, uint64_t low);
span_id span_id_of(uint64_t random);

/// The span of a client that a request belongs to, or the root that a request is itself.
struct trace_context {
  trace_id trace{};
  std::optional<span_id> parent; ///< nothing: the request begins the trace
  bool sampled = true;           ///< whether anybody wants to see it
  std::string state;             ///< `tracestate`, as it came; may be empty
};

/// What the headers say. A malformed traceparent counts as none, as the specification asks.
struct trace_headers {
  std::optional<trace_context> context;
  bool malformed = false; ///< there is a traceparent that cannot be read
};

/// Reads `traceparent` (of any version whose first four fields are those of version 00) and, with a
/// good one, `tracestate`. A tracestate of more than 512 bytes or of other than printable
/// characters is left out.
trace_headers read_trace_headers(const http_headers& headers);

/// The same of one value of `traceparent`; nothing where it is malformed.
std::optional<trace_context> parse_traceparent(std::string_view text);

} // namespace lamella::net
