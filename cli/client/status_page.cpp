#include "cli/client/status_page.hpp"

#include "cli/client/table.hpp"

#include <fmt/format.h>

namespace lamella::cli {

namespace {

/// "live", or "live, slow, draining".
std::string state_of(const json_value& worker) {
  auto text = text_or(worker.find("state"), "-");
  for (const char* also : {"slow", "draining"}) {
    const auto* found = worker.find(also);
    const auto* yes = found == nullptr ? nullptr : found->get_if<bool>();
    if (yes != nullptr && *yes) text += std::string{", "} + also;
  }
  return text;
}

/// "shard 2"; "-" where it has none.
std::string part_of(const json_value& worker) {
  const auto part = text_or(worker.find("part"), ""), cell = text_or(worker.find("cell"), "");
  if (part.empty()) return "-";
  return cell.empty() ? part : part + " of " + cell;
}

/// "43 %" of the last seconds; "-" where it is not known.
std::string busy_of(const json_value& worker) {
  const auto share = number_or(worker.find("busy"), -1);
  return share < 0 ? "-" : fmt::format("{:.0f} %", share * 100);
}

/// Slots of a cell that are not in use; "-" from a service that does not tell.
std::string free_of(const json_value& cell) {
  const auto total = number_or(cell.find("total"), -1);
  return total < 0 ? "-" : fmt::format("{:.0f}", total - number_or(cell.find("used"), 0));
}

/// "pipeline: rotational, 3 batches"; nothing from a service that does not tell.
std::string pipeline_of(const json_value& status) {
  const auto* pipeline = status.find("pipeline");
  const auto* rotates = pipeline == nullptr ? nullptr : pipeline->find("rotates");
  if (rotates == nullptr) return "";
  const auto* yes = rotates->get_if<bool>();
  return fmt::format("pipeline: {}, batches: {}\n",
                     yes != nullptr && *yes ? "rotational" : "batches stay on their replicas",
                     count_of(*pipeline, {"batches"}));
}

} // namespace

std::string status_page(const json_value& status) {
  table workers{
      {"WORKER", "ROLE", "SEAT", "PART", "STATE", "BUSY", "INCARNATION", "PID", "DEVICE"}};
  for (const auto& w : items_of(status, "workers"))
    workers.add({text_or(w.find("name"), "-"), text_or(w.find("role"), "-"),
                 text_or(w.find("seat"), count_of(w, {"seat"})), part_of(w), state_of(w),
                 busy_of(w), count_of(w, {"incarnation"}), count_of(w, {"pid"}),
                 text_or(w.find("device"), "-")});
  std::string page = workers.text() + "\n";
  table links{{"FROM", "TO", "TIER", "RTT_US", "BYTES"}};
  for (const auto& w : items_of(status, "workers"))
    for (const auto& p : items_of(w, "peers"))
      links.add({text_or(w.find("seat"), "-"), text_or(p.find("seat"), "-"),
                 text_or(p.find("transport"), "-"), count_of(p, {"rtt_us"}),
                 count_of(p, {"bytes"})});
  if (!links.empty()) page += links.text() + "\n";
  table pools{
      {"POOL", "EPOCH", "MEMBERS", "PARTITION", "FREE", "USED", "CACHED", "PARITY", "ORPHAN"}};
  for (const auto& p : items_of(status, "pools")) {
    const auto name = text_or(p.find("name"), "-");
    pools.add({name, count_of(status, {"epochs", "attention/" + name}), count_of(p, {"members"}),
               text_or(p.find("partition"), "-"), count_of(p, {"slots", "free"}),
               count_of(p, {"slots", "used"}), count_of(p, {"slots", "cached"}),
               count_of(p, {"slots", "parity"}), count_of(p, {"slots", "orphan"})});
    for (const auto& cell : items_of(p, "cells"))
      pools.add({name + "/" + text_or(cell.find("name"), "-"), "-", count_of(cell, {"members"}),
                 text_or(cell.find("partition"), "-"), free_of(cell), count_of(cell, {"used"}), "-",
                 "-", "-"});
  }
  page += pools.text() + "\n";
  table times{{"WORK", "CELL", "SIZE", "SECONDS", "CORRECTION", "SAMPLES"}};
  for (const auto& t : items_of(status, "times")) {
    const auto cell = text_or(t.find("cell"), "");
    times.add({text_or(t.find("work"), "-"), cell.empty() ? "-" : cell,
               fmt::format("{:.1f}", number_or(t.find("units"), 0)),
               fmt::format("{:.6f}", number_or(t.find("seconds"), 0)),
               fmt::format("{:.2f}", number_or(t.find("correction"), 1)),
               count_of(t, {"samples"})});
  }
  if (!times.empty()) page += times.text() + "\n";
  page += pipeline_of(status);
  page += fmt::format("requests: {} running, {} waiting, {} recovering\n",
                      count_of(status, {"requests", "running"}),
                      count_of(status, {"requests", "waiting"}),
                      count_of(status, {"requests", "recovering"}));
  for (const char* list : {"workers", "missing"})
    for (const auto& w : items_of(status, list))
      if (const auto trouble = text_or(w.find("trouble"), ""); !trouble.empty())
        page += fmt::format("{} keeps failing: {}\n", text_or(w.find("seat"), "-"), trouble);
  return page;
}

} // namespace lamella::cli
