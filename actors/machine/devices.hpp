/// The devices of this process: those of its host engine, and CUDA devices once opened.
#pragma once

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

struct worker_terms;

/// Thread-safe. Host devices must not outlive the engine.
class device_set {
public:
  using opener = std::function<std::shared_ptr<gpu::device>(unsigned index)>;

  /// `open_cuda` as gpu::open_cuda_device.
  explicit device_set(std::shared_ptr<gpu::host_engine> engine, opener open_cuda = {});

  /// The device of a pool's option: a host device of this name for `auto` and `host`, the CUDA
  /// device for `cuda:N`, opened on first use. Throws std::runtime_error with the missing
  /// prerequisite.
  std::shared_ptr<gpu::device> get(const std::string& option, const std::string& name);

  /// Those of ranks 1, 2, ... of a replica whose rank 0 is on `option` (L-M03). As get().
  std::vector<std::shared_ptr<gpu::device>> behind(const std::string& option, uint32_t ranks,
                                                   const std::string& name);

  /// The name of a lost device, if any. A process cannot reopen a lost device: only a new process
  /// can.
  std::optional<std::string> lost() const;

private:
  std::shared_ptr<gpu::host_engine> engine_;
  opener open_cuda_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<gpu::device>> cuda_; ///< by option
};

/// Names of the kernel sets that determine the bits: the model pool's, and the attention pool's
/// where it differs.
std::string kernel_names(const std::string& model, const std::string& attention);

/// Properties that determine the bits of results besides the weights: kernels, device classes,
/// types on the wire and in the cache, sizes of the pieces of sums (decision 29). Two pools on
/// devices of one kind are listed once.
std::string numerics_of(const config::settings& options, const gpu::device_numerics& model,
                        const gpu::device_numerics& attention);

/// The ranks of a tensor-parallel replica sample the same tokens, so their devices must compute the
/// same bits. Throws std::runtime_error naming a device of another class than the first (L-M03).
void check_alike(const gpu::device& first, std::span<const std::shared_ptr<gpu::device>> others);

/// Their names, for logs and status.
std::string names_of(const gpu::device& first,
                     std::span<const std::shared_ptr<gpu::device>> others);

/// Why the device of an option is not available, without opening it; empty when it is.
std::string why_no_device(const std::string& option);

/// The shape of the attention of one member, as far as a device may reject it: from settings, or
/// from worker terms; `shared`: the member serves its pool, which may partition the heads.
gpu::attention_args attention_of(const config::settings& options, const model::model_spec& spec);
gpu::attention_args attention_of(const worker_terms& terms, bool shared);

/// Why a device does not support such attention; empty when it does.
std::string refuse_attention(const gpu::device& device, const gpu::attention_args& shape);

} // namespace lamella::actors
