/// OTLP: how spans go to a collector. The binary encoding (protocol buffers) of OTLP/HTTP, version
/// 1, which every collector reads; many read no other.
#pragma once

#include "net/tracing/span.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::net {

/// Who made the spans of a request.
struct otlp_source {
  std::vector<span_attribute> resource; ///< `service.name`, ...
  std::string scope;                    ///< name of the instrumentation
  std::string version;                  ///< of the instrumentation
};

/// The type of the bodies of requests and answers.
inline constexpr const char* otlp_content_type = "application/x-protobuf";

/// The body of a POST to /v1/traces. Texts that are not UTF-8 are mended.
std::string otlp_traces(const otlp_source& source, std::span<const span> spans);

/// How many spans a collector has refused, by the body of its 200; 0 where that says nothing.
uint64_t otlp_rejected(std::string_view body);

} // namespace lamella::net
