// What a collector gets: the official parser reads the same in tests/client/traces_client.py.
#include "base/json.hpp"
#include "net/tracing/otlp.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using namespace lamella::net;

TEST_CASE("spans are written in the JSON encoding of OTLP") {
  using std::chrono::system_clock;
  using time = system_clock::time_point;
  span x;
  x.trace = trace_id_of(1, 2);
  x.id = span_id_of(3);
  x.parent = span_id_of(4);
  x.parent_is_remote = true;
  x.state = "a=b";
  x.kind = span_kind::server;
  x.name = "chat \"m\"";
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
  CHECK(otlp_traces({{{"service.name", std::string{"s"}}}, "lamella", "1"}, all)
        == R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":)"
           R"({"stringValue":"s"}}]},"scopeSpans":[{"scope":{"name":"lamella","version":"1"},)"
           R"("spans":[{"traceId":"00000000000000010000000000000002","spanId":"0000000000000003",)"
           R"("parentSpanId":"0000000000000004","traceState":"a=b","flags":769,)"
           R"("name":"chat \"m\"","kind":2,"startTimeUnixNano":"1700000000001000000",)"
           R"("endTimeUnixNano":"1700000000002000000","attributes":[)"
           R"({"key":"b","value":{"boolValue":true}},{"key":"i","value":{"intValue":"-7"}},)"
           R"({"key":"d","value":{"doubleValue":0.5}},{"key":"s","value":{"stringValue":")"
           "\xef\xbf\xbd"
           R"("}},{"key":"l","value":{"arrayValue":{"values":[{"stringValue":"p"},)"
           R"({"stringValue":"q"}]}}}],"events":[{"timeUnixNano":"1700000000002000000",)"
           R"("name":"first","attributes":[{"key":"n","value":{"intValue":"1"}}]}],)"
           R"("status":{"message":"why","code":2}},{"traceId":"00000000000000010000000000000002",)"
           R"("spanId":"0000000000000005","flags":257,"name":"","kind":1,"startTimeUnixNano":"0",)"
           R"("endTimeUnixNano":"0"}]}]}]})");
}

TEST_CASE("a collector may say that it took only some of the spans") {
  CHECK(otlp_rejected("") == 0);
  CHECK(otlp_rejected("{}") == 0);
  CHECK(otlp_rejected("no JSON") == 0);
  CHECK(otlp_rejected(R"({"partialSuccess":{}})") == 0);
  CHECK(otlp_rejected(R"({"partialSuccess":{"rejectedSpans":"3"}})") == 3);
  CHECK(otlp_rejected(R"({"partialSuccess":{"rejectedSpans":4,"errorMessage":"x"}})") == 4);
  CHECK(otlp_rejected(R"({"partialSuccess":{"rejectedSpans":-4}})") == 0);
}
