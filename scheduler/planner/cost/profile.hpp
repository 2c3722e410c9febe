/// Times measured on machines, joined by straight lines (S-M23; Splitwise V-B).
#pragma once

#include "scheduler/planner/cost/csv.hpp"

#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// A function given at some points, linear between them and beyond the last two.
class piecewise_linear {
public:
  piecewise_linear() = default;
  /// The median of the values at each x; needs at least one point.
  explicit piecewise_linear(std::vector<std::pair<double, double>> points);
  double operator()(double x) const;
  size_t points() const { return points_.size(); }

private:
  std::vector<std::pair<double, double>> points_;
};

/// What the time of a token is looked up by: the tokens of the profiled batch's prompts, as in the
/// released simulator, where decoding hardly slows down with the batch; or its requests, which is
/// what happens physically (C23).
enum class decode_key : uint8_t { released, batch };

/// One machine type running one model.
struct machine_profile {
  piecewise_linear prompt_s; ///< by prompt tokens in the batch
  /// Power as a share of what the devices may draw, where it was measured (S-M28): of prompts by
  /// their tokens, of decoding by requests.
  piecewise_linear prompt_power, token_power;
  piecewise_linear token_released_s, token_batch_s;
  double token_s(double requests, decode_key key) const {
    return key == decode_key::released ? token_released_s(requests) : token_batch_s(requests);
  }
};

/// One measurement of Splitwise's table.
struct profile_row {
  std::string model, hardware;
  uint32_t prompt_tokens = 0, batch = 0, tensor_parallel = 0;
  double prompt_s = 0, token_s = 0;
  double whole_s = 0;                       ///< prompt and all tokens; 0 where it was not measured
  double peak_power = 0, average_power = 0; ///< shares of the devices' limit; 0: not measured
};

std::vector<profile_row> read_profile_rows(std::istream& in);

/// The profile of a model on eight devices of a machine; throws table_error when there are no rows.
machine_profile profile_of(const std::vector<profile_row>& rows, const std::string& model,
                           const std::string& hardware, uint32_t tensor_parallel = 8);

/// Mean absolute percentage errors of prompt and token time on every fifth row, predicted from the
/// other four (S-M23, S-Q43).
struct profile_error {
  double prompt_percent = 0, token_percent = 0;
};
profile_error check_profile(const std::vector<profile_row>& rows, const std::string& model,
                            const std::string& hardware);

} // namespace lamella::scheduler
