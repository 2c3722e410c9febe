/// The devices of this process: those of its host engine, and CUDA devices once opened.
#pragma once

#include "actors/protocol/worker_messages.hpp"
#include "config/settings.hpp"
#include "gpu/host/host_engine.hpp"
#include "model/spec.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lamella::actors {

/// Thread-safe. Host devices must not outlive the engine.
class device_set {
public:
  using opener = std::function<std::shared_ptr<gpu::device>(unsigned index)>;

  /// `open_cuda` as gpu::open_cuda_device.
  explicit device_set(std::shared_ptr<gpu::host_engine> engine, opener open_cuda = {});

  /// The device that a pool's option means: a host device of this name for `auto` and `host`, the
  /// one CUDA device for `cuda:N`, opened when first asked for. Throws std::runtime_error that says
  /// what is missing.
  std::shared_ptr<gpu::device> get(const std::string& option, const std::string& name);

  /// Those of ranks 1, 2, ... of a replica whose rank 0 is on `option` (L-M03). As get().
  std::vector<std::shared_ptr<gpu::device>> behind(const std::string& option, uint32_t ranks,
                                                   const std::string& name);

  /// The name of a device that was lost, if one was. No process can open one again that it has
  /// lost: another process must.
  std::optional<std::string> lost() const;

private:
  std::shared_ptr<gpu::host_engine> engine_;
  opener open_cuda_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<gpu::device>> cuda_; ///< by option
};

/// Names of the kernel sets that decide about bits: the model pool's, and the attention pool's
/// where it is another one.
std::string kernel_names(const std::string& model, const std::string& attention);

/// What decides about the bits of results besides the weights: kernels, device classes, types on
/// the wire and in the cache, sizes of the pieces that sums are cut into (decision 29). Two pools
/// on devices of one kind are named once.
std::string numerics_of(const config::settings& options, const gpu::device_numerics& model,
                        const gpu::device_numerics& attention);

/// The ranks of a tensor-parallel replica draw the same tokens, so their devices must compute the
/// same bits. Throws std::runtime_error that names one of another class than the first (L-M03).
void check_alike(const gpu::device& first, std::span<const std::shared_ptr<gpu::device>> others);

/// Their names, for logs and status.
std::string names_of(const gpu::device& first,
                     std::span<const std::shared_ptr<gpu::device>> others);

/// Why the device that an option means is not there, without opening it; empty where it is.
std::string why_no_device(const std::string& option);

/// The shape of the attention of one member, as far as a device may refuse it: under these
/// settings, or as a worker is told; `shared`: the member attends for its pool, which may share the
/// heads out.
gpu::attention_args attention_of(const config::settings& options, const model::model_spec& spec);
gpu::attention_args attention_of(const worker_terms& terms, bool shared);

/// Why a device cannot do such attention; empty when it can.
std::string refuse_attention(const gpu::device& device, const gpu::attention_args& shape);

} // namespace lamella::actors
