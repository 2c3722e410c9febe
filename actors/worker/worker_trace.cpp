#include "actors/worker/worker_trace.hpp"

#include "actors/worker/worker_state.hpp"
#include "gpu/trace/step_trace.hpp"
#include "net/data_plane/peer_address.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace lamella::actors {

namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;

/// No more is copied at once, whatever somebody asks for.
constexpr uint32_t spans_most = 1u << 18;

int64_t ns(gpu::trace_clock::duration x) { return duration_cast<nanoseconds>(x).count(); }

/// Of all devices of this seat.
std::vector<std::string> devices_of(const worker_state& st) {
  std::vector<std::string> names;
  if (!st.device) return names;
  names.push_back(st.device->name());
  names.push_back(st.device->name() + "-kv"); // of a prefill worker with KV of its own
  for (const auto& x : st.other_devices) names.push_back(x->name());
  return names;
}

/// All of a recording, the newest `most` spans, in order of their begin.
trace_page copy_of(const worker_state& st, uint64_t id, uint32_t most) {
  trace_page all;
  std::map<std::string_view, uint32_t> names;
  auto lanes = gpu::traces().read(id, devices_of(st));
  std::ranges::sort(lanes, {}, [](const gpu::lane_record& x) { // streams are numbers
    return std::tuple{x.device, x.stream.size(), x.stream, x.number};
  });
  for (auto& lane : lanes) {
    const auto number = static_cast<uint32_t>(all.lanes.size());
    all.lanes.push_back({lane.number, lane.device, lane.stream, lane.dropped});
    for (const auto& x : lane.spans) {
      const auto name = names.try_emplace(x.label.name, names.size()).first->second;
      all.spans.push_back({ns(x.begin.time_since_epoch()), ns(x.end.time_since_epoch()), ns(x.busy),
                           x.label.iteration, x.label.number, x.label.rows, name, number,
                           static_cast<uint8_t>(x.label.kind)});
    }
  }
  all.names.resize(names.size());
  for (const auto& [name, place] : names) all.names[place] = name;
  std::ranges::sort(all.spans, [](const traced_span& a, const traced_span& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  const auto extra = all.spans.size() - std::min<size_t>(all.spans.size(), most);
  for (size_t i = 0; i < extra; ++i) ++all.lanes[all.spans[i].lane].dropped;
  all.spans.erase(all.spans.begin(), all.spans.begin() + static_cast<ptrdiff_t>(extra));
  all.total = all.spans.size();
  return all;
}

} // namespace

trace_begun clock_of_process() {
  return {ns(gpu::trace_clock::now().time_since_epoch()), net::host_identity()};
}

trace_begun begin_trace(worker_state& st, const trace_begin& x) {
  st.traced.reset();
  const auto length =
      std::min<std::chrono::milliseconds>(std::chrono::milliseconds{x.for_ms}, trace_longest);
  gpu::traces().start(x.id, gpu::trace_clock::now() + length);
  return clock_of_process();
}

trace_page page_of_trace(worker_state& st, const trace_ask& x) {
  if (!st.traced || st.traced->first != x.id)
    st.traced.emplace(x.id, copy_of(st, x.id, std::min(x.most, spans_most)));
  auto& all = st.traced->second;
  trace_page page{clock_of_process(), all.total, all.names, all.lanes, {}};
  const auto first = std::min<uint64_t>(x.first, all.spans.size());
  const auto last = std::min<uint64_t>(first + trace_page_spans, all.spans.size());
  page.spans.assign(all.spans.begin() + static_cast<ptrdiff_t>(first),
                    all.spans.begin() + static_cast<ptrdiff_t>(last));
  if (last == all.spans.size()) {
    st.traced.reset();
    gpu::traces().forget(x.id, devices_of(st));
  }
  return page;
}

} // namespace lamella::actors
