/// libibverbs as a table of calls. Only sources of the verbs tier include this: it needs the
/// headers of libibverbs-dev, and the library only when the program runs.
///
/// Calls that are inline in the headers and go through a context (posting, polling) need no entry.
#pragma once

#include "base/shared_library.hpp"

#include <infiniband/verbs.h>

namespace lamella::net {

struct verbs_library {
  load_error error;

  ibv_device** (*devices)(int* count) = nullptr;
  void (*free_devices)(ibv_device** list) = nullptr;
  const char* (*device_name)(ibv_device* device) = nullptr;
  ibv_context* (*open)(ibv_device* device) = nullptr;
  int (*close)(ibv_context* context) = nullptr;
  int (*query_device)(ibv_context* context, ibv_device_attr* out) = nullptr;
  int (*query_port)(ibv_context* context, uint8_t port, ibv_port_attr* out) = nullptr;
  int (*query_gid)(ibv_context* context, uint8_t port, int index, ibv_gid* out) = nullptr;
  ibv_pd* (*allocate_domain)(ibv_context* context) = nullptr;
  int (*free_domain)(ibv_pd* domain) = nullptr;
  ibv_mr* (*register_memory)(ibv_pd* domain, void* base, size_t bytes, int access) = nullptr;
  /// Null where the library is older than dma-buf (rdma-core 34).
  ibv_mr* (*register_dma_buf)(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address,
                              int file, int access) = nullptr;
  int (*unregister)(ibv_mr* region) = nullptr;
  ibv_cq* (*make_completions)(ibv_context* context, int entries, void* of,
                              ibv_comp_channel* channel, int vector) = nullptr;
  int (*free_completions)(ibv_cq* completions) = nullptr;
  ibv_qp* (*make_queue)(ibv_pd* domain, ibv_qp_init_attr* of) = nullptr;
  int (*change_queue)(ibv_qp* queue, ibv_qp_attr* to, int mask) = nullptr;
  int (*free_queue)(ibv_qp* queue) = nullptr;
  const char* (*status_text)(ibv_wc_status status) = nullptr;
};

/// The table, loaded once. `error` tells why it is empty.
const verbs_library& the_verbs_library();

} // namespace lamella::net
