// What a collector gets: the official parser reads the same in tests/client/traces_client.py.
#include "net/tracing/otlp.hpp"

#include <doctest/doctest.h>
#include <protozero/pbf_reader.hpp>

using namespace lamella;
using namespace lamella::net;

namespace {

/// A message as text: numbers of fields, ids and texts as hexadecimal digits, `deep` ones between
/// braces. `deep(path)`: whether the field at that path, such as "1.2.2", is a message.
template <class Deep>
std::string text_of(std::string_view message, const Deep& deep, const std::string& path = {}) {
  std::string out;
  protozero::pbf_reader x{message.data(), message.size()};
  while (x.next()) {
    const auto at = path + (path.empty() ? "" : ".") + std::to_string(x.tag());
    out += (out.empty() ? "" : " ") + std::to_string(x.tag()) + ":";
    switch (x.wire_type()) {
    case protozero::pbf_wire_type::varint:
      out += std::to_string(x.get_int64());
      break;
    case protozero::pbf_wire_type::fixed64:
      out += std::to_string(x.get_fixed64());
      break;
    case protozero::pbf_wire_type::fixed32:
      out += std::to_string(x.get_fixed32());
      break;
    default: {
      const auto view = x.get_view();
      const std::string_view bytes{view.data(), view.size()};
      if (deep(at)) {
        out += "{" + text_of(bytes, deep, at) + "}";
        break;
      }
      for (const unsigned char c : bytes) {
        constexpr const char* digits = "0123456789abcdef";
        (c >= ' ' && c < 127) ? out += static_cast<char>(c)
                              : ((out += '%') += digits[c >> 4]) += digits[c & 15];
      }
    }
    }
  }
  return out;
}

std::string text_of_traces(std::string_view body) {
  return text_of(body, [](const std::string& path) {
    for (const char* x : {"1", "1.1", "1.2", "1.2.1", "1.2.2", "1.2.2.11", "1.2.2.15"})
      if (path == x) return true;
    // Attributes of the resource, a span and an event; their values; values of a list.
    for (const std::string x : {"1.1.1", "1.2.2.9", "1.2.2.11.3"})
      for (const char* below : {"", ".2", ".2.5", ".2.5.1"})
        if (path == x + below) return true;
    return false;
  });
}

} // namespace

TEST_CASE("spans are written in the binary encoding of OTLP") {
  using std::chrono::system_clock;
  using time = system_clock::time_point;
  span x;
  x.trace = trace_id_of(1, 2);
  x.id = span_id_of(3);
  x.parent = span_id_of(4);
  x.parent_is_remote = true;
  x.state = "a=b";
  x.kind = span_kind::server;
  x.name = "chat m";
  x.from = time{std::chrono::milliseconds{1'700'000'000'001}};
  x.to = time{std::chrono::milliseconds{1'700'000'000'002}};
  x.attributes = {{"b", true},
                  {"i", int64_t{-7}},
                  {"d", 0.5},
                  {"s", std::string{"\xff"}},
                  {"l", std::vector<std::string>{"p", "q"}}};
  x.events = {{"first", x.to, {{"n", int64_t{1}}}}};
  x.failure = "why";
  span child;
  child.trace = x.trace;
  child.id = span_id_of(5);
  const std::vector<span> all{x, child};
  const std::string zeros = "%00%00%00%00%00%00%00";
  const auto trace = zeros + "%01" + zeros + "%02";
  CHECK(text_of_traces(otlp_traces({{{"service.name", std::string{"s"}}}, "lamella", "1"}, all))
        == "1:{1:{1:{1:service.name 2:{1:s}}} 2:{1:{1:lamella 2:1} 2:{1:" + trace + " 2:" + zeros
               + "%03 3:a=b 4:" + zeros
               + "%04 5:chat m 6:2 7:1700000000001000000 8:1700000000002000000"
                 " 9:{1:b 2:{2:1}} 9:{1:i 2:{3:-7}} 9:{1:d 2:{4:4602678819172646912}}"
                 " 9:{1:s 2:{1:%ef%bf%bd}} 9:{1:l 2:{5:{1:{1:p} 1:{1:q}}}}"
                 " 11:{1:1700000000002000000 2:first 3:{1:n 2:{3:1}}} 15:{2:why 3:2} 16:769} 2:{1:"
               + trace + " 2:" + zeros + "%05 5: 6:1 7:0 8:0 16:257}}}");
}

TEST_CASE("a collector may say that it took only some of the spans") {
  const auto rejected = [](const char* bytes, size_t size) {
    return otlp_rejected(std::string_view{bytes, size});
  };
  CHECK(rejected("", 0) == 0);
  CHECK(rejected("{}", 2) == 0);                        // of another encoding
  CHECK(rejected("\x0a\x00", 2) == 0);                  // a partial success that says nothing
  CHECK(rejected("\x0a\x02\x08\x03", 4) == 3);          // rejected_spans
  CHECK(rejected("\x0a\x05\x08\x04\x12\x01x", 7) == 4); // and a message
  CHECK(rejected("\x0a\x05\x12\x01x\x08\x04", 7) == 4); // in the other order
  CHECK(rejected("\x0a\x7f\x08\x03", 4) == 0);          // shorter than it says
  CHECK(rejected("\x0a\x0b\x08\xfc\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13) == 0); // negative
}
