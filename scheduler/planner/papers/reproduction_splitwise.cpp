#include "scheduler/planner/papers/reproduction.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lamella::scheduler {

namespace {

struct best_split {
  uint32_t prompt = 0, token = 0;
  double rate = 0;
};

/// The best of the splits of `machines` in steps of `step`.
best_split search(const machine_kind& prompt, const machine_kind& token, uint32_t machines,
                  uint32_t step, const machine_kind& reference, const request_trace& sizes,
                  const splitwise_options& o) {
  best_split best;
  for (uint32_t p = step; p < machines; p += step) {
    const auto rate =
        highest_rate({prompt, token, p, machines - p}, reference, sizes, o, reproduction_seed);
    // Rates are found within 1 %: more than that, or more prompt machines at no lower rate.
    if (rate > best.rate * 1.01 || rate >= best.rate) best = {p, machines - p, rate};
  }
  return best;
}

/// The fewest machines of the best split's proportions that reach `rate`.
best_split smallest(const machine_kind& prompt, const machine_kind& token, const best_split& shape,
                    double rate, const machine_kind& reference, const request_trace& sizes,
                    const splitwise_options& o) {
  const double whole = shape.prompt + shape.token;
  for (auto n = static_cast<uint32_t>(whole * rate / shape.rate * 0.85);; ++n) {
    const auto p = static_cast<uint32_t>(std::lround(n * shape.prompt / whole));
    if (keeps_slo({prompt, token, p, n - p}, reference, sizes, o, reproduction_seed, rate)
        || n > 4 * whole)
      return {p, n - p, rate};
  }
}

std::string split_text(const best_split& s) {
  return std::to_string(s.prompt) + " + " + std::to_string(s.token);
}

} // namespace

machine_kind dgx_machine(const constants& c, const std::vector<profile_row>& profile,
                         const std::string& model, const std::string& hardware) {
  const auto shape_name = model == "bloom-176b" ? "BLOOM-176B" : "LLaMA2-70B";
  const auto* shape = find_model(built_in_models(), shape_name);
  const bool a100 = hardware == "a100-80gb", capped = hardware == "h100-80gb-pcap";
  const auto* gpu = find_device(built_in_devices(), a100 ? "A100-80G-SXM" : "H100-SXM-splitwise");
  if (shape == nullptr || gpu == nullptr) throw std::logic_error{"a table lacks a row"};
  machine_kind k;
  k.name = a100 ? "DGX-A100" : capped ? "DGX-H100 capped" : "DGX-H100";
  k.times = profile_of(profile, model, hardware);
  k.kv_tokens = (8 * gpu->memory_bytes * c.dgx_memory_utilization - shape->weight_bytes)
                / shape->kv_bytes_per_token();
  k.kv_bytes_per_token = shape->kv_bytes_per_token();
  k.nic_bandwidth = 8 * gpu->nic_bandwidth;
  k.visible_transfer_s = (a100 ? c.dgx_a100_transfer_ms : c.dgx_h100_transfer_ms) * 1e-3;
  k.usd_per_hour = a100 ? c.dgx_a100_usd : c.dgx_h100_usd;
  // Power was measured on A100 devices only; others are taken to draw the same share of theirs.
  if (k.times.prompt_power.points() == 0) {
    const auto measured = profile_of(profile, model, "a100-80gb");
    k.times.prompt_power = measured.prompt_power;
    k.times.token_power = measured.token_power;
  }
  k.device_watts = 8 * gpu->watts;
  k.power_cap = capped ? c.dgx_h100_cap : 1;
  k.watts = a100 ? 1 : capped ? c.dgx_h100_capped_power : c.dgx_h100_power;
  return k;
}

namespace {

/// The machines, the traces, and how many machines equal 40 DGX-H100.
struct splitwise_setting {
  machine_kind a, h, capped;
  request_trace conv, code;
  uint32_t iso_power = 0, iso_cost = 0;
};

splitwise_setting setting_of(const constants& c, const std::vector<profile_row>& profile,
                             const trace_source& open) {
  const auto a = dgx_machine(c, profile, "bloom-176b", "a100-80gb"),
             h = dgx_machine(c, profile, "bloom-176b", "h100-80gb"),
             capped = dgx_machine(c, profile, "bloom-176b", "h100-80gb-pcap");
  auto conv = open("azure_conv_2023"), code = open("azure_code_2023");
  const auto iso_power = static_cast<uint32_t>(std::lround(40 * h.watts / a.watts)),
             iso_cost = static_cast<uint32_t>(std::lround(40 * h.usd_per_hour / a.usd_per_hour));
  return {a, h, capped, std::move(conv), std::move(code), iso_power, iso_cost};
}

/// The highest rates of the designs with one key of the profile, as they are found.
struct found_rates {
  best_split base_a, base_h, hh, hh_code, aa, aa_cost, hc, aa_same, hc_same;
};

class rate_search {
public:
  /// Rows go to `table`; with the key that has targets also bars to `r`.
  rate_search(const splitwise_setting& all, const constants& c, decode_key key, report& r,
              text_table& table)
      : all_{all}, target_{key == decode_key::released}, report_{r}, table_{table} {
    options_.key = key;
    options_.mixed_slowdown = c.mixed_slowdown;
  }

  found_rates run() const;
  void add_numbers(const found_rates& x) const;

private:
  best_split add(const std::string& design, const machine_kind& p, const machine_kind& t,
                 const best_split& s, const char* trace) const;

  const splitwise_setting& all_;
  splitwise_options options_;
  bool target_;
  report& report_;
  text_table& table_;
};

best_split rate_search::add(const std::string& design, const machine_kind& p, const machine_kind& t,
                            const best_split& s, const char* trace) const {
  const char* name = target_ ? "released" : "batch";
  const splitwise_design d{p, t, s.prompt, s.token};
  table_.rows.push_back({name, design, split_text(s), trace, fixed(s.rate, 1), fixed(d.watts(), 1),
                         fixed(d.usd_per_hour(), 0)});
  if (target_) report_.bars.emplace_back(design + " " + split_text(s) + " " + trace, s.rate);
  return s;
}

found_rates rate_search::run() const {
  const auto& [a, h, capped, conv, code, iso_power, iso_cost] = all_;
  const auto& o = options_;
  const auto mixed = [&a = a, &o](const machine_kind& k, uint32_t n, const request_trace& t) {
    return best_split{0, n, highest_rate({k, k, 0, n}, a, t, o, reproduction_seed)};
  };
  found_rates r;
  r.base_a = add("Baseline-A100", a, a, mixed(a, iso_power, conv), "conv");
  r.base_h = add("Baseline-H100", h, h, mixed(h, 40, conv), "conv");
  r.hh = add("Splitwise-HH", h, h, search(h, h, 40, 5, a, conv, o), "conv");
  r.hh_code = add("Splitwise-HH", h, h, search(h, h, 40, 5, a, code, o), "code");
  r.aa = add("Splitwise-AA, equal power", a, a, search(a, a, iso_power, 5, a, conv, o), "conv");
  r.aa_cost = add("Splitwise-AA, equal cost", a, a, search(a, a, iso_cost, 5, a, conv, o), "conv");
  r.hc = add("Splitwise-HHcap", h, capped, search(h, capped, 45, 5, a, conv, o), "conv");
  r.aa_same = add("Splitwise-AA, equal rate", a, a, smallest(a, a, r.aa, r.base_h.rate, a, conv, o),
                  "conv");
  r.hc_same = add("Splitwise-HHcap, equal rate", h, capped,
                  smallest(h, capped, r.hc, r.base_h.rate, a, conv, o), "conv");
  return r;
}

void rate_search::add_numbers(const found_rates& x) const {
  const auto& a = all_.a;
  const auto& h = all_.h;
  const auto& capped = all_.capped;
  const auto number = [&](const std::string& what, const char* paper, double ours, double low,
                          double high, const char* note = "") {
    report_.numbers.push_back({what + (target_ ? "" : " (batch key)"), paper, ours,
                               target_ ? low : -INFINITY, target_ ? high : INFINITY, "",
                               target_ ? note : "no target: C23"});
  };
  number("S-Q34 AA over Baseline-H100, equal cost", "1.4", x.aa_cost.rate / x.base_h.rate, 1.12,
         1.68);
  number("S-Q31 AA over Baseline-A100, equal power", "2.15", x.aa.rate / x.base_a.rate, 1.72, 2.58);
  number("S-Q29 best HH split for conv, prompt machines", "25", x.hh.prompt, 20, 30,
         "20 + 20 and 25 + 15 are within 1 %; the paper's 35 + 15 is a slip (C21)");
  number("S-Q28 best HH split for code, prompt machines", "35", x.hh_code.prompt, 30, 40,
         "30 + 10 and 35 + 5 are within 1 %");
  const auto aa_usd = splitwise_design{a, a, x.aa_same.prompt, x.aa_same.token}.usd_per_hour();
  number("S-Q36 cost of AA at Baseline-H100's rate, %", "-25",
         100 * (aa_usd / (40 * h.usd_per_hour) - 1), -30, -20);
  const auto hc_power = splitwise_design{h, capped, x.hc_same.prompt, x.hc_same.token}.watts();
  number("S-Q35 power of HHcap at Baseline-H100's rate, %", "-25",
         100 * (hc_power / (40 * h.watts) - 1), -30, -20);
}

/// How well the piece-wise linear profile predicts rows that it was not made of.
text_table profile_errors(const std::vector<profile_row>& profile) {
  text_table errors{"S-Q43 error of the piece-wise linear profile, mean of every fifth row, %",
                    {"machine", "prompt", "token"},
                    {}};
  for (const char* hardware : {"a100-80gb", "h100-80gb"}) {
    const auto e = check_profile(profile, "bloom-176b", hardware);
    errors.rows.push_back({hardware, fixed(e.prompt_percent, 2), fixed(e.token_percent, 2)});
  }
  return errors;
}

} // namespace

report reproduce_splitwise(const constants& c, const std::vector<profile_row>& profile,
                           const trace_source& open) {
  report r;
  r.title = "Splitwise: prompts and tokens on different machines";
  r.notes = {
      "BLOOM-176B on DGX machines, two minutes of Poisson arrivals with the sizes of the Azure "
      "traces, the highest rate that meets all nine SLOs (within 1 %). Power in units of a "
      "DGX-A100.",
      "C23: the released profile looks the time of a token up by the tokens of the profiled "
      "prompts, so that a batch of 64 decodes as fast as one prompt of 64 tokens: hardly "
      "slower than a single request. Looked up by the batch, which is what happens on a "
      "machine, the A100 misses its TBT limit (1.25 times) beyond some 24 requests and the "
      "gain of splitting over A100 machines is smaller."};
  const auto all = setting_of(c, profile, open);
  text_table rates{"Highest rate, requests per second",
                   {"key", "design", "machines", "trace", "rate", "power", "$/h"},
                   {}};
  for (const auto key : {decode_key::released, decode_key::batch}) {
    const rate_search one{all, c, key, r, rates};
    one.add_numbers(one.run());
  }
  r.bars_title = "Highest rate under the nine SLOs, requests per second (released key)";
  r.tables = {rates, profile_errors(profile)};
  return r;
}

} // namespace lamella::scheduler
