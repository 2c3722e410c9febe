// Every way in which a host can lack a part of FHBN, on a host made of functions. It counts what is
// opened: whatever fails, nothing may be left open behind a probe.
#include "net/rdma/fhbn_probe.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <set>

#if defined(LAMELLA_HAS_MLX5DV)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop
static_assert(sizeof(lamella::net::mlx5_register_page) == sizeof(mlx5dv_devx_uar));
static_assert(offsetof(lamella::net::mlx5_register_page, reg_addr)
              == offsetof(mlx5dv_devx_uar, reg_addr));
static_assert(offsetof(lamella::net::mlx5_register_page, base_addr)
              == offsetof(mlx5dv_devx_uar, base_addr));
static_assert(lamella::net::register_page_blue_flame == MLX5DV_UAR_ALLOC_TYPE_BF);
static_assert(MLX5DV_CONTEXT_FLAGS_DEVX == 1 && sizeof(mlx5dv_context_attr) == 16);
static_assert(int{IBV_ACCESS_LOCAL_WRITE} == lamella::net::access_local_write
              && int{IBV_ACCESS_REMOTE_WRITE} == lamella::net::access_remote_write);
#endif

using namespace lamella::net;

namespace {

struct fake_device {
  std::string name;
  bool mlx5;
};

/// A host on which everything works until something is taken away.
struct fake_host {
  std::vector<fake_device> devices{{"mlx5_0", true}};
  std::map<std::string, std::string> files;
  std::set<std::string> failing; ///< calls that fail with `code` or `error`
  int error = EPERM;
  int cuda_code = 999;
  int gpus = 1, dma_buf = 1, ordering = 100;
  std::multiset<std::string> open; ///< what was not given back
  std::vector<std::string> calls;
  std::vector<void*> list;
  mlx5_register_page page{};
  unsigned register_flags = 0;

  fake_host() { add_port("mlx5_0"); }

  void add_port(const std::string& name, const std::string& state = "4: ACTIVE",
                const std::string& layer = "Ethernet", const std::string& route = "RoCE v2") {
    const auto port = "/sys/class/infiniband/" + name + "/ports/1/";
    files[port + "state"] = state;
    files[port + "link_layer"] = layer;
    files[port + "gid_attrs/types/0"] = "IB/RoCE v1";
    files[port + "gid_attrs/types/3"] = route;
  }

  bool fails(const std::string& call) {
    calls.push_back(call);
    errno = error;
    return failing.contains(call);
  }
  template <class T> T* made(const std::string& what, T* value) {
    if (fails(what)) return nullptr;
    open.insert(what);
    return value;
  }
  int cuda(const std::string& what, bool opens) {
    if (fails(what)) return cuda_code;
    if (opens) open.insert(what);
    return cuda_ok;
  }
  void closed(const std::string& what) {
    REQUIRE(open.contains(what));
    open.erase(open.find(what));
  }

  fhbn_library table() {
    fhbn_library t;
    t.devices = [this](int* count) -> void** {
      list.clear();
      for (auto& d : devices) list.push_back(&d);
      *count = static_cast<int>(devices.size());
      list.push_back(nullptr);
      return made("devices", list.data());
    };
    t.free_devices = [this](void**) { closed("devices"); };
    t.device_name = [](void* d) { return static_cast<fake_device*>(d)->name.c_str(); };
    t.is_mlx5 = [](void* d) { return static_cast<fake_device*>(d)->mlx5; };
    t.open_devx = [this](void* d) {
      auto* context = made("devx", d);
      if (context) closed("devx"), open.insert("context");
      return context;
    };
    t.open_plain = [this](void* d) { return made("context", d); };
    t.close = [this](void*) { return closed("context"), 0; };
    t.allocate_domain = [this](void* c) { return made("domain", c); };
    t.free_domain = [this](void*) { return closed("domain"), 0; };
    t.register_memory = [this](void* d, void*, size_t, int) { return made("peer memory", d); };
    t.register_dma_buf = [this](void* d, uint64_t, size_t bytes, uint64_t address, int file, int) {
      CHECK(file == 77);
      CHECK(address % 65536 == 0);
      CHECK(bytes == 65536);
      auto* region = made("dma-buf region", d);
      if (region) closed("dma-buf region"), open.insert("peer memory");
      return region;
    };
    t.unregister = [this](void*) { return closed("peer memory"), 0; };
    t.allocate_page = [this](void*, uint32_t kind) {
      CHECK(kind == register_page_blue_flame);
      page.base_addr = &page;
      page.reg_addr = &page.page_id;
      return made("page", &page);
    };
    t.free_page = [this](mlx5_register_page*) { closed("page"); };
    t.cuda_start = [this](int* count) {
      *count = gpus;
      return cuda("cuda", gpus > 0);
    };
    t.cuda_stop = [this] { closed("cuda"); };
    t.cuda_attribute = [this](int* value, int which) {
      *value = which == cuda_attribute_dma_buf ? dma_buf : ordering;
      return cuda(which == cuda_attribute_dma_buf ? "dma-buf attribute" : "ordering attribute",
                  false);
    };
    t.cuda_allocate = [this](uint64_t* address, size_t) {
      *address = 0x7f0000001000;
      return cuda("memory", true);
    };
    t.cuda_free = [this](uint64_t) { return closed("memory"), 0; };
    t.cuda_dma_buf = [this](int* file, uint64_t, size_t) {
      *file = 77;
      return cuda("dma-buf file", true);
    };
    t.close_file = [this](int file) {
      CHECK(file == 77);
      closed("dma-buf file");
    };
    t.cuda_register = [this](void* base, size_t, unsigned flags) {
      CHECK(base == page.base_addr);
      register_flags = flags;
      return cuda("mapping", true);
    };
    t.cuda_unregister = [this](void*) { return closed("mapping"), 0; };
    t.cuda_device_address = [this](uint64_t* address, void* host) {
      CHECK(host == page.reg_addr);
      *address = 1;
      return cuda("device address", false);
    };
    t.read = [this](const std::string& path) -> std::optional<std::string> {
      const auto at = files.find(path);
      if (at == files.end()) return std::nullopt;
      return at->second;
    };
    return t;
  }

  rdma_report probe() {
    const auto report = probe_rdma(table());
    INFO(text_of(report));
    CHECK(open.empty());
    return report;
  }
};

/// The last step, which must have failed, speaks of `words`.
void check_refusal(const rdma_report& report, rdma_tier tier, const std::string& step,
                   const std::string& words) {
  INFO(text_of(report));
  CHECK(name_of(report.tier) == name_of(tier));
  REQUIRE_FALSE(report.steps.empty());
  const auto& last = report.steps.back();
  CHECK_FALSE(last.passed);
  CHECK(last.name == step);
  CHECK(last.reason.find(words) != std::string::npos);
}

} // namespace

TEST_CASE("fhbn: a host with every part reaches the highest tier and keeps nothing open") {
  fake_host host;
  const auto report = host.probe();
  CHECK(report.tier == rdma_tier::fhbn);
  CHECK(report.device == "mlx5_0");
  for (const auto& step : report.steps) CHECK(step.passed);
  CHECK(host.register_flags == 7u); // portable, mapped, memory of a device
}

TEST_CASE("fhbn: whichever call fails, a lower tier is told with a reason and all is closed") {
  fake_host whole;
  whole.probe();
  const std::set<std::string> calls(whole.calls.begin(), whole.calls.end());
  CHECK(calls.size() >= 12);
  for (const auto& call : calls) {
    CAPTURE(call);
    fake_host host;
    host.failing = {call};
    const auto report = host.probe();
    const bool other_way = call.starts_with("dma-buf"); // peer memory takes over
    CHECK((report.tier == rdma_tier::fhbn) == other_way);
    int refused = 0;
    for (const auto& step : report.steps) {
      refused += !step.passed;
      CHECK_FALSE(step.reason.empty());
    }
    CHECK(refused == (other_way ? 0 : 1));
  }
}

TEST_CASE("fhbn: missing libraries and adapters are told by name") {
  fake_host host;
  auto t = host.table();
  SUBCASE("libibverbs") {
    t.verbs_error = "libibverbs.so.1: cannot open";
    check_refusal(probe_rdma(t), rdma_tier::none, "libibverbs", "cannot open");
  }
  SUBCASE("no device") {
    host.devices.clear();
    check_refusal(host.probe(), rdma_tier::none, "adapter", "no RDMA device");
  }
  SUBCASE("no kernel support") {
    host.failing = {"devices"};
    host.error = ENOSYS;
    check_refusal(host.probe(), rdma_tier::none, "adapter", "not implemented");
  }
  SUBCASE("port down") {
    host.add_port("mlx5_0", "1: DOWN");
    check_refusal(host.probe(), rdma_tier::none, "adapter", "mlx5_0: port 1 is 1: DOWN");
  }
  SUBCASE("no RoCE v2 address") {
    host.add_port("mlx5_0", "4: ACTIVE", "Ethernet", "IB/RoCE v1");
    check_refusal(host.probe(), rdma_tier::none, "adapter", "IP address");
  }
  SUBCASE("InfiniBand needs no such address") {
    host.add_port("mlx5_0", "4: ACTIVE", "InfiniBand", "IB/RoCE v1");
    CHECK(host.probe().tier == rdma_tier::fhbn);
  }
  SUBCASE("libcuda") {
    t.cuda_error = "libcuda.so.1: cannot open";
    check_refusal(probe_rdma(t), rdma_tier::verbs_staged, "GPU", "libcuda");
  }
  SUBCASE("no GPU") {
    host.gpus = 0;
    check_refusal(host.probe(), rdma_tier::verbs_staged, "GPU", "0 found");
  }
}

TEST_CASE("fhbn: an mlx5 adapter with an active port is preferred, another one will do") {
  fake_host host;
  host.devices = {{"rxe0", false}, {"mlx5_1", true}, {"mlx5_0", true}};
  host.add_port("rxe0");
  host.add_port("mlx5_1", "1: DOWN");
  auto report = host.probe();
  CHECK(report.device == "mlx5_0");
  CHECK(report.tier == rdma_tier::fhbn);
  host.devices = {{"rxe0", false}};
  report = host.probe();
  CHECK(report.device == "rxe0");
  CHECK(report.tier == rdma_tier::verbs_gpudirect);
  auto t = host.table();
  t.mlx5_error = "libmlx5.so.1: cannot open";
  t.is_mlx5 = nullptr;
  CHECK(probe_rdma(t).tier == rdma_tier::verbs_gpudirect);
}

TEST_CASE("fhbn: without DEVX the CPU posts") {
  fake_host host;
  host.failing = {"devx"};
  const auto report = host.probe();
  CHECK(report.tier == rdma_tier::verbs_gpudirect);
  CHECK(text_of(report).find("CAP_NET_RAW") != std::string::npos);
}

TEST_CASE("fhbn: GPU memory that cannot be registered is told with both ways out") {
  fake_host host;
  host.error = EFAULT;
  host.dma_buf = 0;
  host.failing = {"peer memory"};
  check_refusal(host.probe(), rdma_tier::verbs_staged, "GPU memory", "open NVIDIA kernel modules");
  check_refusal(host.probe(), rdma_tier::verbs_staged, "GPU memory", "modprobe nvidia_peermem");
  host.files["/sys/module/nvidia_peermem/version"] = "1";
  check_refusal(host.probe(), rdma_tier::verbs_staged, "GPU memory", "is loaded");
  host.dma_buf = 1;
  auto t = host.table();
  t.register_dma_buf = nullptr;
  check_refusal(probe_rdma(t), rdma_tier::verbs_staged, "GPU memory", "rdma-core 34");
  CHECK(host.open.empty());
}

TEST_CASE("fhbn: a GPU whose memory needs flushes has frames staged by the CPU") {
  fake_host host;
  host.ordering = 0;
  check_refusal(host.probe(), rdma_tier::verbs_staged, "write ordering", "flush");
}

TEST_CASE("fhbn: a register page that CUDA may not map leaves ringing to a proxy") {
  fake_host host;
  host.failing = {"mapping"};
  host.files["/proc/driver/nvidia/params"] = "A: 1\nRegistryDwords: \"x=1\"\nB: 2\n";
  host.cuda_code = cuda_not_permitted;
  check_refusal(host.probe(), rdma_tier::mlx5_proxy, "register page", "PeerMappingOverride");
  check_refusal(host.probe(), rdma_tier::mlx5_proxy, "register page", "RegistryDwords: \"x=1\")");
  host.cuda_code = cuda_not_supported;
  check_refusal(host.probe(), rdma_tier::mlx5_proxy, "register page", "not supported");
  host.cuda_code = cuda_already_registered; // by another queue of this process
  CHECK(host.probe().tier == rdma_tier::fhbn);
}

TEST_CASE("fhbn: the real libraries are asked without harm, whatever this host has") {
  const auto library = load_fhbn_library();
  const auto report = probe_rdma(library);
  MESSAGE(text_of(report));
  REQUIRE_FALSE(report.steps.empty());
  CHECK(report.steps.front().passed == !library.verbs_error);
}
