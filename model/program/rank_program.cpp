// Tensor parallelism (L-M03): the program of one rank, and which models cannot be split so.
#include "model/program/architectures.hpp"
#include "model/program/load.hpp"
#include "model/program/splitter.hpp"

#include <stdexcept>

namespace lamella::model {

namespace {

void require_share(uint32_t count, const char* what, uint32_t ranks) {
  if (count % ranks == 0) return;
  throw std::invalid_argument("the model's " + std::to_string(count) + " " + what
                              + " cannot be shared by " + std::to_string(ranks) + " ranks");
}

} // namespace

std::shared_ptr<const model_program> rank_program(const loaded_model& model, uint32_t ranks,
                                                  query_order order) {
  if (ranks == 0) throw std::invalid_argument("a replica needs at least one rank");
  const auto& spec = model.program->spec;
  require_share(spec.heads, "heads", ranks);
  require_share(spec.kv_heads, "KV heads", ranks);
  require_share(spec.feed_forward, "feed-forward columns", ranks);
  auto graph = find_architecture(spec.architecture)->trace(spec, ranks);
  for (const auto& weight : graph.weights) {
    const auto block = block_elements(model.tensor(weight).type);
    const auto share = weight.inputs_of_rank(ranks);
    if (share % block != 0)
      throw std::invalid_argument(weight.name + ": " + std::to_string(share)
                                  + " inputs for each of " + std::to_string(ranks)
                                  + " ranks are not whole blocks of " + std::to_string(block));
  }
  const auto slices = split(graph);
  return std::make_shared<model_program>(make_program(spec, std::move(graph), slices, order));
}

} // namespace lamella::model
