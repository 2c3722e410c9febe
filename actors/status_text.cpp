#include "actors/status_text.hpp"

#include "model/json_writer.hpp"

#include <unistd.h>

namespace lamella::actors {

std::string status_json(const system_status& x) {
  model::json_writer out;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  out.begin_object().member("version", 1).key("epochs").begin_object();
  for (const auto& pool : x.pools) out.member("attention/" + pool.name, x.epoch);
  out.end_object().key("workers").begin_array();
  for (const auto& w : x.workers) {
    out.begin_object()
        .member("name", w.name)
        .member("role", w.role)
        .member("seat", w.seat)
        .member("incarnation", w.incarnation)
        .member("pid", getpid())
        .member("host", std::string_view{host})
        .member("state", w.state)
        .member("device", w.device);
    out.key("peers").begin_array().end_array().end_object();
  }
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
        .member("parity", 0)
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
      .end_object()
      .end_object();
  return out.take();
}

} // namespace lamella::actors
