#include "net/rdma/fhbn_probe.hpp"

#include "base/errno_text.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lamella::net {

namespace {

constexpr size_t page_bytes = 4096;
constexpr size_t gpu_page_bytes = 65536; ///< what GPUDirect registers whole

/// Runs on the way out, whatever the way.
template <class F> class at_exit {
public:
  explicit at_exit(F f) : f_{std::move(f)} {}
  ~at_exit() { f_(); }
  at_exit(const at_exit&) = delete;
  at_exit& operator=(const at_exit&) = delete;

private:
  F f_;
};

std::string cuda_text(int code) { return "CUDA error " + std::to_string(code); }

/// A probe in progress. Each step returns whether it passed and notes why.
class prober {
public:
  explicit prober(const fhbn_library& library) : lib_{library} {}

  rdma_report run() {
    with_device();
    return std::move(report_);
  }

private:
  bool note(const char* name, bool passed, std::string reason) {
    report_.steps.push_back({name, passed, std::move(reason)});
    return passed;
  }
  void reach(rdma_tier tier) { report_.tier = std::max(report_.tier, tier); }

  std::string file(const std::string& path) const { return lib_.read(path).value_or(""); }
  std::string port(const std::string& device) const {
    return "/sys/class/infiniband/" + device + "/ports/1/";
  }

  /// What keeps a port from being used, or nothing.
  std::string port_trouble(const std::string& device) const {
    const auto state = file(port(device) + "state");
    if (state.find("ACTIVE") == std::string::npos)
      return "port 1 is " + (state.empty() ? "not readable" : state);
    if (file(port(device) + "link_layer") != "Ethernet") return {};
    constexpr int entries = 16; // routes of the first addresses; a table has up to 256
    for (int i = 0; i < entries; ++i)
      if (file(port(device) + "gid_attrs/types/" + std::to_string(i)) == "RoCE v2") return {};
    return "port 1 has no RoCE v2 address: give its network interface an IP address";
  }

  void with_device() {
    if (!note("libibverbs", !lib_.verbs_error, lib_.verbs_error.value_or("loaded"))) return;
    note("libmlx5", !lib_.mlx5_error, lib_.mlx5_error.value_or("loaded"));
    int count = 0;
    void** const list = lib_.devices(&count);
    if (!list || count == 0) {
      const auto why = list ? std::string{"no RDMA device"} : "no RDMA device: " + errno_text();
      if (list) lib_.free_devices(list);
      note("adapter", false, why);
      return;
    }
    const at_exit free_list{[&] { lib_.free_devices(list); }};
    void* chosen = nullptr;
    std::string seen;
    for (const bool want_mlx5 : {true, false})
      for (int i = 0; i < count && !chosen; ++i) {
        if (is_mlx5(list[i]) != want_mlx5) continue;
        const std::string name = lib_.device_name(list[i]);
        const auto trouble = port_trouble(name);
        seen += (seen.empty() ? "" : "; ") + name + ": " + (trouble.empty() ? "active" : trouble);
        if (!trouble.empty()) continue;
        chosen = list[i];
        report_.device = name;
      }
    if (!note("adapter", chosen != nullptr, seen)) return;
    with_context(chosen);
  }

  bool is_mlx5(void* device) const { return !lib_.mlx5_error && lib_.is_mlx5(device); }

  void with_context(void* device) {
    bool devx = false;
    void* context = nullptr;
    if (is_mlx5(device)) {
      context = lib_.open_devx(device);
      devx = context != nullptr;
      note("mlx5 objects", devx,
           devx ? "DEVX context opened"
                : "no DEVX context: " + errno_text() + "; needs CAP_NET_RAW and kernel 5.x");
    } else {
      note("mlx5 objects", false, report_.device + " is not an mlx5 adapter");
    }
    if (!context) context = lib_.open_plain(device);
    if (!note("open", context != nullptr, context ? report_.device : errno_text())) return;
    const at_exit close{[&] { lib_.close(context); }};
    void* const domain = lib_.allocate_domain(context);
    if (!note("protection domain", domain != nullptr, domain ? "allocated" : errno_text())) return;
    const at_exit free_domain{[&] { lib_.free_domain(domain); }};
    reach(rdma_tier::verbs_staged);
    with_gpu(context, domain, devx);
  }

  void with_gpu(void* context, void* domain, bool devx) {
    if (lib_.cuda_error) {
      note("GPU", false, *lib_.cuda_error);
      return;
    }
    int gpus = 0;
    const int failed = lib_.cuda_start(&gpus);
    if (!note("GPU", failed == cuda_ok && gpus > 0,
              failed ? cuda_text(failed) : std::to_string(gpus) + " found"))
      return;
    const at_exit stop{[&] { lib_.cuda_stop(); }};
    if (!registers_gpu_memory(domain) || !writes_are_ordered()) return;
    reach(rdma_tier::verbs_gpudirect);
    if (!devx) return;
    reach(rdma_tier::mlx5_proxy);
    if (maps_registers(context)) reach(rdma_tier::fhbn);
  }

  bool registers_gpu_memory(void* domain) {
    uint64_t memory = 0;
    if (const int failed = lib_.cuda_allocate(&memory, 2 * gpu_page_bytes))
      return note("GPU memory", false, cuda_text(failed));
    const at_exit free_memory{[&] { lib_.cuda_free(memory); }};
    const auto dma_buf = registers_by_dma_buf(domain, memory);
    if (dma_buf.empty()) return note("GPU memory", true, "registered by dma-buf");
    void* const region =
        lib_.register_memory(domain, reinterpret_cast<void*>(memory), gpu_page_bytes,
                             access_local_write | access_remote_write);
    if (region) {
      lib_.unregister(region);
      return note("GPU memory", true, "registered by peer memory (" + dma_buf + ")");
    }
    const auto peer = errno_text();
    const bool module = lib_.read("/sys/module/nvidia_peermem/version").has_value();
    return note("GPU memory", false,
                dma_buf + "; peer memory: " + peer + ", module nvidia_peermem is "
                    + (module ? "loaded" : "not loaded: modprobe nvidia_peermem"));
  }

  /// Why it does not work, or nothing.
  std::string registers_by_dma_buf(void* domain, uint64_t memory) {
    int supported = 0;
    if (lib_.cuda_attribute(&supported, cuda_attribute_dma_buf) != cuda_ok || !supported)
      return "no dma-buf: needs the open NVIDIA kernel modules and kernel 5.12";
    if (!lib_.register_dma_buf) return "no dma-buf: needs rdma-core 34";
    const auto aligned = (memory + gpu_page_bytes - 1) / gpu_page_bytes * gpu_page_bytes;
    int file = -1;
    if (const int failed = lib_.cuda_dma_buf(&file, aligned, gpu_page_bytes))
      return "no dma-buf: " + cuda_text(failed);
    const at_exit close_file{[&] { lib_.close_file(file); }};
    void* const region = lib_.register_dma_buf(domain, 0, gpu_page_bytes, aligned, file,
                                               access_local_write | access_remote_write);
    if (!region) return "dma-buf: " + errno_text();
    lib_.unregister(region);
    return {};
  }

  /// Else a receiver that polls could see the seqno before the payload, whoever posts.
  bool writes_are_ordered() {
    int ordering = 0;
    if (const int failed = lib_.cuda_attribute(&ordering, cuda_attribute_writes_ordering))
      return note("write ordering", false, cuda_text(failed));
    const bool enough = ordering >= cuda_ordering_owner;
    return note("write ordering", enough,
                "the GPU says " + std::to_string(ordering)
                    + (enough ? "" : ": writes from outside need a flush by the CPU"));
  }

  bool maps_registers(void* context) {
    auto* const page = lib_.allocate_page(context, register_page_blue_flame);
    if (!page) return note("register page", false, errno_text());
    const at_exit free_page{[&] { lib_.free_page(page); }};
    const int code =
        lib_.cuda_register(page->base_addr, page_bytes,
                           cuda_register_portable | cuda_register_mapped | cuda_register_io);
    const bool shared = code == cuda_already_registered; // another queue's page: it may stay
    if (code != cuda_ok && !shared) return note("register page", false, mapping_trouble(code));
    const at_exit unregister{[&] {
      if (!shared) lib_.cuda_unregister(page->base_addr);
    }};
    uint64_t address = 0;
    if (const int failed = lib_.cuda_device_address(&address, page->reg_addr))
      return note("register page", false, cuda_text(failed));
    return note("register page", true, shared ? "mapped, shared with another queue" : "mapped");
  }

  std::string mapping_trouble(int code) const {
    switch (code) {
    case cuda_not_permitted: {
      const auto params = file("/proc/driver/nvidia/params");
      const auto at = params.find("RegistryDwords:");
      const auto now = at == std::string::npos ? std::string{"RegistryDwords not readable"}
                                               : params.substr(at, params.find('\n', at) - at);
      return "not permitted: needs root, or options nvidia "
             "NVreg_RegistryDwords=\"PeerMappingOverride=1;\" (now: "
             + now + ")";
    }
    case cuda_not_supported:
      return "not supported by this kernel or driver for memory of a PCIe device";
    default:
      return cuda_text(code);
    }
  }

  const fhbn_library& lib_;
  rdma_report report_;
};

} // namespace

std::string_view name_of(rdma_tier tier) {
  switch (tier) {
  case rdma_tier::none:
    return "none";
  case rdma_tier::verbs_staged:
    return "verbs_staged";
  case rdma_tier::verbs_gpudirect:
    return "verbs_gpudirect";
  case rdma_tier::mlx5_proxy:
    return "mlx5_proxy";
  case rdma_tier::fhbn:
    return "fhbn";
  }
  return "none";
}

rdma_report probe_rdma(const fhbn_library& library) { return prober{library}.run(); }

std::string text_of(const rdma_report& report) {
  std::string text = "RDMA tier: " + std::string{name_of(report.tier)};
  if (!report.device.empty()) text += " on " + report.device;
  text += "\n";
  for (const auto& step : report.steps)
    text += (step.passed ? "  ok       " : "  missing  ") + step.name + ": " + step.reason + "\n";
  return text;
}

} // namespace lamella::net
