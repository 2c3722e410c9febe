/// A model in this process: opened, checked and, where a replica needs them, its weights packed.
#pragma once

#include "gpu/device.hpp"
#include "gpu/runners/weights.hpp"
#include "model/program/load.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lamella::actors {

/// Packs the weights for the device's kernels, in its memory, and releases the file's pages: of a
/// program of several ranks those of `rank`. `progress` may throw to abort. Throws file_error,
/// std::bad_alloc.
std::shared_ptr<const gpu::packed_weights>
pack_weights(const model::loaded_model& model, gpu::device& where,
             const std::function<void(uint64_t done, uint64_t total)>& progress, uint32_t rank = 0);

/// All properties of a model that determine the bits besides its weights, as readable text: two
/// processes with different texts cannot work together.
std::string shapes_text(const model::model_spec& spec, const std::string& wire,
                        const std::string& kv);

} // namespace lamella::actors
