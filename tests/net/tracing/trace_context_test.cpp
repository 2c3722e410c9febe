// The headers by which clients say to which trace a request belongs.
#include "net/tracing/trace_context.hpp"

#include <doctest/doctest.h>

using namespace lamella::net;

namespace {

const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736", parent = "00f067aa0ba902b7";
const std::string good = "00-" + trace + "-" + parent + "-01";

} // namespace

TEST_CASE("a traceparent is read, and its sampled flag") {
  const auto x = parse_traceparent(good);
  REQUIRE(x);
  CHECK(hex_of(x->trace) == trace);
  REQUIRE(x->parent);
  CHECK(hex_of(*x->parent) == parent);
  CHECK(x->sampled);
  CHECK_FALSE(parse_traceparent("00-" + trace + "-" + parent + "-00")->sampled);
  CHECK(parse_traceparent("00-" + trace + "-" + parent + "-ff")->sampled);
}

TEST_CASE("a traceparent of a later version is read as far as version 00 goes") {
  CHECK(parse_traceparent("cc-" + trace + "-" + parent + "-01"));
  CHECK(parse_traceparent("cc-" + trace + "-" + parent + "-01-what-comes-then"));
  CHECK_FALSE(parse_traceparent("cc-" + trace + "-" + parent + "-01.what"));
}

TEST_CASE("a malformed traceparent is none") {
  for (const auto& bad :
       {std::string{}, std::string{"00"}, good.substr(1), good + "0", good + "-01",
        "ff" + good.substr(2), "00-" + std::string(32, '0') + "-" + parent + "-01",
        "00-" + trace + "-" + std::string(16, '0') + "-01", "00-" + trace + "_" + parent + "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + parent + "-01",
        "00-" + trace + "-" + parent + "-0g", std::string(55, '-'), std::string(9000, 'a')}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_traceparent(bad));
    const auto x = read_trace_headers({{"traceparent", bad}, {"tracestate", "a=b"}});
    CHECK(x.malformed);
    CHECK_FALSE(x.context);
  }
  CHECK(read_trace_headers({{"traceparent", good}, {"Traceparent", good}}).malformed);
  CHECK_FALSE(read_trace_headers({}).malformed);
}

TEST_CASE(
    "the tracestate is kept as it came, all of its fields, and left out where it is too long") {
  const auto state = [](http_headers more) {
    more.add("traceparent", good);
    const auto x = read_trace_headers(more);
    REQUIRE(x.context);
    return x.context->state;
  };
  CHECK(state({}).empty());
  CHECK(state({{"tracestate", "a=1,b=2"}, {"TraceState", "c=3"}}) == "a=1,b=2,c=3");
  CHECK(state({{"tracestate", std::string(512, 'x')}}).size() == 512);
  CHECK(state({{"tracestate", std::string(513, 'x')}}).empty());
  CHECK(state({{"tracestate", "a=\x01"}}).empty());
  CHECK_FALSE(read_trace_headers({{"tracestate", "a=b"}}).context);
}

TEST_CASE("ids are never zero") {
  CHECK(hex_of(trace_id_of(0, 0)) == std::string(31, '0') + "1");
  CHECK(hex_of(span_id_of(0)) == std::string(15, '0') + "1");
  CHECK(hex_of(trace_id_of(0x0123456789abcdef, 2)) == "0123456789abcdef0000000000000002");
}
