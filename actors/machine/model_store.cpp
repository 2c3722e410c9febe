#include "actors/machine/model_store.hpp"

#include <fmt/format.h>

namespace lamella::actors {

std::shared_ptr<const gpu::packed_weights>
pack_weights(const model::loaded_model& model, gpu::device& where,
             const std::function<void(uint64_t, uint64_t)>& progress, uint32_t rank) {
  auto weights = std::make_shared<const gpu::packed_weights>(
      *model.program,
      [&](const model::weight_use& w) -> const model::tensor_view& { return model.tensor(w); },
      where, progress, rank);
  model.file->check_intact();
  model.file->release_pages();
  return weights;
}

std::string shapes_text(const model::model_spec& x, const std::string& wire,
                        const std::string& kv) {
  return fmt::format("{} with {} layers, {} heads, {} KV heads of {}, hidden {}, vocabulary {}, "
                     "wire {}, KV {}",
                     x.architecture, x.layers, x.heads, x.kv_heads, x.head_dim, x.hidden,
                     x.vocabulary, wire, kv);
}

} // namespace lamella::actors
