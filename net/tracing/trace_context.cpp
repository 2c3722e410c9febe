#include "net/tracing/trace_context.hpp"

#include <algorithm>
#include <span>

namespace lamella::net {

namespace {

/// What the specification asks every participant to pass on at least.
constexpr size_t state_bytes_max = 512;

template <size_t N> std::string hex(const std::array<uint8_t, N>& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * N);
  for (const auto x : bytes) {
    text += digits[x >> 4];
    text += digits[x & 15];
  }
  return text;
}

void put(std::span<uint8_t> to, uint64_t word) {
  for (auto& x : to) {
    x = static_cast<uint8_t>(word >> 56);
    word <<= 8;
  }
}

/// The value of a lower-case digit; 16 of anything else.
uint8_t digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return 16;
}

/// False where the text has other characters than digits.
bool read_hex(std::string_view text, std::span<uint8_t> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    const auto high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high > 15 || low > 15) return false;
    to[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

template <class Id> bool is_zero(const Id& id) {
  return std::all_of(id.begin(), id.end(), [](uint8_t x) { return x == 0; });
}

/// All fields of that name, in their order, as one list.
std::string state_of(const http_headers& headers) {
  std::string state;
  for (const auto& [name, value] : headers) {
    if (!std::ranges::equal(name, std::string_view{"tracestate"},
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; })
        || value.empty())
      continue;
    if (!state.empty()) state += ',';
    state += value;
    if (state.size() > state_bytes_max) return {};
  }
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  return std::ranges::all_of(state, printable) ? state : std::string{};
}

} // namespace

std::string hex_of(const trace_id& id) { return hex(id); }
std::string hex_of(const span_id& id) { return hex(id); }

trace_id trace_id_of(uint64_t high, uint64_t low) {
  trace_id id{};
  put(std::span{id}.first(8), high);
  put(std::span{id}.last(8), high == 0 && low == 0 ? 1 : low);
  return id;
}

span_id span_id_of(uint64_t random) {
  span_id id{};
  put(id, random == 0 ? 1 : random);
  return id;
}

std::optional<trace_context> parse_traceparent(std::string_view text) {
  // version "-" trace-id "-" parent-id "-" flags; later versions may say more after that.
  constexpr size_t trace_at = 3, parent_at = 36, flags_at = 53, length = 55;
  if (text.size() < length || text[2] != '-' || text[parent_at - 1] != '-'
      || text[flags_at - 1] != '-')
    return {};
  std::array<uint8_t, 1> version{}, flags{};
  trace_context x;
  span_id parent{};
  if (!read_hex(text, version) || !read_hex(text.substr(trace_at), x.trace)
      || !read_hex(text.substr(parent_at), parent) || !read_hex(text.substr(flags_at), flags))
    return {};
  constexpr uint8_t no_version = 0xff;
  if (version[0] == no_version || is_zero(x.trace) || is_zero(parent)) return {};
  if (text.size() > length && (version[0] == 0 || text[length] != '-')) return {};
  x.parent = parent;
  x.sampled = (flags[0] & 1) != 0;
  return x;
}

trace_headers read_trace_headers(const http_headers& headers) {
  const auto count = headers.count("traceparent");
  if (count == 0) return {};
  trace_headers found;
  if (count == 1) found.context = parse_traceparent(headers.get("traceparent"));
  found.malformed = !found.context;
  if (found.context) found.context->state = state_of(headers);
  return found;
}

} // namespace lamella::net
