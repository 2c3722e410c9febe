#include "actors/gateway/trace_text.hpp"

#include "base/json_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

namespace lamella::actors {

namespace {

/// By gpu::step_kind.
constexpr std::string_view kinds[] = {"compute", "send", "wait", "sample", "other", "idle"};

/// Clocks of one host differ by this at most, whatever a round trip seems to tell.
constexpr int64_t same_clock_ns = 1'000'000;

/// Microseconds, to the nanosecond.
double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string_view kind_of(const traced_span& x) {
  return kinds[std::min<size_t>(x.kind, std::size(kinds) - 1)];
}

/// "slice 3", "iteration 17", "idle".
std::string title_of(const std::string& name, const traced_span& x) {
  const auto kind = kind_of(x);
  if (name == "iteration") return name + " " + std::to_string(x.iteration);
  if (kind == "idle" || kind == "other" || kind == "sample" || name == "wait") return name;
  return name + " " + std::to_string(x.number);
}

void write_name(json_writer& out, const char* what, size_t process, size_t thread,
                const std::string& name) {
  out.begin_object().member("name", what).member("ph", "M").member("pid", process);
  if (thread > 0) out.member("tid", thread);
  out.key("args").begin_object().member("name", name).end_object().end_object();
}

void write_order(json_writer& out, const char* what, size_t process, size_t thread) {
  out.begin_object().member("name", what).member("ph", "M").member("pid", process);
  if (thread > 0) out.member("tid", thread);
  out.key("args")
      .begin_object()
      .member("sort_index", thread > 0 ? thread : process)
      .end_object()
      .end_object();
}

void write_span(json_writer& out, const recorded_worker& w, const traced_span& x, size_t process,
                int64_t begin_ns) {
  const auto shift = begin_ns + (w.clock ? w.clock->offset_ns : 0);
  out.begin_object()
      .member("name", title_of(w.names.at(x.name), x))
      .member("cat", kind_of(x))
      .member("ph", "X")
      .member("ts", us(x.begin_ns - shift))
      .member("dur", us(x.end_ns - x.begin_ns))
      .member("pid", process)
      .member("tid", size_t{x.lane} + 1);
  if (kind_of(x) != "idle")
    out.key("args")
        .begin_object()
        .member("iteration", x.iteration)
        .member("number", x.number)
        .member("rows", x.rows)
        .member("busy_us", us(x.busy_ns))
        .end_object();
  out.end_object();
}

void write_events(json_writer& out, const recording& x) {
  out.begin_array();
  for (size_t i = 0; i < x.workers.size(); ++i) {
    const auto& w = x.workers[i];
    write_name(out, "process_name", i + 1, 0,
               w.who.seat + (w.who.part.empty() ? "" : " (" + w.who.part + ")"));
    write_order(out, "process_sort_index", i + 1, 0);
    for (size_t k = 0; k < w.lanes.size(); ++k) {
      write_name(out, "thread_name", i + 1, k + 1,
                 lane_words(w.lanes[k].stream) + ", " + w.lanes[k].device);
      write_order(out, "thread_sort_index", i + 1, k + 1);
    }
    for (const auto& span : w.spans) write_span(out, w, span, i + 1, x.begin_ns);
  }
  out.end_array();
}

uint64_t dropped_by(const recorded_worker& w) {
  uint64_t sum = 0;
  for (const auto& lane : w.lanes) sum += lane.dropped;
  return sum;
}

void write_worker(json_writer& out, const recorded_worker& w, size_t process) {
  out.begin_object()
      .member("process", process)
      .member("seat", w.who.seat)
      .member("worker", w.who.name)
      .member("part", w.who.part)
      .member("host", w.who.host)
      .member("pid", w.who.pid)
      .member("clock", w.clock ? w.clock->shared ? "shared" : "measured" : "unknown")
      .member("offset_us", us(w.clock ? w.clock->offset_ns : 0))
      .member("error_us", us(w.clock ? w.clock->error_ns : 0))
      .member("spans", w.spans.size())
      .member("dropped", dropped_by(w))
      .end_object();
}

} // namespace

clock_offset offset_by(const trace_begun& there, const std::string& own_host, int64_t asked_ns,
                       int64_t answered_ns) {
  clock_offset x;
  x.error_ns = std::max<int64_t>(answered_ns - asked_ns, 0) / 2;
  x.offset_ns = there.now_ns - (asked_ns + x.error_ns);
  x.shared = there.host == own_host && there.host != "unknown"
             && std::abs(x.offset_ns) <= x.error_ns + same_clock_ns;
  if (x.shared) x.offset_ns = x.error_ns = 0;
  return x;
}

void drop_told_twice(recording& x) {
  std::set<std::tuple<std::string, uint32_t, uint64_t>> told;
  for (auto& w : x.workers) {
    std::vector<uint32_t> place(w.lanes.size(), ~0u);
    std::vector<traced_lane> kept;
    for (size_t i = 0; i < w.lanes.size(); ++i) {
      if (!told.emplace(w.who.host, w.who.pid, w.lanes[i].number).second) continue;
      place[i] = static_cast<uint32_t>(kept.size());
      kept.push_back(w.lanes[i]);
    }
    std::erase_if(w.spans, [&](const auto& span) { return place.at(span.lane) == ~0u; });
    for (auto& span : w.spans) span.lane = place[span.lane];
    w.lanes = std::move(kept);
  }
}

std::string lane_words(const std::string& stream) {
  uint32_t n = 0;
  const auto* end = stream.data() + stream.size();
  const auto [at, error] = std::from_chars(stream.data(), end, n);
  if (error != std::errc{} || at != end) return stream;
  constexpr std::pair<uint32_t, const char*> ranges[] = {
      {scheduler::check_stream, "check "},      {scheduler::member_streams, "member "},
      {scheduler::offer_streams, "offer "},     {scheduler::move_streams, "move "},
      {scheduler::prefill_streams, "prefill "}, {0, "batch "}};
  for (const auto& [first, word] : ranges)
    if (n >= first) return word + std::to_string(n - first);
  return stream;
}

std::string trace_json(const recording& x) {
  json_writer out;
  out.begin_object().member("displayTimeUnit", "ms").key("otherData").begin_object();
  out.member("version", 1)
      .member("release", x.release)
      .member("model", x.model)
      .member("time", x.time)
      .member("seconds", x.seconds)
      .key("workers")
      .begin_array();
  for (size_t i = 0; i < x.workers.size(); ++i) write_worker(out, x.workers[i], i + 1);
  out.end_array().key("left_out").begin_array();
  for (const auto& w : x.workers)
    if (!w.trouble.empty())
      out.begin_object().member("seat", w.who.seat).member("reason", w.trouble).end_object();
  out.end_array().end_object().key("traceEvents");
  write_events(out, x);
  out.end_object();
  return out.take();
}

} // namespace lamella::actors
