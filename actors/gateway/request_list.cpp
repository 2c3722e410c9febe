#include "actors/gateway/request_list.hpp"

#include "base/json_writer.hpp"

#include <algorithm>

namespace lamella::actors {

namespace {

double seconds(std::chrono::steady_clock::duration x) {
  return std::max(0.0, std::chrono::duration<double>(x).count());
}

bool comes_first(const listed_request& a, const listed_request& b) {
  return a.paused != b.paused ? a.paused > b.paused : a.seconds > b.seconds;
}

} // namespace

std::vector<listed_request> requests_of(const gateway_state& st,
                                        std::chrono::steady_clock::time_point now) {
  std::vector<listed_request> all;
  all.reserve(st.requests.size());
  for (const auto& [addr, x] : st.requests) {
    const auto& note = *x.note;
    listed_request one;
    one.number = x.number;
    one.route = x.route;
    one.where = note.where;
    one.seconds = seconds(now - x.arrived);
    using clock = std::chrono::steady_clock;
    if (const int64_t since = note.paused_since_ns; since != 0)
      one.paused = seconds(now - clock::time_point{clock::duration{since}});
    one.prompt_tokens = note.prompt_tokens;
    one.generated = note.generated;
    one.recoveries = note.recoveries;
    one.id = x.name;
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<listed_request> most_urgent(std::vector<listed_request> all) {
  const auto kept = std::min(all.size(), requests_listed_max);
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept), all.end(),
                    comes_first);
  all.resize(kept);
  return all;
}

std::string requests_json(const std::vector<listed_request>& all) {
  json_writer out;
  out.begin_array();
  for (const auto& x : all)
    out.begin_object()
        .member("number", static_cast<uint64_t>(x.number))
        .member("id", x.id)
        .member("route", net::route_name(x.route))
        .member("state", name_of(x.where))
        .member("seconds", x.seconds)
        .member("paused_seconds", x.paused)
        .member("prompt_tokens", x.prompt_tokens)
        .member("generated_tokens", x.generated)
        .member("recoveries", x.recoveries)
        .end_object();
  return out.end_array().take();
}

} // namespace lamella::actors
