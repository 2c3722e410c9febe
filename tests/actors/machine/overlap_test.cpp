#include "actors/machine/overlap.hpp"

#include <doctest/doctest.h>

using namespace lamella;
using actors::why_no_overlap;
using config::placement;

namespace {

config::settings with(placement model, placement attention) {
  config::settings x;
  x.pools.model.placement = model;
  x.pools.attention.placement = attention;
  return x;
}

} // namespace

TEST_CASE("V-M17 batches overlap only where replicas and shards have processors of their own") {
  const auto here = why_no_overlap(with(placement::in_process, placement::in_process), 8);
  CHECK(here == "replicas and shards share the processors of this process");
  CHECK(why_no_overlap(with(placement::remote, placement::remote), 1).empty());
  CHECK(why_no_overlap(with(placement::in_process, placement::remote), 1).empty());
  CHECK_FALSE(why_no_overlap(with(placement::in_process, placement::local), 8).empty());
  auto children = with(placement::local, placement::local);
  CHECK(why_no_overlap(children, 4) == "replicas and shards have 8 threads on 4 processors");
  children.pools.model.threads = 3;
  children.pools.attention.threads = 1;
  CHECK(why_no_overlap(children, 4).empty());
  children.pools.attention.members = 2;
  CHECK_FALSE(why_no_overlap(children, 4).empty());
  auto devices = with(placement::in_process, placement::in_process);
  devices.pools.model.device = "cuda:0";
  CHECK(why_no_overlap(devices, 1).empty()); // attention is on the host
  devices.pools.attention.device = "cuda:0";
  CHECK(why_no_overlap(devices, 1) == "replicas and shards share cuda:0");
  devices.pools.attention.device = "cuda:1";
  CHECK(why_no_overlap(devices, 1).empty());
}
