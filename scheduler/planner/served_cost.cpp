#include "scheduler/planner/served_profile.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace lamella::scheduler {

namespace {

using line = std::vector<std::pair<double, double>>;

/// More work never takes less time: neighbours that say so are noise, and get their mean
/// (pool-adjacent-violators).
line non_decreasing(const line& points) {
  struct block {
    double sum = 0;
    size_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<block> blocks;
  for (const auto& [x, y] : points) {
    blocks.push_back({y, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      blocks[blocks.size() - 2].sum += blocks.back().sum;
      blocks[blocks.size() - 2].count += blocks.back().count;
      blocks.pop_back();
    }
  }
  line result;
  for (const auto& b : blocks)
    for (size_t i = 0; i < b.count; ++i) result.emplace_back(points[result.size()].first, b.mean());
  return result;
}

/// On the line through the two points that x lies between, or through the outermost two.
double on_line(const line& points, double x) {
  if (points.size() == 1) return points[0].second;
  auto right = std::upper_bound(points.begin(), points.end(), x,
                                [](double v, const auto& p) { return v < p.first; });
  if (right == points.begin()) ++right;
  if (right == points.end()) --right;
  const auto& [x0, y0] = *std::prev(right);
  const auto& [x1, y1] = *right;
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/// The time of some work on a line that never falls. Below its first point no less than a share of
/// that, so that no time is ever negative.
double time_on(const line& points, double x) {
  const auto& [x0, y0] = points.front();
  return x < x0 ? std::max(on_line(points, x), y0 * x / x0) : on_line(points, x);
}

/// A rate: constant beyond what was measured.
double rate_on(const line& points, double x) {
  return on_line(points, std::clamp(x, points.front().first, points.back().first));
}

/// Pairs of a token and an earlier position that it attends to.
double pairs_of(std::span<const prefill_piece> pieces) {
  double pairs = 0;
  for (const auto& x : pieces) pairs += x.tokens * (x.position + x.tokens / 2.0);
  return pairs;
}

double tokens_of(std::span<const prefill_piece> pieces) {
  double tokens = 0;
  for (const auto& x : pieces) tokens += x.tokens;
  return tokens;
}

} // namespace

double mean_position(std::span<const prefill_piece> pieces) {
  return pieces.empty() ? 0 : pairs_of(pieces) / tokens_of(pieces);
}

served_cost::served_cost(const served_profile& p) {
  std::map<double, std::map<double, double>> by_rows;
  for (const auto& x : p.decode) by_rows[x.rows][x.context] = x.seconds;
  for (const auto& [rows, points] : by_rows)
    decode_.emplace_back(rows, non_decreasing({points.begin(), points.end()}));
  std::map<double, double> prompts;
  for (const auto& x : p.prefill) prompts[x.tokens] = x.seconds;
  const double chunk = p.limits.chunk_tokens;
  for (const auto& [tokens, seconds] : prompts)
    if (tokens <= chunk) chunk_.emplace_back(tokens, seconds);
  std::map<double, std::map<double, std::map<double, const sharing_point*>>> rates;
  for (const auto& x : p.sharing) rates[x.prompt / 2][x.rows][x.context] = &x;
  for (const auto& [position, by_batch] : rates) {
    auto& decode = decode_rate_.emplace_back(position, rate_table::value_type::second_type{});
    auto& prefill = prefill_rate_.emplace_back(position, rate_table::value_type::second_type{});
    for (const auto& [rows, by_context] : by_batch) {
      auto& decode_line = decode.second.emplace_back(rows, line{}).second;
      auto& prefill_line = prefill.second.emplace_back(rows, line{}).second;
      for (const auto& [context, x] : by_context) {
        decode_line.emplace_back(context, x->decode_rate);
        prefill_line.emplace_back(context, x->prefill_rate);
      }
    }
  }
  if (decode_.empty() || rates.empty())
    throw table_error{"the profile has no times of decoding or no rates"};
  if (chunk_.empty())
    throw table_error{"the profile has no prompt of at most one chunk, "
                      + std::to_string(p.limits.chunk_tokens) + " tokens"};
  chunk_ = non_decreasing(chunk_);
  // What longer prompts take more than their chunks would at position 0, by the positions before
  // each chunk: least squares through the origin.
  double product = 0, square = 0;
  for (const auto& [tokens, seconds] : prompts) {
    double alone = 0, pairs = 0;
    for (double at = 0; at < tokens; at += chunk) {
      const auto count = std::min(chunk, tokens - at);
      alone += time_on(chunk_, count);
      pairs += count * at;
    }
    product += (seconds - alone) * pairs;
    square += pairs * pairs;
  }
  if (square > 0) pair_s_ = std::max(0.0, product / square);
}

double served_cost::iteration_s(double rows, double context) const {
  if (rows <= 0) return 0;
  const auto each = context / rows;
  line by_rows;
  for (const auto& [at, points] : decode_) by_rows.emplace_back(at, time_on(points, each));
  return time_on(non_decreasing(by_rows), rows);
}

double served_cost::chunk_s(std::span<const prefill_piece> pieces) const {
  if (pieces.empty()) return 0;
  const auto tokens = tokens_of(pieces);
  // The measured chunk is one prompt: its own tokens attend to half of each other.
  const auto whole = time_on(chunk_, tokens);
  return std::max(whole / 2, whole + pair_s_ * (pairs_of(pieces) - tokens * tokens / 2));
}

double served_cost::mixed_s(double rows, double context,
                            std::span<const prefill_piece> pieces) const {
  if (rows <= 0) return chunk_s(pieces);
  const auto tokens = tokens_of(pieces);
  const auto more = time_on(chunk_, rows + tokens) - time_on(chunk_, rows)
                    + pair_s_ * (pairs_of(pieces) - tokens * tokens / 2);
  return iteration_s(rows, context) + std::max(0.0, more);
}

double served_cost::rate_of(const rate_table& rates, double rows, double context, double position) {
  line by_position;
  for (const auto& [at_position, by_batch] : rates) {
    line by_rows;
    for (const auto& [at_rows, points] : by_batch)
      by_rows.emplace_back(at_rows, rate_on(points, context / std::max(1.0, rows)));
    by_position.emplace_back(at_position, rate_on(by_rows, rows));
  }
  return rate_on(by_position, position);
}

double served_cost::decode_rate(double rows, double context, double position) const {
  return rate_of(decode_rate_, rows, context, position);
}
double served_cost::prefill_rate(double rows, double context, double position) const {
  return rate_of(prefill_rate_, rows, context, position);
}

bool served_cost::beyond(double rows, double context) const {
  if (rows <= 0) return false;
  if (rows < decode_.front().first || rows > decode_.back().first) return true;
  const auto each = context / rows;
  // The nearest measured batch on either side that reaches as far is enough.
  return std::none_of(decode_.begin(), decode_.end(), [&](const auto& x) {
    return each >= x.second.front().first / 2 && each <= x.second.back().first;
  });
}

} // namespace lamella::scheduler
