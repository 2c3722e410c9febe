#include "actors/gateway/status_text.hpp"

#include "actors/machine/sizing.hpp"
#include "actors/protocol/status.hpp"
#include "actors/protocol/work_reports.hpp"
#include "base/json_writer.hpp"

#include <cmath>

#include <unistd.h>

namespace lamella::actors {

namespace {

void write(json_writer& out, const restart_budget& x) {
  out.key("restarts")
      .begin_object()
      .member("used", x.used)
      .member("allowed", x.allowed)
      .member("window_s", x.window_s)
      .end_object();
}

void write(json_writer& out, const supervisor_status& x) {
  out.begin_object().member("name", x.name).member("strategy", x.strategy);
  write(out, x.restarts);
  out.key("children").begin_array();
  for (const auto& child : x.children) {
    out.begin_object()
        .member("name", child.name)
        .member("role", child.role)
        .member("count", child.count);
    write(out, child.restarts);
    out.end_object();
  }
  out.end_array().member("more", x.more).end_object();
}

/// A worker in its seat, with its peers.
void write_worker(json_writer& out, const worker_info& w) {
  out.begin_object()
      .member("name", w.name)
      .member("role", w.role)
      .member("seat", w.seat)
      .member("incarnation", w.incarnation)
      .member("pid", w.pid)
      .member("host", w.host)
      .member("state", w.state)
      .member("device", w.device)
      .member("slow", w.slow)
      .member("draining", w.draining)
      .member("part", w.part)
      .member("cell", w.cell)
      .member("trouble", w.trouble);
  out.key("busy");
  w.busy < 0 ? out.null() : out.value(std::round(w.busy * 1e3) / 1e3);
  out.key("peers").begin_array();
  for (const auto& peer : w.peers)
    out.begin_object()
        .member("seat", peer.seat)
        .member("transport", peer.transport)
        .member("rtt_us", peer.rtt_us)
        .member("bytes", peer.bytes)
        .end_object();
  out.end_array().end_object();
}

/// An empty seat.
void write_missing(json_writer& out, const worker_info& w) {
  out.begin_object()
      .member("role", w.role)
      .member("seat", w.seat)
      .member("incarnation", w.incarnation)
      .member("state", w.state)
      .member("trouble", w.trouble)
      .end_object();
}

void write(json_writer& out, const pool_info& pool) {
  out.begin_object()
      .member("name", pool.name)
      .member("members", pool.members)
      .member("partition", pool.partition)
      .key("slots")
      .begin_object()
      .member("free", pool.free)
      .member("used", pool.used - pool.orphan)
      .member("cached", pool.cached)
      .member("parity", pool.parity)
      .member("orphan", pool.orphan)
      .member("total", pool.slots)
      .end_object()
      .key("references")
      .begin_object()
      .member("counted", pool.references)
      .member("held", pool.held)
      .end_object();
  if (!pool.cells.empty()) {
    out.key("cells").begin_array();
    for (const auto& cell : pool.cells)
      out.begin_object()
          .member("name", cell.name)
          .member("members", cell.members)
          .member("partition", cell.partition)
          .member("used", cell.used)
          .member("total", cell.slots)
          .end_object();
    out.end_array();
  }
  out.end_object();
}

void write(json_writer& out, const time_info& x) {
  out.begin_object()
      .member("work", x.work)
      .member("cell", x.cell)
      .member("units", x.units)
      .member("seconds", x.seconds)
      .member("correction", x.correction)
      .member("samples", x.samples)
      .end_object();
}

} // namespace

std::string status_json(const system_status& x, uint64_t recovering) {
  json_writer out;
  out.begin_object().member("version", 1).key("epochs").begin_object();
  out.member("attention/" + x.pool, x.epoch);
  out.end_object().key("workers").begin_array();
  for (const auto& w : x.workers) write_worker(out, w);
  out.end_array().key("missing").begin_array();
  for (const auto& w : x.missing) write_missing(out, w);
  out.end_array().key("pools").begin_array();
  for (const auto& pool : x.pools) write(out, pool);
  out.end_array()
      .key("requests")
      .begin_object()
      .member("running", x.running)
      .member("waiting", x.waiting)
      .member("recovering", recovering)
      .end_object();
  out.key("gateway")
      .begin_object()
      .member("requests", x.requests)
      .member("host", host_name())
      .member("pid", static_cast<uint32_t>(getpid()))
      .end_object()
      .key("pipeline")
      .begin_object()
      .member("restarts", x.restarts)
      .member("rotates", x.pipeline.rotates)
      .member("batches", x.pipeline.batches)
      .end_object();
  out.key("times").begin_array();
  for (const auto& each : x.times) write(out, each);
  out.end_array();
  out.key("supervisors").begin_array();
  for (const auto& each : x.supervisors)
    if (!each.name.empty()) write(out, each); // one that did not answer in time is left out
  out.end_array().end_object();
  return out.take();
}

} // namespace lamella::actors
