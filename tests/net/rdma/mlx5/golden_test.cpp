// The work requests we build are, byte for byte, what the vendor's own header builds and declares.
#include "net/rdma/mlx5/wqe.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>

#ifdef LAMELLA_HAS_MLX5DV
// The vendor's header is C and is not written for our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop
#endif

using namespace lamella::net::mlx5;

namespace {

template <class T> bool same(const T& theirs, const segment& ours) {
  static_assert(sizeof(T) <= sizeof ours);
  return std::memcmp(&theirs, &ours, sizeof theirs) == 0;
}

} // namespace

#ifdef LAMELLA_HAS_MLX5DV

static_assert(MLX5_SEND_WQE_BB == block_bytes && sizeof(mlx5_wqe_ctrl_seg) == segment_bytes
              && sizeof(mlx5_wqe_data_seg) == segment_bytes
              && sizeof(mlx5_wqe_raddr_seg) == segment_bytes
              && sizeof(mlx5_wqe_atomic_seg) == segment_bytes);
static_assert(int{MLX5_OPCODE_NOP} == op_nop && int{MLX5_OPCODE_RDMA_WRITE} == op_rdma_write
              && int{MLX5_OPCODE_RDMA_WRITE_IMM} == op_rdma_write_imm
              && int{MLX5_OPCODE_SEND} == op_send && int{MLX5_OPCODE_RDMA_READ} == op_rdma_read
              && int{MLX5_OPCODE_ATOMIC_FA} == op_fetch_add);
static_assert(int{MLX5_WQE_CTRL_CQ_UPDATE} == flag_completion
              && int{MLX5_WQE_CTRL_SOLICITED} == flag_solicited
              && int{MLX5_WQE_CTRL_FENCE} == flag_fence
              && int{MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE} == flag_small_fence);
static_assert(static_cast<uint32_t>(MLX5_INLINE_SEG) == inline_bit);
static_assert(MLX5_SND_DBR == 1 && MLX5_RCV_DBR == 0); // send_queue::record is word 1
static_assert(sizeof(mlx5_cqe64) == completion_bytes
              && offsetof(mlx5_cqe64, wqe_counter) == completion_word_at
              && offsetof(mlx5_cqe64, op_own) == completion_word_at + 3
              && offsetof(mlx5_err_cqe, syndrome) == syndrome_at);
static_assert(int{MLX5_CQE_REQ} == completion_done && int{MLX5_CQE_REQ_ERR} == completion_error
              && int{MLX5_CQE_INVALID} == completion_never);
static_assert(int{MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR} == syndrome_length
              && int{MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR} == syndrome_operation
              && int{MLX5_CQE_SYNDROME_LOCAL_PROT_ERR} == syndrome_local_protection
              && int{MLX5_CQE_SYNDROME_WR_FLUSH_ERR} == syndrome_flushed
              && int{MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR} == syndrome_remote_access
              && int{MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR} == syndrome_retry_exceeded
              && int{MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR} == syndrome_receiver_not_ready);

TEST_CASE("mlx5: control segments equal the vendor's, for every flag and around the wrap") {
  for (const uint64_t index : {0ull, 1ull, 0x1234ull, 0xffffull, 0x10000ull, 0x123456789ull})
    for (const uint32_t op : {op_nop, op_rdma_write, op_fetch_add})
      for (const uint32_t flags : {flag_none, flag_solicited, flag_completion, flag_fence})
        for (const uint32_t segments : {1u, 3u, 4u, 63u}) {
          mlx5_wqe_ctrl_seg theirs{};
          mlx5dv_set_ctrl_seg(&theirs, static_cast<uint16_t>(index), static_cast<uint8_t>(op), 0,
                              0xabcdef, static_cast<uint8_t>(flags), static_cast<uint8_t>(segments),
                              0, 0);
          CHECK(same(theirs, control_segment(op, index, 0xabcdef, segments, flags)));
        }
}

TEST_CASE("mlx5: data, address, atomic and inline segments equal the vendor's") {
  for (const uint64_t address : {0x123456789abcdef0ull, 1ull, ~0ull})
    for (const uint32_t key : {0x11223344u, 0u, ~0u}) {
      for (const uint32_t bytes : {1u, 4097u, 0x7fffffffu}) {
        mlx5_wqe_data_seg data{};
        mlx5dv_set_data_seg(&data, bytes, key, address);
        CHECK(same(data, data_segment({address, be32(key)}, bytes)));
      }
      const mlx5_wqe_raddr_seg remote{htobe64(address), htobe32(key), 0};
      CHECK(same(remote, address_segment({address, be32(key)})));
      const mlx5_wqe_atomic_seg atomic{htobe64(address), 0};
      CHECK(same(atomic, fetch_add_segment(address)));
      const auto carried = inline_word_segment(address);
      const mlx5_wqe_inl_data_seg header{htobe32(8 | MLX5_INLINE_SEG)};
      CHECK(same(header, carried));
      CHECK(std::memcmp(&carried.w[1], &address, sizeof address) == 0); // as it lies in memory
    }
}

TEST_CASE("mlx5: indices of completions are read where the vendor's structure has them") {
  mlx5_cqe64 theirs{};
  for (const uint16_t index : {uint16_t{0}, uint16_t{0x1234}, uint16_t{0xffff}})
    for (const uint32_t op : {completion_done, completion_error, completion_never}) {
      theirs.wqe_counter = htobe16(index);
      theirs.op_own = static_cast<uint8_t>(op << 4 | 1);
      uint32_t word;
      std::memcpy(&word, reinterpret_cast<const char*>(&theirs) + completion_word_at, sizeof word);
      CHECK(completion_index_of(word) == index);
      CHECK(completion_opcode_of(word) == op);
      CHECK(mlx5dv_get_cqe_opcode(&theirs) == op);
    }
}

#else

TEST_CASE("mlx5: L-M10 work requests equal the vendor's") {
  MESSAGE("skipped: infiniband/mlx5dv.h is missing (package libibverbs-dev)");
}

#endif

// A copy of the bytes, so that a change shows where the vendor's header is missing too.
TEST_CASE("mlx5: a message's two work requests have these bytes") {
  const unsigned char payload[] = {0x00, 0xff, 0xff, 0x08, 0xab, 0xcd, 0xef, 0x03,
                                   0,    0,    0,    0x00, 0,    0,    0,    0, // control
                                   0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                   0x55, 0x66, 0x77, 0x88, 0,    0,    0,    0, // address
                                   0x00, 0x00, 0x10, 0x01, 0x11, 0x22, 0x33, 0x44,
                                   0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde,
                                   0xf0, // data
                                   0,    0,    0,    0,    0,    0,    0,    0,
                                   0,    0,    0,    0,    0,    0,    0,    0};
  const unsigned char seqno[] = {
      0x00, 0x00, 0x00, 0x08, 0xab, 0xcd, 0xef, 0x03, 0,    0,    0,    0x08, 0, 0, 0, 0,
      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0,
      0x80, 0x00, 0x00, 0x08, 0x4d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0, 0, 0, 0,
      0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0};
  static_assert(sizeof payload == block_bytes && sizeof seqno == block_bytes);
  const region remote{0x0102030405060708, be32(0x55667788)};
  const region local{0x123456789abcdef0, be32(0x11223344)};
  const auto first = write_payload(0xffff, 0xabcdef, remote, local, 4097, flag_none);
  const auto second =
      write_seqno(0x10000, 0xabcdef, remote, uint64_t{2} << 48 | 77, flag_completion);
  CHECK(std::memcmp(&first, payload, sizeof payload) == 0);
  CHECK(std::memcmp(&second, seqno, sizeof seqno) == 0);
}
