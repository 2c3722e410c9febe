#include "scheduler/planner/cost/profile.hpp"

#include <algorithm>
#include <cmath>

namespace lamella::scheduler {

piecewise_linear::piecewise_linear(std::vector<std::pair<double, double>> points) {
  if (points.empty()) throw table_error{"a profile without points"};
  std::map<double, std::vector<double>> by_x;
  for (const auto& [x, y] : points) by_x[x].push_back(y);
  for (auto& [x, values] : by_x) {
    std::sort(values.begin(), values.end());
    const auto n = values.size();
    points_.emplace_back(x, (values[(n - 1) / 2] + values[n / 2]) / 2);
  }
}

double piecewise_linear::operator()(double x) const {
  if (points_.size() == 1) return points_[0].second;
  auto right = std::upper_bound(points_.begin(), points_.end(), x,
                                [](double v, const auto& p) { return v < p.first; });
  if (right == points_.begin()) ++right;
  if (right == points_.end()) --right;
  const auto& [x0, y0] = *std::prev(right);
  const auto& [x1, y1] = *right;
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

std::vector<profile_row> read_profile_rows(std::istream& in) {
  csv_reader csv{in};
  const auto model = csv.column("model"), hardware = csv.column("hardware"),
             prompt = csv.column("prompt_size"), batch = csv.column("batch_size"),
             parallel = csv.column("tensor_parallel"), prompt_ms = csv.column("prompt_time"),
             token_ms = csv.column("token_time");
  const auto whole_ms = csv.find("e2e_time"), peak = csv.find("peak_power"),
             average = csv.find("average_power");
  std::vector<profile_row> rows;
  while (csv.next()) {
    const auto optional = [&](const std::optional<size_t>& column, double most) {
      return column && !csv.empty(*column) ? csv.number(*column, 0, most) : 0.0;
    };
    rows.push_back({csv.text(model), csv.text(hardware),
                    static_cast<uint32_t>(csv.whole(prompt, 1, 10'000'000)),
                    static_cast<uint32_t>(csv.whole(batch, 1, 1'000'000)),
                    static_cast<uint32_t>(csv.whole(parallel, 1, 4096)),
                    csv.number(prompt_ms, 0, 1e9) / 1e3, csv.number(token_ms, 0, 1e9) / 1e3,
                    optional(whole_ms, 1e9) / 1e3, optional(peak, 2), optional(average, 2)});
  }
  if (rows.empty()) throw table_error{"the profile has no rows"};
  return rows;
}

namespace {

machine_profile profile_from(const std::vector<const profile_row*>& rows) {
  // The peak of a run is in its prompt. The mean is that of decoding where the prompt is short.
  constexpr double short_prompt = 0.1;
  std::vector<std::pair<double, double>> prompt, released, batch, prompt_power, token_power;
  for (const auto* r : rows) {
    const double tokens = static_cast<double>(r->prompt_tokens) * r->batch;
    prompt.emplace_back(tokens, r->prompt_s);
    released.emplace_back(tokens, r->token_s);
    batch.emplace_back(r->batch, r->token_s);
    if (r->peak_power > 0) prompt_power.emplace_back(tokens, r->peak_power);
    if (r->average_power > 0 && r->prompt_s < short_prompt * r->whole_s)
      token_power.emplace_back(r->batch, r->average_power);
  }
  machine_profile p{
      piecewise_linear{prompt}, {}, {}, piecewise_linear{released}, piecewise_linear{batch}};
  if (!prompt_power.empty()) p.prompt_power = piecewise_linear{prompt_power};
  if (!token_power.empty()) p.token_power = piecewise_linear{token_power};
  return p;
}

} // namespace

machine_profile profile_of(const std::vector<profile_row>& rows, const std::string& model,
                           const std::string& hardware, uint32_t tensor_parallel) {
  std::vector<const profile_row*> mine;
  for (const auto& r : rows)
    if (r.model == model && r.hardware == hardware && r.tensor_parallel == tensor_parallel)
      mine.push_back(&r);
  if (mine.empty()) throw table_error{"the profile has no rows for " + model + " on " + hardware};
  return profile_from(mine);
}

profile_error check_profile(const std::vector<profile_row>& rows, const std::string& model,
                            const std::string& hardware) {
  std::vector<const profile_row*> train, test;
  size_t i = 0;
  for (const auto& r : rows) {
    if (r.model != model || r.hardware != hardware || r.tensor_parallel != 8) continue;
    (i++ % 5 == 4 ? test : train).push_back(&r);
  }
  if (train.empty() || test.empty())
    throw table_error{"too few rows for " + model + " on " + hardware};
  const auto p = profile_from(train);
  profile_error e;
  for (const auto* r : test) {
    const double tokens = static_cast<double>(r->prompt_tokens) * r->batch;
    e.prompt_percent += 100 * std::abs(p.prompt_s(tokens) / r->prompt_s - 1);
    e.token_percent += 100 * std::abs(p.token_released_s(tokens) / r->token_s - 1);
  }
  e.prompt_percent /= static_cast<double>(test.size());
  e.token_percent /= static_cast<double>(test.size());
  return e;
}

} // namespace lamella::scheduler
