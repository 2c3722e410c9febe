/// An mlx5 network adapter in software, for tests and for measuring without one.
///
/// It is given what the hardware is given: rings, doorbell records, BlueFlame registers,
/// completions and memory keys, and it believes none of it. A pass of `step` looks at every
/// register for a new doorbell, reads the work requests from the register or the ring, checks
/// index, queue, opcode, lengths, keys, bounds and rights, copies, and writes completions; a
/// mistake puts the queue into the error state with the syndrome the hardware would give. It
/// touches registered memory only.
///
/// What it cannot show: how PCIe splits a push, relaxed ordering, firmware.
#pragma once

#include "net/rdma/mlx5/send_queue.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lamella::net::mlx5 {

/// What real hardware may do, on demand.
struct hca_faults {
  uint32_t miss_push_every = 0;     ///< ignores every n-th BlueFlame push and reads the ring
  uint32_t tear_push_every = 0;     ///< of every n-th push only the doorbell word arrives
  uint32_t late_passes = 0;         ///< sees a doorbell so many passes late, so that they coalesce
  uint32_t write_chunk = 0;         ///< bytes written at once, with a yield between; 0 = all
  uint64_t fail_after = UINT64_MAX; ///< work requests until the queue fails
  uint8_t fail_syndrome = syndrome_retry_exceeded;
};

/// Rights of a memory region towards the peer.
enum class remote_rights : uint32_t { none, write, write_and_atomic };

class software_hca {
public:
  /// What one queue has done and why it stopped.
  struct queue_report {
    bool error = false;
    uint8_t first_syndrome = syndrome_none;
    std::string why;
    uint64_t executed = 0, flushed = 0; ///< work requests
    uint64_t doorbells = 0;
    uint64_t pushes_taken = 0, pushes_ignored = 0; ///< BlueFlame
  };

  explicit software_hca(hca_faults faults = {}) : faults_{faults} {}

  /// Registers memory, which must outlive the key. Returns the key in host order.
  uint32_t register_memory(void* base, size_t bytes, remote_rights rights);

  /// After it returns, no work request with this key touches the memory.
  void revoke(uint32_t key);

  /// Attaches a queue with its 64-byte completion, which is filled with 0xff. The pointers of `q`
  /// must be readable by this process for as long as the adapter lives. Returns the queue's place.
  size_t attach(const send_queue& q, unsigned char* completion);

  /// After it returns, the queue's memory and registers are not looked at any more.
  void detach(size_t place);

  /// One pass over all registers. Returns whether there was anything to do. Never blocks but for
  /// the lock that the other calls hold for a moment.
  bool step();

  queue_report report(size_t place) const;

private:
  struct memory {
    uint64_t base, bytes;
    remote_rights rights;
  };
  struct queue {
    const wqe_block* ring;
    uint32_t blocks, number;
    const uint32_t* record;
    const uint64_t* blue_flame;
    uint32_t blue_flame_bytes;
    unsigned char* completion;
    uint64_t next = 0;     ///< block that is executed next
    uint64_t seen[2] = {}; ///< last value of each register
    uint32_t late[2] = {};
    queue_report report;
  };
  class request; ///< one WQE, put together from its blocks

  void ring(queue& q, uint64_t value, const uint64_t* pushed);
  bool take_push(queue& q, uint64_t value, const uint64_t* pushed, request& out);
  bool run(queue& q, const request& wqe);
  bool run_write(queue& q, const request& wqe);
  bool run_fetch_add(queue& q, const request& wqe);
  const memory* find(uint32_t key_be, uint64_t address, uint64_t bytes) const;
  void copy(uint64_t to, const void* from, uint64_t bytes) const;
  void complete(queue& q, uint64_t index, uint32_t opcode, uint8_t syndrome);
  bool fail(queue& q, uint8_t syndrome, const char* why);

  hca_faults faults_;
  mutable std::mutex mutex_;
  std::map<uint32_t, memory> memory_;
  std::vector<std::unique_ptr<queue>> queues_; ///< null: detached
  uint32_t next_key_ = 0x1000;
};

} // namespace lamella::net::mlx5
