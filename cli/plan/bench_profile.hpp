/// Builds the profile for simulations from measurements of a running pipeline.
#pragma once

#include "actors/node/node.hpp"
#include "scheduler/planner/served_profile.hpp"

#include <string>
#include <vector>

namespace lamella::cli {

/// The profile without measurements: the properties of the service. Throws command_error 78 when
/// the service has more than one batch, prefill worker or slot table: a profile covers one.
scheduler::served_profile profile_facts(const actors::node& n, const config::settings& settings);

/// One batch concurrent with a prompt.
struct sharing_sample {
  uint32_t rows = 0;
  double context = 0;                      ///< of each, mean while the prompt ran
  double prompt = 0;                       ///< tokens of the prompt
  double alone_s = 0;                      ///< of an iteration
  double prompt_alone_s = 0, prompt_s = 0; ///< of the prompt, alone and concurrent with the batch
  double iterations = 0;                   ///< of the batch, concurrent with the prompt
};

/// The mean rates of all samples of each batch, context and prompt, within the range that a profile
/// may have.
std::vector<scheduler::sharing_point> rates_of(const std::vector<sharing_sample>& samples);

/// Throws command_error 1 when the file cannot be written.
void save_profile(const std::string& path, const scheduler::served_profile& profile);

/// The profile of a file. Throws command_error 66 or 65.
scheduler::served_profile load_served_profile(const std::string& path);

/// The differences between a running service and the measured one, one sentence each.
std::vector<std::string> differences(const scheduler::served_profile& measured,
                                     const scheduler::served_profile& running);

} // namespace lamella::cli
