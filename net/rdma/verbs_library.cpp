#if defined(LAMELLA_HAS_VERBS)

#include "net/rdma/verbs_library.hpp"

namespace lamella::net {

namespace {

verbs_library load() {
  verbs_library t;
  shared_library verbs{"libibverbs.so.1"};
  const auto find = [&]<class F>(F*& call, const char* name) {
    call = verbs.symbol<F>(name, "IBVERBS_1.1");
  };
  find(t.devices, "ibv_get_device_list");
  find(t.free_devices, "ibv_free_device_list");
  find(t.device_name, "ibv_get_device_name");
  find(t.open, "ibv_open_device");
  find(t.close, "ibv_close_device");
  find(t.query_device, "ibv_query_device");
  // Fills the fields of its first version; the rest of a zeroed structure stays zero.
  find(t.query_port, "ibv_query_port");
  find(t.query_gid, "ibv_query_gid");
  find(t.allocate_domain, "ibv_alloc_pd");
  find(t.free_domain, "ibv_dealloc_pd");
  find(t.register_memory, "ibv_reg_mr");
  t.register_dma_buf =
      verbs.optional_symbol<ibv_mr*(ibv_pd*, uint64_t, size_t, uint64_t, int, int)>(
          "ibv_reg_dmabuf_mr");
  find(t.unregister, "ibv_dereg_mr");
  find(t.make_completions, "ibv_create_cq");
  find(t.free_completions, "ibv_destroy_cq");
  find(t.make_queue, "ibv_create_qp");
  find(t.change_queue, "ibv_modify_qp");
  find(t.free_queue, "ibv_destroy_qp");
  find(t.status_text, "ibv_wc_status_str");
  // Where the kernel does not copy pinned pages for a child by itself, children go without them.
  if (auto* make_safe = verbs.optional_symbol<int()>("ibv_fork_init")) make_safe();
  t.error = verbs.error();
  return t;
}

} // namespace

const verbs_library& the_verbs_library() {
  static const verbs_library table = load();
  return table;
}

} // namespace lamella::net

#endif
