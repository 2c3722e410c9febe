#include "net/tracing/otlp.hpp"

#include "base/json_writer.hpp"

#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include <algorithm>

namespace lamella::net {

namespace {

// Of `flags`: the low byte of traceparent, whether it is known that a parent is remote, and whether
// one is.
constexpr uint32_t flag_sampled = 0x1, flag_knows_remote = 0x100, flag_is_remote = 0x200;
constexpr int32_t status_error = 2;

// Fields of OTLP's messages, by the names and numbers of its protocol buffers.
enum class request_field : protozero::pbf_tag_type { resource_spans = 1 };
enum class resource_spans_field : protozero::pbf_tag_type { resource = 1, scope_spans = 2 };
enum class resource_field : protozero::pbf_tag_type { attributes = 1 };
enum class scope_spans_field : protozero::pbf_tag_type { scope = 1, spans = 2 };
enum class scope_field : protozero::pbf_tag_type { name = 1, version = 2 };
enum class key_value_field : protozero::pbf_tag_type { key = 1, value = 2 };
enum class any_value_field : protozero::pbf_tag_type {
  string_value = 1,
  bool_value = 2,
  int_value = 3,
  double_value = 4,
  array_value = 5
};
enum class array_field : protozero::pbf_tag_type { values = 1 };
enum class span_field : protozero::pbf_tag_type {
  trace_id = 1,
  span_id = 2,
  trace_state = 3,
  parent_span_id = 4,
  name = 5,
  kind = 6,
  start_time_unix_nano = 7,
  end_time_unix_nano = 8,
  attributes = 9,
  events = 11,
  status = 15,
  flags = 16
};
enum class event_field : protozero::pbf_tag_type { time_unix_nano = 1, name = 2, attributes = 3 };
enum class status_field : protozero::pbf_tag_type { message = 2, code = 3 };
enum class response_field : protozero::pbf_tag_type { partial_success = 1 };
enum class partial_field : protozero::pbf_tag_type { rejected_spans = 1 };

template <class Field> using writer = protozero::pbf_builder<Field>;

uint64_t nanoseconds(std::chrono::system_clock::time_point when) {
  using std::chrono::nanoseconds;
  const auto n = std::chrono::duration_cast<nanoseconds>(when.time_since_epoch()).count();
  return static_cast<uint64_t>(std::max<int64_t>(n, 0));
}

template <class Id> protozero::data_view bytes_of(const Id& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

template <class Parent, class Field>
void write_value(writer<Parent>& to, Field field, const span_value& value) {
  writer<any_value_field> w{to, field};
  if (const auto* b = std::get_if<bool>(&value)) w.add_bool(any_value_field::bool_value, *b);
  if (const auto* i = std::get_if<int64_t>(&value)) w.add_int64(any_value_field::int_value, *i);
  if (const auto* d = std::get_if<double>(&value)) w.add_double(any_value_field::double_value, *d);
  if (const auto* s = std::get_if<std::string>(&value))
    w.add_string(any_value_field::string_value, valid_utf8(*s));
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    writer<array_field> values{w, any_value_field::array_value};
    for (const auto& x : *list) write_value(values, array_field::values, span_value{x});
  }
}

template <class Parent, class Field>
void write_attributes(writer<Parent>& to, Field field,
                      const std::vector<span_attribute>& attributes) {
  for (const auto& x : attributes) {
    writer<key_value_field> w{to, field};
    w.add_string(key_value_field::key, x.key);
    write_value(w, key_value_field::value, x.value);
  }
}

void write_span(writer<scope_spans_field>& to, const span& x) {
  writer<span_field> w{to, scope_spans_field::spans};
  w.add_bytes(span_field::trace_id, bytes_of(x.trace));
  w.add_bytes(span_field::span_id, bytes_of(x.id));
  if (!x.state.empty()) w.add_string(span_field::trace_state, valid_utf8(x.state));
  if (x.parent) w.add_bytes(span_field::parent_span_id, bytes_of(*x.parent));
  w.add_string(span_field::name, valid_utf8(x.name));
  w.add_enum(span_field::kind, static_cast<int32_t>(x.kind));
  w.add_fixed64(span_field::start_time_unix_nano, nanoseconds(x.from));
  w.add_fixed64(span_field::end_time_unix_nano, nanoseconds(x.to));
  write_attributes(w, span_field::attributes, x.attributes);
  for (const auto& e : x.events) {
    writer<event_field> event{w, span_field::events};
    event.add_fixed64(event_field::time_unix_nano, nanoseconds(e.time));
    event.add_string(event_field::name, e.name);
    write_attributes(event, event_field::attributes, e.attributes);
  }
  if (x.failure) {
    writer<status_field> status{w, span_field::status};
    status.add_string(status_field::message, valid_utf8(*x.failure));
    status.add_enum(status_field::code, status_error);
  }
  w.add_fixed32(span_field::flags,
                flag_sampled | flag_knows_remote | (x.parent_is_remote ? flag_is_remote : 0));
}

} // namespace

std::string otlp_traces(const otlp_source& source, std::span<const span> spans) {
  std::string body;
  writer<request_field> request{body};
  writer<resource_spans_field> group{request, request_field::resource_spans};
  {
    writer<resource_field> resource{group, resource_spans_field::resource};
    write_attributes(resource, resource_field::attributes, source.resource);
  }
  writer<scope_spans_field> list{group, resource_spans_field::scope_spans};
  {
    writer<scope_field> scope{list, scope_spans_field::scope};
    scope.add_string(scope_field::name, source.scope);
    scope.add_string(scope_field::version, source.version);
  }
  for (const auto& x : spans) write_span(list, x);
  list.commit();
  group.commit();
  return body;
}

uint64_t otlp_rejected(std::string_view body) {
  try {
    protozero::pbf_message<response_field> response{body.data(), body.size()};
    if (!response.next(response_field::partial_success, protozero::pbf_wire_type::length_delimited))
      return 0;
    protozero::pbf_message<partial_field> partial{response.get_message()};
    if (!partial.next(partial_field::rejected_spans, protozero::pbf_wire_type::varint)) return 0;
    return static_cast<uint64_t>(std::max<int64_t>(partial.get_int64(), 0));
  } catch (const protozero::exception&) { // an answer in another encoding says nothing
    return 0;
  }
}

} // namespace lamella::net
