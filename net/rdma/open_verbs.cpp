#include "net/rdma/open_verbs.hpp"

#if defined(LAMELLA_HAS_VERBS)

#include "base/errno_text.hpp"
#include "net/rdma/verbs_queue.hpp"
#if defined(LAMELLA_HAS_MLX5DV)
#include "net/rdma/mlx5_pair.hpp"
#endif

#include <cerrno>

namespace lamella::net {

namespace {

class port_device final : public verbs_device {
public:
  explicit port_device(verbs_port port)
      : port_{std::make_shared<const verbs_port>(std::move(port))}, name_{port_->name()} {}
  const std::string& name() const override { return name_; }
  std::unique_ptr<verbs_queue> make_queue(const verbs_memory& memory, uint32_t depth) override {
    return std::make_unique<queue_pair>(port_, memory, depth);
  }
  std::unique_ptr<stream_queue> make_stream_queue(const verbs_memory& memory,
                                                  std::byte* place) override {
#if defined(LAMELLA_HAS_MLX5DV)
    return std::make_unique<mlx5_pair>(port_, memory, place);
#else
    return verbs_device::make_stream_queue(memory, place);
#endif
  }

private:
  std::shared_ptr<const verbs_port> port_;
  std::string name_;
};

/// Goes through the adapters until `use` wants no more. The reason when there is none.
template <class Use> std::string for_each_device(const Use& use) {
  const auto& lib = the_verbs_library();
  if (lib.error) return *lib.error;
  int count = 0;
  auto** const list = lib.devices(&count);
  if (list == nullptr)
    return errno == ENOSYS
               ? std::string{"no RDMA in this kernel: no module of an adapter is loaded"}
               : "no RDMA device: " + errno_text();
  for (int i = 0; i < count; ++i)
    if (!use(list[i])) break;
  lib.free_devices(list);
  return count == 0 ? "no RDMA device" : "";
}

} // namespace

verbs_devices look_for_verbs() {
  verbs_devices found;
  found.trouble = for_each_device([&](ibv_device* device) {
    std::string trouble;
    const auto port = find_port(device, trouble);
    found.ports.push_back({port.context ? port.name() : port.device, trouble});
    return true;
  });
  return found;
}

std::shared_ptr<verbs_device> open_verbs(std::string& why) {
  std::shared_ptr<verbs_device> result;
  std::string seen;
  why = for_each_device([&](ibv_device* device) {
    std::string trouble;
    auto port = find_port(device, trouble);
    if (port.context) {
      result = std::make_shared<port_device>(std::move(port));
      return false;
    }
    seen += (seen.empty() ? "" : "; ") + port.device + ": " + trouble;
    return true;
  });
  if (!result && why.empty()) why = seen;
  return result;
}

} // namespace lamella::net

#else

namespace lamella::net {

namespace {
constexpr auto not_built = "this program was built without the headers of libibverbs-dev";
}

verbs_devices look_for_verbs() { return {not_built, {}}; }

std::shared_ptr<verbs_device> open_verbs(std::string& why) {
  why = not_built;
  return nullptr;
}

} // namespace lamella::net

#endif
