#include "base/failpoint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <thread>

#include <unistd.h>

namespace lamella {

namespace {

struct place {
  std::string_view name;
  bool looks_for_token;
};

/// In the order of the enumeration.
constexpr std::array<place, 10> places{{{"worker.launch", false},
                                        {"worker.token", true},
                                        {"worker.epoch_open", false},
                                        {"shard.launch", false},
                                        {"shard.token", true},
                                        {"batch.commit", false},
                                        {"prefill.chunk", false},
                                        {"allocator.reserve", false},
                                        {"request.token", false},
                                        {"link.send", false}}};

enum class action : uint8_t { crash, hang, delay, error };
constexpr std::array<std::string_view, 4> actions{"crash", "hang", "delay", "error"};

struct setting {
  double probability = 0;
  action what = action::crash;
  uint32_t argument = 0;
  std::atomic<uint64_t> hits{0};
};

std::array<setting, places.size()> settings;
std::vector<std::string> texts;

/// A number in [0, 1) for the n-th hit of a place, the same in every run.
double draw(size_t where, uint64_t n) {
  uint64_t x = (n + 1) * 0x9e3779b97f4a7c15 ^ (where + 1) * 0xd1b54a32d192ed03;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ x >> 31) >> 11) * 0x1p-53;
}

/// Ends as a bad access would, whatever handles that signal.
[[noreturn]] void crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  _exit(128 + SIGSEGV);
}

template <class Number> bool read(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument{"'" + std::string{text} + "': " + why};
}

/// The part of `rest` before `mark`, which is taken off it.
std::string_view take_until(std::string_view& rest, char mark) {
  const auto at = rest.find(mark);
  const auto part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return part;
}

} // namespace

bool failpoints::strike(failpoint where) {
  const auto index = static_cast<size_t>(where);
  auto& x = settings[index];
  if (draw(index, x.hits.fetch_add(1, std::memory_order_relaxed)) >= x.probability) return false;
  switch (x.what) {
  case action::crash:
    crash();
  case action::hang:
    while (true) pause();
  case action::delay:
    std::this_thread::sleep_for(std::chrono::milliseconds{x.argument});
    return false;
  case action::error:
    break;
  }
  return true;
}

bool failpoints::strike_at(failpoint where, std::span<const uint32_t> tokens) {
  const auto wanted = settings[static_cast<size_t>(where)].argument;
  return std::find(tokens.begin(), tokens.end(), wanted) != tokens.end() && strike(where);
}

void failpoint_or_throw(failpoint where) {
  if (failpoint_hit(where))
    throw failpoint_error{"failpoint " + std::string{places[static_cast<size_t>(where)].name}};
}

void failpoint_or_throw(failpoint where, std::span<const uint32_t> tokens) {
  if (failpoint_hit(where, tokens))
    throw failpoint_error{"failpoint " + std::string{places[static_cast<size_t>(where)].name}};
}

void arm_failpoint(std::string_view text) {
  auto rest = text;
  const auto name = take_until(rest, '=');
  const auto found = std::ranges::find(places, name, &place::name);
  if (found == places.end()) refuse(text, "there is no failpoint '" + std::string{name} + "'");
  const auto index = static_cast<size_t>(found - places.begin());
  double probability = 0;
  if (!read(take_until(rest, ':'), probability) || !(probability > 0 && probability <= 1))
    refuse(text, "the probability must be a number above 0, at most 1");
  const auto what = std::ranges::find(actions, take_until(rest, ':'));
  if (what == actions.end()) refuse(text, "the action must be crash, hang, delay or error");
  const auto act = static_cast<action>(what - actions.begin());
  uint32_t argument = 0;
  constexpr uint32_t longest_delay_ms = 600'000;
  if (found->looks_for_token) {
    if (act == action::delay) refuse(text, "a failpoint that looks for a token cannot delay");
    if (!read(rest, argument)) refuse(text, "the argument must be the id of a token");
  } else if (act == action::delay) {
    if (!read(rest, argument) || argument == 0 || argument > longest_delay_ms)
      refuse(text, "the argument must be the milliseconds of the delay, 1 to 600000");
  } else if (!rest.empty()) {
    refuse(text, "this action takes no argument");
  }
  auto& x = settings[index];
  x.probability = probability;
  x.what = act;
  x.argument = argument;
  x.hits = 0;
  texts.emplace_back(text);
  failpoints::armed.fetch_or(1u << index);
}

const std::vector<std::string>& armed_failpoints() { return texts; }

std::string failpoint_names() {
  std::string all;
  for (const auto& x : places) all += (all.empty() ? "" : ", ") + std::string{x.name};
  return all;
}

void disarm_failpoints() {
  failpoints::armed = 0;
  texts.clear();
}

} // namespace lamella
