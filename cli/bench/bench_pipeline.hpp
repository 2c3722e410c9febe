/// The pipeline as a benchmark drives it: prompts in, running sequences out, no HTTP.
#pragma once

#include "actors/node/node.hpp"
#include "actors/protocol/admission.hpp"
#include "actors/protocol/batches.hpp"
#include "actors/request/service.hpp"

#include <chrono>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace lamella::cli {

/// Counts tokens as they come and answers when all sequences have so many.
using collector_actor =
    caf::typed_actor<caf::replies_to<caf::get_atom, uint32_t, uint32_t>::with<std::vector<double>>,
                     caf::reacts_to<caf::reset_atom>>::extend_with<actors::decode_client_actor>;

/// Iterations and prompts of a pipeline that does nothing else. One thread; every call waits, at
/// most ten minutes. Throws std::runtime_error when the pipeline answers with an error.
class pipeline_driver {
public:
  explicit pipeline_driver(actors::node& n);
  /// Everything that runs leaves.
  ~pipeline_driver();
  pipeline_driver(const pipeline_driver&) = delete;
  pipeline_driver& operator=(const pipeline_driver&) = delete;

  /// Prefills a prompt of random tokens; returns the seconds it took. With `keep` it waits for
  /// join(), else it is over.
  double prefill(uint32_t tokens, bool keep);

  /// How likely each of these tokens but the first is after those before it; with the most likely
  /// one in its place.
  std::vector<actors::sampled_token> score(std::vector<actors::token_id> tokens);

  /// Everything prefilled so far starts to decode.
  void join();

  /// Ends sequences until `count` are left.
  void leave(size_t count);

  /// Seconds of each of the next `iterations` iterations of all that runs, after a warm-up.
  std::vector<double> measure(uint32_t iterations);

  /// Iterations that all that runs makes beside a prompt of `tokens`, in parts of iterations, and
  /// the seconds that the prompt takes: means over so many prompts, one after the other.
  struct mixture {
    double iterations = 0, seconds = 0;
  };
  mixture measure_beside(uint32_t tokens, uint32_t prompts);

  /// Tokens that the sequences have had since they began, on average.
  double generated() const { return static_cast<double>(generated_); }

  static constexpr uint32_t warm_up = 4; ///< iterations

private:
  template <class Answer, class Handle, class... Question>
  Answer ask(const Handle& whom, Question&&... question);
  std::vector<double> times_of(uint32_t iterations);
  std::pair<actors::admitted, actors::prefill> admit(std::vector<actors::token_id> tokens);
  void give_back(actors::sequence_id sequence);

  struct prefilled_sequence {
    actors::stream_id batch;
    actors::batch_join join;
  };
  actors::node& node_;
  actors::service_ptr server_;
  caf::scoped_actor self_;
  collector_actor collector_;
  std::mt19937_64 random_{42};
  uint64_t last_request_ = 1u << 20;
  uint64_t generated_ = 0;
  std::vector<prefilled_sequence> ready_;
  std::vector<std::pair<actors::stream_id, actors::sequence_id>> running_;
};

} // namespace lamella::cli
