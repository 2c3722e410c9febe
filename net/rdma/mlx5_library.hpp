/// libmlx5 as a table of calls; as net/rdma/verbs_library.hpp, and as that for sources of the verbs
/// tier.
#pragma once

#include "base/shared_library.hpp"

#include <infiniband/mlx5dv.h>

namespace lamella::net {

struct mlx5_library {
  load_error error;

  bool (*is_supported)(ibv_device* device) = nullptr;
  int (*look_inside)(mlx5dv_obj* of, uint64_t kinds) = nullptr;
};

/// The table, loaded once. `error` tells why it is empty.
const mlx5_library& the_mlx5_library();

} // namespace lamella::net
