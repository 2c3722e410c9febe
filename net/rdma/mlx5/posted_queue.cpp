#include "net/rdma/mlx5/posted_queue.hpp"

#include "net/rdma/mlx5/host_stores.hpp"

#include <cstring>
#include <stdexcept>

namespace lamella::net::mlx5 {

namespace {

/// Nothing here waits for room: `room()` was asked.
host_stores stores() { return host_stores{host_stores::clock::time_point::min()}; }

/// "remote access (syndrome 19)".
std::string text_of_syndrome(uint8_t syndrome) {
  const auto* what = "an error";
  switch (syndrome) {
  case syndrome_length:
    what = "length";
    break;
  case syndrome_operation:
    what = "operation of the queue";
    break;
  case syndrome_local_protection:
    what = "local protection";
    break;
  case syndrome_flushed:
    what = "the queue has failed before";
    break;
  case syndrome_remote_access:
    what = "remote access";
    break;
  case syndrome_retry_exceeded:
    what = "no answer from the peer";
    break;
  case syndrome_receiver_not_ready:
    what = "the receiver is not ready";
    break;
  default:
    break;
  }
  return std::string{what} + " (syndrome " + std::to_string(syndrome) + ")";
}

} // namespace

uint32_t posted_queue::room() const {
  if (handed_over_) return 0;
  return static_cast<uint32_t>(q_.mask + uint64_t{1} - (q_.produced - q_.completed));
}

void posted_queue::post(std::span<const verbs_write> writes, bool tell) {
  if (writes.empty()) return;
  if (handed_over_) throw std::runtime_error{"device streams post into this queue"};
  if (writes.size() > room()) throw std::runtime_error{"more writes than the queue has room for"};
  auto policy = stores();
  segment last{};
  for (size_t i = 0; i < writes.size(); ++i) {
    const auto& w = writes[i];
    if (w.to > q_.arena_bytes || w.bytes > q_.arena_bytes - w.to)
      throw std::runtime_error{"a write beyond the peer's memory"};
    // One in a quarter of the ring tells of its end: completions are what makes room again.
    const bool signals =
        i + 1 == writes.size() && (tell || q_.produced + 1 - q_.signalled >= (q_.mask + 1) / 4);
    const uint32_t flags = signals ? flag_completion : flag_none;
    const region to{q_.remote.address + w.to, q_.remote.key_be};
    wqe_block block;
    if (w.inlined) {
      if (w.bytes != sizeof(uint64_t)) throw std::runtime_error{"only words are carried inline"};
      uint64_t word = 0;
      std::memcpy(&word, w.from, sizeof word);
      block = write_seqno(q_.produced, q_.number, to, word, flags);
    } else {
      const auto from = reinterpret_cast<uint64_t>(w.from);
      if (from < sending_ || from - sending_ > sending_bytes_
          || w.bytes > sending_bytes_ - (from - sending_))
        throw std::runtime_error{"a write from beyond the memory of the link"};
      block =
          write_payload(q_.produced, q_.number, to,
                        {q_.local.address + (from - sending_), q_.local.key_be}, w.bytes, flags);
    }
    put(q_, block, policy);
    if (signals) q_.signalled = q_.produced;
    last = block.s[0];
  }
  if (tell) told_ = q_.produced;
  policy.release();
  policy.store_record(q_.record, record_value(q_.produced));
  policy.release();
  policy.store_doorbell(next_register(q_), doorbell_value(last));
  policy.release(); // out of the write-combining buffer
  rung_ = q_.produced;
}

std::optional<std::string> posted_queue::poll() {
  if (auto over = fetch_completions()) return over;
  auto policy = stores();
  const auto word = policy.load_completion(q_.completion);
  if (handed_over_)
    q_.produced = std::atomic_ref<uint64_t>{*q_.published}.load(std::memory_order_acquire);
  switch (completion_opcode_of(word)) {
  case completion_done:
    note_completion(q_, word);
    return {};
  case completion_never:
    return {};
  default:
    const auto* line = reinterpret_cast<const uint8_t*>(q_.completion) - completion_word_at;
    return "a write has failed: " + text_of_syndrome(line[syndrome_at]);
  }
}

bool posted_queue::settled() const {
  if (!handed_over_) return q_.completed >= told_;
  return q_.completed >= std::atomic_ref<uint64_t>{*q_.published}.load(std::memory_order_acquire);
}

const send_queue& posted_queue::hand_over(uint64_t* published) {
  handed_over_ = true;
  q_.published = published;
  *published = q_.produced;
  return q_;
}

void posted_queue::ring() {
  if (!handed_over_) return;
  const auto produced = std::atomic_ref<uint64_t>{*q_.published}.load(std::memory_order_acquire);
  if (produced == rung_) return;
  auto policy = stores();
  policy.store_record(q_.record, record_value(produced));
  policy.release();
  policy.store_doorbell(next_register(q_), plain_doorbell(produced - 1, q_.number));
  policy.release();
  rung_ = produced;
}

} // namespace lamella::net::mlx5
