/// The profile of a running service, and the cost of its iterations from it (S-M23).
///
/// A profile is for one model on one machine under one configuration. Between measurements times
/// are joined by straight lines, as in Splitwise V-B; seconds throughout.
#pragma once

#include "scheduler/planner/cost/csv.hpp"
#include "scheduler/prefill_plan.hpp"

#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lamella::scheduler {

/// An iteration of `rows` requests with `context` tokens each, without concurrent prefill.
struct decode_point {
  double rows = 0, context = 0, seconds = 0;
  friend bool operator==(const decode_point&, const decode_point&) = default;
};

/// Prefill of a prompt without concurrent decoding, from the request to its first token.
struct prefill_point {
  double tokens = 0, seconds = 0;
  friend bool operator==(const prefill_point&, const prefill_point&) = default;
};

/// Speeds of prefill and decoding while a prompt runs concurrently with `rows` decoding requests
/// with `context` tokens each, as shares of their speeds alone. One engine that loses nothing makes
/// the two add up to 1, two devices to 2. The shares depend on the context and on the prompt's
/// length: streams of an engine take turns by the time they have used, and both have one for the
/// model and one for attention. The more even the time of one is divided over its two, the more of
/// the engine it gets.
struct sharing_point {
  double rows = 0, decode_rate = 0, prefill_rate = 0;
  double context = 0; ///< 0: not given, the same for all
  double prompt = 0;  ///< tokens of the prompt; 0: not given, the same for all
  friend bool operator==(const sharing_point&, const sharing_point&) = default;
};

/// The sizes that determine scheduling, as the service was configured.
struct served_limits {
  uint32_t slots = 0;          ///< of its slot table
  uint32_t window_slots = 0;   ///< reserved beyond a prompt, and whenever a request runs short
  uint32_t chunk_tokens = 0;   ///< of a prefill iteration
  uint32_t seats = 0;          ///< requests in its batch
  uint32_t context_tokens = 0; ///< of prompt and output together
  friend bool operator==(const served_limits&, const served_limits&) = default;
};

struct served_profile {
  std::string model, kernels;
  uint32_t threads = 0;
  served_limits limits;
  std::vector<decode_point> decode;
  std::vector<prefill_point> prefill;
  std::vector<sharing_point> sharing;
  friend bool operator==(const served_profile&, const served_profile&) = default;
};

/// Version of the table: its first row, so that a reader of another version says so at once.
constexpr uint32_t served_profile_version = 2;

/// Reads the table `what,rows,context,prompt,value`, one fact a row: `version`, `model`, `kernels`,
/// `threads`, the limits by their names, `decode_s` by rows and context, `prefill_s` by prompt,
/// `decode_rate` and `prefill_rate` by rows and, where they are told, context and prompt. Throws
/// table_error, with the line where one is to blame: another version, an unknown or repeated fact,
/// a number out of range, or something that is missing.
served_profile read_served_profile(std::istream& in);

/// The same table; reading it gives the same profile.
void write_served_profile(std::ostream& out, const served_profile& profile);

/// How many positions a token of these pieces attends to on average: those before its piece, and
/// half of the piece. 0 of none.
double mean_position(std::span<const prefill_piece> pieces);

/// The times of a profile as functions.
class served_cost {
public:
  /// Throws table_error when the profile has too few points.
  explicit served_cost(const served_profile& profile);

  /// One decode iteration, alone: `context` tokens of all `rows` together. O(points).
  double iteration_s(double rows, double context) const;

  /// One prefill iteration, alone: by its tokens, and by the positions that they attend to.
  double chunk_s(std::span<const prefill_piece> pieces) const;

  /// One launch with rows of sequences that decode, `context` tokens of all of them together, and
  /// pieces of prompts (S-M02): the weights are read once for both, so the pieces add what their
  /// tokens take beyond as many tokens as there are rows.
  double mixed_s(double rows, double context, std::span<const prefill_piece> pieces) const;

  /// Shares of their own speed while both run; `context` tokens of all `rows` together, `position`
  /// as of mean_position().
  double decode_rate(double rows, double context = 0, double position = 0) const;
  double prefill_rate(double rows, double context = 0, double position = 0) const;

  /// Whether an iteration is outside of the measured range, so that its time is extrapolated.
  bool beyond(double rows, double context) const;

private:
  using line = std::vector<std::pair<double, double>>;
  /// By the mean position of a prompt's tokens: by rows: by context per row.
  using rate_table = std::vector<std::pair<double, std::vector<std::pair<double, line>>>>;
  static double rate_of(const rate_table& rates, double rows, double context, double position);

  std::vector<std::pair<double, line>> decode_; ///< by rows: seconds by context per row
  line chunk_;                                  ///< seconds of the first chunk by its tokens
  double pair_s_ = 0; ///< per pair of a token and an earlier position that it attends to
  rate_table decode_rate_, prefill_rate_;
};

} // namespace lamella::scheduler
