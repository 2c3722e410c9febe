#include "actors/membership/membership_refusal.hpp"

#include "actors/protocol/join.hpp"
#include "base/printable.hpp"

namespace lamella::actors {

using scheduler::worker_role;

namespace {

/// Of a worker's own words about what it lacks.
constexpr size_t refusal_bytes_max = 512;

} // namespace

std::optional<std::string> refuse(membership_state& st, worker_role role, const worker_facts& x) {
  if (!x.refusal.empty()) return printable(x.refusal, refusal_bytes_max);
  auto wanted = st.config.wanted;
  auto& known = role == worker_role::attention ? st.attention : st.compute;
  const bool on_device = st.config.on_devices.contains(role);
  if (on_device && !x.kernels.starts_with("cuda"))
    return "the pool uses CUDA devices, the worker uses " + printable(x.device);
  if (on_device) wanted.kernels = known.kernels.empty() ? x.kernels : known.kernels;
  auto why = scheduler::refuse_worker(
      wanted, {x.version, x.kernels, x.shapes, x.model_digest, role != worker_role::attention});
  if (!why && on_device && known.kernels.empty()) known = {x.kernels, x.sizes};
  return why;
}

} // namespace lamella::actors
