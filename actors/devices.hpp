/// The devices of this process: those of its host engine, and CUDA devices once opened.
#pragma once

#include "config/settings.hpp"
#include "gpu/host_engine.hpp"
#include "model/spec.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace lamella::actors {

/// Thread-safe. Host devices must not outlive the engine.
class device_set {
public:
  explicit device_set(std::shared_ptr<gpu::host_engine> engine) : engine_{std::move(engine)} {}

  /// The device that a pool's option means: a host device of this name for `auto` and `host`, the
  /// one CUDA device for `cuda:N`, opened when first asked for. Throws std::runtime_error that says
  /// what is missing.
  std::shared_ptr<gpu::device> get(const std::string& option, const std::string& name);

private:
  std::shared_ptr<gpu::host_engine> engine_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<gpu::device>> cuda_; ///< by option
};

/// Names of the kernel sets that decide about bits: the model pool's, and the attention pool's
/// where it is another one.
std::string kernel_names(const gpu::operators& model, const gpu::operators& attention);

/// Why a device cannot do the attention of a model under these settings; empty when it can.
std::string refuse_attention(const gpu::device& device, const config::settings& options,
                             const model::model_spec& spec);

} // namespace lamella::actors
