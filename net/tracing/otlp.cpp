#include "net/tracing/otlp.hpp"

#include "base/json_writer.hpp"

#include <charconv>

namespace lamella::net {

namespace {

// Of `flags`: the low byte of traceparent, whether it is known that a parent is remote, and whether
// one is.
constexpr uint32_t flag_sampled = 0x1, flag_knows_remote = 0x100, flag_is_remote = 0x200;
constexpr int status_error = 2;

/// 64-bit numbers are strings in the JSON of protocol buffers.
std::string nanoseconds(std::chrono::system_clock::time_point when) {
  using std::chrono::nanoseconds;
  return std::to_string(std::chrono::duration_cast<nanoseconds>(when.time_since_epoch()).count());
}

void write_value(json_writer& w, const span_value& value) {
  w.begin_object();
  if (const auto* b = std::get_if<bool>(&value)) w.member("boolValue", *b);
  if (const auto* i = std::get_if<int64_t>(&value)) w.member("intValue", std::to_string(*i));
  if (const auto* d = std::get_if<double>(&value)) w.member("doubleValue", *d);
  if (const auto* s = std::get_if<std::string>(&value)) w.member("stringValue", *s);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    w.key("arrayValue").begin_object().key("values").begin_array();
    for (const auto& x : *list) w.begin_object().member("stringValue", x).end_object();
    w.end_array().end_object();
  }
  w.end_object();
}

void write_attributes(json_writer& w, const std::vector<span_attribute>& attributes) {
  if (attributes.empty()) return;
  w.key("attributes").begin_array();
  for (const auto& x : attributes) {
    w.begin_object().member("key", x.key).key("value");
    write_value(w, x.value);
    w.end_object();
  }
  w.end_array();
}

void write_span(json_writer& w, const span& x) {
  w.begin_object().member("traceId", hex_of(x.trace)).member("spanId", hex_of(x.id));
  if (x.parent) w.member("parentSpanId", hex_of(*x.parent));
  if (!x.state.empty()) w.member("traceState", x.state);
  w.member("flags",
           flag_sampled | flag_knows_remote | (x.parent_is_remote ? flag_is_remote : uint32_t{0}));
  w.member("name", x.name).member("kind", static_cast<int>(x.kind));
  w.member("startTimeUnixNano", nanoseconds(x.from)).member("endTimeUnixNano", nanoseconds(x.to));
  write_attributes(w, x.attributes);
  if (!x.events.empty()) {
    w.key("events").begin_array();
    for (const auto& e : x.events) {
      w.begin_object().member("timeUnixNano", nanoseconds(e.time)).member("name", e.name);
      write_attributes(w, e.attributes);
      w.end_object();
    }
    w.end_array();
  }
  if (x.failure)
    w.key("status")
        .begin_object()
        .member("message", *x.failure)
        .member("code", status_error)
        .end_object();
  w.end_object();
}

} // namespace

std::string otlp_traces(const otlp_source& source, std::span<const span> spans) {
  json_writer w;
  w.begin_object().key("resourceSpans").begin_array().begin_object();
  w.key("resource").begin_object();
  write_attributes(w, source.resource);
  w.end_object();
  w.key("scopeSpans").begin_array().begin_object();
  w.key("scope").begin_object().member("name", source.scope).member("version", source.version);
  w.end_object().key("spans").begin_array();
  for (const auto& x : spans) write_span(w, x);
  w.end_array().end_object().end_array();
  w.end_object().end_array().end_object();
  return w.take();
}

uint64_t otlp_rejected(std::string_view body) {
  try {
    const auto root = parse_json(body);
    const auto* partial = root.find("partialSuccess");
    const auto* count = partial == nullptr ? nullptr : partial->find("rejectedSpans");
    if (count == nullptr) return 0;
    if (const auto* n = count->get_if<int64_t>()) return *n > 0 ? static_cast<uint64_t>(*n) : 0;
    uint64_t number = 0;
    if (const auto* text = count->get_if<std::string>())
      std::from_chars(text->data(), text->data() + text->size(), number);
    return number;
  } catch (const json_syntax_error&) { // an answer in another encoding says nothing
    return 0;
  }
}

} // namespace lamella::net
