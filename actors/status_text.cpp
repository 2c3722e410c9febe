#include "actors/status_text.hpp"

#include "model/json_writer.hpp"

namespace lamella::actors {

std::string status_json(const system_status& x) {
  model::json_writer out;
  out.begin_object().member("version", 1).key("epochs").begin_object();
  for (const auto& pool : x.pools) out.member("attention/" + pool.name, x.epoch);
  out.end_object().key("workers").begin_array();
  for (const auto& w : x.workers) {
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
        .member("part", w.part);
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
  out.end_array().key("missing").begin_array();
  for (const auto& w : x.missing)
    out.begin_object()
        .member("role", w.role)
        .member("seat", w.seat)
        .member("incarnation", w.incarnation)
        .end_object();
  out.end_array().key("pools").begin_array();
  for (const auto& pool : x.pools) {
    out.begin_object()
        .member("name", pool.name)
        .member("members", pool.members)
        .member("partition", pool.partition)
        .key("slots")
        .begin_object()
        .member("free", pool.slots - pool.used)
        .member("used", pool.used)
        .member("cached", 0)
        .member("parity", pool.parity)
        .member("orphan", 0)
        .end_object()
        .end_object();
  }
  out.end_array()
      .key("requests")
      .begin_object()
      .member("running", x.running)
      .member("waiting", x.waiting)
      .member("recovering", 0)
      .end_object();
  out.key("gateway")
      .begin_object()
      .member("requests", x.requests)
      .end_object()
      .key("pipeline")
      .begin_object()
      .member("restarts", x.restarts)
      .end_object()
      .end_object();
  return out.take();
}

} // namespace lamella::actors
