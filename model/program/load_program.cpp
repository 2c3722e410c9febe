#include "model/files/open_checkpoint.hpp"
#include "model/program/architectures.hpp"
#include "model/program/load.hpp"
#include "model/program/splitter.hpp"

#include <algorithm>

namespace lamella::model {

const tensor_view& loaded_model::tensor(const weight_use& weight) const {
  return file->tensor(weight.name, weight.rows_of_tensor(), weight.inputs);
}

loaded_model load_program(const std::filesystem::path& path) {
  loaded_model result;
  result.file = open_checkpoint(path);
  const auto* known = find_architecture(result.file->architecture());
  if (known == nullptr)
    throw file_error{result.file->path(),
                     {},
                     "general.architecture",
                     "'" + result.file->architecture() + "' is not supported; known are "
                         + architecture_names()};
  const auto spec = known->read_spec(*result.file);
  auto graph = known->trace(spec);
  // Tensors first: a file that claims a thousand layers and has none is not worth cutting.
  for (const auto& weight : graph.weights) result.tensor(weight);
  for (const auto& node : graph.nodes) {
    if (!takes_vector(node.kind)) continue;
    const auto& vector = result.tensor(graph.weights[node.weight]);
    if (block_elements(vector.type) != 1)
      throw file_error{result.file->path(),
                       {},
                       vector.name,
                       "is a norm or a bias of type " + std::string{to_string(vector.type)}
                           + "; they must be f32, f16 or bf16"};
  }
  const auto slices = split(graph);
  result.program = std::make_shared<model_program>(make_program(spec, std::move(graph), slices));
  std::vector<std::string_view> expected{"rope_freqs.weight", "rope_factors_long.weight",
                                         "rope_factors_short.weight"};
  for (const auto& weight : result.program->graph.weights) expected.push_back(weight.name);
  std::sort(expected.begin(), expected.end());
  result.file->refuse_others(expected);
  return result;
}

} // namespace lamella::model
