#if defined(LAMELLA_HAS_MLX5DV)

#include "net/rdma/mlx5_library.hpp"

namespace lamella::net {

namespace {

mlx5_library load() {
  mlx5_library t;
  shared_library mlx5{"libmlx5.so.1"};
  t.is_supported = mlx5.symbol<bool(ibv_device*)>("mlx5dv_is_supported", "MLX5_1.8");
  t.look_inside = mlx5.symbol<int(mlx5dv_obj*, uint64_t)>("mlx5dv_init_obj", "MLX5_1.2");
  t.error = mlx5.error();
  return t;
}

} // namespace

const mlx5_library& the_mlx5_library() {
  static const mlx5_library table = load();
  return table;
}

} // namespace lamella::net

#endif
