#include "scheduler/planner/cost/hardware.hpp"

#include "scheduler/planner/cost/constants.hpp"
#include "scheduler/planner/cost/csv.hpp"

#include <algorithm>
#include <optional>

namespace lamella::scheduler {

namespace {

template <class T> const T* find_named(const std::vector<T>& all, std::string_view name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const T& x) { return x.name == name; });
  return at == all.end() ? nullptr : &*at;
}

template <class T> void refuse_twins(const std::vector<T>& all, const csv_reader& csv) {
  if (all.back().name.empty()) throw table_error{csv.line(), "the name is empty"};
  if (find_named(all, all.back().name) != &all.back())
    throw table_error{csv.line(), "'" + all.back().name + "' is given twice"};
}

} // namespace

std::vector<device> read_devices(std::istream& in) {
  csv_reader csv{in};
  const auto name = csv.column("name"), kind = csv.column("kind"),
             tflops = csv.column("bf16_dense_tflops"), memory = csv.column("mem_gb"),
             bandwidth = csv.column("mem_bw_gbs"), watts = csv.column("tdp_w"),
             nic = csv.column("nic_gbps"), rent = csv.column("usd_per_hr"),
             purchase = csv.column("usd_purchase"), source = csv.column("source");
  const auto link = csv.find("link_gbs");
  const constants defaults;
  std::vector<device> all;
  while (csv.next()) {
    const auto optional = [&](size_t column, double most) {
      return csv.empty(column) ? 0.0 : csv.number(column, 0, most);
    };
    device d;
    d.name = csv.text(name);
    d.kind = csv.text(kind);
    d.flops = csv.number(tflops, 1e-3, 1e6) * 1e12;
    d.memory_bytes = csv.number(memory, 1e-3, 1e6) * 1e9;
    d.bandwidth = csv.number(bandwidth, 1e-3, 1e6) * 1e9;
    d.watts = optional(watts, 1e6);
    d.nic_bandwidth = optional(nic, 1e5) * 1e9 / 8;
    d.usd_per_hour = optional(rent, 1e6);
    d.usd_purchase = optional(purchase, 1e9);
    d.source = csv.text(source);
    d.link_bandwidth = link && !csv.empty(*link)      ? csv.number(*link, 1e-3, 1e5) * 1e9
                       : d.nic_bandwidth >= 200e9 / 8 ? defaults.default_link_gbs * 1e9
                                                      : defaults.host_link_gbs * 1e9;
    all.push_back(std::move(d));
    refuse_twins(all, csv);
  }
  if (all.empty()) throw table_error{"the table names no device"};
  return all;
}

const device* find_device(const std::vector<device>& all, std::string_view name) {
  return find_named(all, name);
}

std::vector<model_shape> read_models(std::istream& in) {
  csv_reader csv{in};
  const auto name = csv.column("name"), weights = csv.column("weight_gb"),
             layers = csv.column("layers"), hidden = csv.column("hidden"),
             heads = csv.column("heads"), kv_heads = csv.column("kv_heads"),
             head_dim = csv.column("head_dim"), source = csv.column("source");
  const auto weight_bits = csv.find("weight_bits"), kv_bits = csv.find("kv_bits");
  const auto bytes_of = [&](const std::optional<size_t>& column) {
    constexpr double least = 1, most = 32, usual = 16;
    return (column && !csv.empty(*column) ? csv.number(*column, least, most) : usual) / 8;
  };
  std::vector<model_shape> all;
  while (csv.next()) {
    model_shape m;
    m.name = csv.text(name);
    m.weight_bytes = csv.number(weights, 1e-4, 1e5) * 1e9;
    m.layers = static_cast<uint32_t>(csv.whole(layers, 1, 10'000));
    m.hidden = static_cast<uint32_t>(csv.whole(hidden, 1, 1'000'000));
    m.heads = static_cast<uint32_t>(csv.whole(heads, 1, 65'536));
    m.kv_heads = static_cast<uint32_t>(csv.whole(kv_heads, 1, m.heads));
    m.head_dim = static_cast<uint32_t>(csv.whole(head_dim, 1, 65'536));
    if (m.heads % m.kv_heads != 0)
      throw table_error{csv.line(), std::to_string(m.kv_heads) + " KV heads do not divide "
                                        + std::to_string(m.heads) + " heads"};
    m.weight_element_bytes = bytes_of(weight_bits);
    m.kv_element_bytes = bytes_of(kv_bits);
    m.source = csv.text(source);
    all.push_back(std::move(m));
    refuse_twins(all, csv);
  }
  if (all.empty()) throw table_error{"the table names no model"};
  return all;
}

const model_shape* find_model(const std::vector<model_shape>& all, std::string_view name) {
  return find_named(all, name);
}

} // namespace lamella::scheduler
