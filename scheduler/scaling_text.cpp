#include "scheduler/scaling_text.hpp"

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"

#include <array>
#include <cmath>

namespace lamella::scheduler {

namespace {

using settings_type = scaling_settings;
constexpr double longest_s = 1e8, most_slots = 1e15;
constexpr uint32_t most_members = 65'536, most_queue = 1u << 30;

constexpr std::array<scaling_setting_row, 13> rows{{
    {"kv_high_ratio", &settings_type::kv_high, 0.01, 1},
    {"kv_low_ratio", &settings_type::kv_low, 0, 1},
    {"queue_high_prompts", &settings_type::queue_high, 0, 1e6},
    {"queue_age_high_seconds", &settings_type::queue_age_high, 0, longest_s},
    {"tbt_high_ratio", &settings_type::tbt_high, 0.01, 100},
    {"ttft_high_ratio", &settings_type::ttft_high, 0.01, 100},
    {"busy_high_ratio", &settings_type::busy_high, 0.01, 1},
    {"margin_ratio", &settings_type::margin, 0, 0.9},
    {"step_sizes", &settings_type::step, 1, 64},
    {"hold_up_seconds", &settings_type::hold_up, 0, longest_s},
    {"hold_down_seconds", &settings_type::hold_down, 0, longest_s},
    {"cool_up_seconds", &settings_type::cool_up, 0, longest_s},
    {"cool_down_seconds", &settings_type::cool_down, 0, longest_s},
}};

void write(json_writer& out, const pool_look& x) {
  out.begin_object();
  out.member("members", x.members).member("wanted", x.wanted);
  out.member("least", x.least).member("most", x.most).member("heads", x.heads);
  out.member("lower", x.lower);
  out.member("acts", x.acts).member("busy_ratio", x.busy).end_object();
}

pool_look read_pool(json_object_reader in) {
  pool_look x;
  const auto count = [&](const char* key, uint32_t& to) {
    to = in.optional<uint32_t>(key, {0, most_members}).value_or(to);
  };
  count("members", x.members);
  count("wanted", x.wanted);
  count("least", x.least);
  count("most", x.most);
  count("heads", x.heads);
  count("lower", x.lower);
  x.acts = in.optional<bool>("acts").value_or(x.acts);
  x.busy = in.optional<double>("busy_ratio", {-1, 1}).value_or(x.busy);
  return x;
}

scaling_look read_look(json_object_reader& in) {
  scaling_look x;
  const auto time = [&](const char* key, scaling_seconds& to) {
    to = scaling_seconds{in.optional<double>(key, {0, longest_s}).value_or(0)};
  };
  x.at = scaling_seconds{in.required<double>("at_seconds", {-1e15, 1e15})};
  for (const auto pool : scaled_pools)
    if (const auto* value = in.find(name_of(pool)))
      x.pools[pool] = read_pool({*value, name_of(pool), in});
  x.kv_used = in.optional<double>("kv_used_slots", {0, most_slots}).value_or(0);
  x.kv_wanted = in.optional<double>("kv_wanted_slots", {0, most_slots}).value_or(0);
  x.kv_slots = in.optional<double>("kv_slots", {0, most_slots}).value_or(0);
  x.queue = in.optional<uint32_t>("queue_prompts", {0, most_queue}).value_or(0);
  time("queue_age_seconds", x.queue_age);
  time("tbt_p99_seconds", x.tbt_p99);
  time("tbt_target_seconds", x.tbt_target);
  time("ttft_p99_seconds", x.ttft_p99);
  time("ttft_target_seconds", x.ttft_target);
  time("model_work_seconds", x.model_work);
  time("attention_work_seconds", x.attention_work);
  x.batches = in.optional<uint32_t>("batches", {0, most_members}).value_or(1);
  x.tokens_per_s = in.optional<double>("tokens_per_second", {0, most_slots}).value_or(0);
  return x;
}

scaling_settings read_settings(json_object_reader in) {
  scaling_settings x;
  for (const auto& row : rows)
    if (const auto value = in.optional<double>(row.name, {row.least, row.most}))
      set(x, row, *value);
  return x;
}

void refuse_unread(const json_object_reader& in) {
  const auto wrong = [](const std::string& key) {
    throw scaling_text_error{key + " is not a key of this line"};
  };
  for (const auto key : in.unread()) wrong(std::string{key});
  for (const auto& path : in.unread_within()) wrong(path);
}

} // namespace

std::span<const scaling_setting_row> scaling_setting_rows() { return rows; }

double value_of(const scaling_settings& settings, const scaling_setting_row& row) {
  return std::visit(
      [&](auto field) {
        if constexpr (std::is_same_v<decltype(field), scaling_seconds scaling_settings::*>)
          return (settings.*field).count();
        else
          return static_cast<double>(settings.*field);
      },
      row.field);
}

void set(scaling_settings& settings, const scaling_setting_row& row, double value) {
  std::visit(
      [&](auto field) {
        if constexpr (std::is_same_v<decltype(field), uint32_t scaling_settings::*>)
          settings.*field = static_cast<uint32_t>(std::lround(value));
        else
          settings.*field = std::decay_t<decltype(settings.*field)>{value};
      },
      row.field);
}

std::string text_of(const scaling_look& x) {
  json_writer out;
  out.begin_object().member("at_seconds", x.at.count());
  for (const auto pool : scaled_pools)
    if (x.pools[pool].exists()) write(out.key(name_of(pool)), x.pools[pool]);
  out.member("kv_used_slots", x.kv_used).member("kv_wanted_slots", x.kv_wanted);
  out.member("kv_slots", x.kv_slots);
  out.member("queue_prompts", x.queue).member("queue_age_seconds", x.queue_age.count());
  out.member("tbt_p99_seconds", x.tbt_p99.count());
  out.member("tbt_target_seconds", x.tbt_target.count());
  out.member("ttft_p99_seconds", x.ttft_p99.count());
  out.member("ttft_target_seconds", x.ttft_target.count());
  out.member("model_work_seconds", x.model_work.count());
  out.member("attention_work_seconds", x.attention_work.count());
  out.member("batches", x.batches).member("tokens_per_second", x.tokens_per_s);
  return out.end_object().take();
}

std::string text_of(const scaling_settings& settings) {
  json_writer out;
  out.begin_object().key("settings").begin_object();
  for (const auto& row : rows) out.member(row.name, value_of(settings, row));
  return out.end_object().end_object().take();
}

std::variant<scaling_look, scaling_settings> scaling_line_of(std::string_view line) {
  try {
    const auto value = parse_json(line);
    json_object_reader in{value};
    std::variant<scaling_look, scaling_settings> read;
    if (const auto* settings = in.find("settings"))
      read = read_settings({*settings, "settings", in});
    else
      read = read_look(in);
    refuse_unread(in);
    return read;
  } catch (const json_syntax_error& e) {
    throw scaling_text_error{e.what()};
  } catch (const json_field_error& e) {
    throw scaling_text_error{e.what()};
  }
}

} // namespace lamella::scheduler
