/// What tests send over links, and how they see that it came whole.
#pragma once

#include "gpu/device.hpp"
#include "net/link/link.hpp"

#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

namespace lamella::tests {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Every wait of these tests ends by then, and the test with it. Only a broken program waits so
/// long: machines that run tests stand still for seconds.
constexpr auto timeout = 240s;

/// Gives way until it holds; whether it did.
inline bool holds_soon(const std::function<bool()>& condition) {
  const auto until = clock::now() + timeout;
  while (!condition()) {
    if (clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

inline gpu::frame_tag tag_of(uint64_t iteration, uint64_t epoch = 1) {
  return {epoch, iteration, 0, 0, gpu::frame_kind::q, 0};
}

/// The bytes of message n: its number in every word, so that mixed or torn ones show.
inline void fill(std::byte* p, size_t bytes, uint64_t n) {
  for (size_t at = 0; at < bytes; at += sizeof n)
    std::memcpy(p + at, &n, std::min(sizeof n, bytes - at));
}
inline bool is_filled(std::span<const std::byte> payload, uint64_t n) {
  for (size_t at = 0; at < payload.size(); at += sizeof n)
    if (std::memcmp(payload.data() + at, &n, std::min(sizeof n, payload.size() - at)) != 0)
      return false;
  return true;
}

/// Sends message n as soon as there is credit. False when there is none in time or the link ended.
inline bool send(gpu::channel_sender& to, uint64_t n, size_t bytes) {
  std::byte* p = nullptr;
  if (!holds_soon([&] {
        p = to.reserve(bytes);
        return p != nullptr || to.state() != gpu::channel_state::open;
      })
      || p == nullptr)
    return false;
  fill(p, bytes, n);
  to.commit(tag_of(n));
  return true;
}

/// Waits for the next message, checks that it is n, and gives it back.
inline bool take(gpu::channel_receiver& from, uint64_t n, size_t bytes) {
  const gpu::frame* f = nullptr;
  if (!holds_soon([&] {
        f = from.peek(0);
        return f != nullptr || from.state() > gpu::channel_state::closed;
      })
      || f == nullptr)
    return false;
  const bool right = f->tag == tag_of(n) && f->payload.size() == bytes && is_filled(f->payload, n);
  from.release();
  return right;
}

/// Sends and takes `count` small messages, both as fast as they go. How many were wrong; all of
/// them when they do not come in time.
inline uint64_t exchange(const net::link_end& at, uint64_t count) {
  uint64_t sent = 0, taken = 0, wrong = 0;
  const auto until = clock::now() + timeout;
  while (sent < count || taken < count) {
    bool moved = false;
    if (sent < count)
      if (auto* p = at.to->reserve(sent % 257)) {
        fill(p, sent % 257, sent);
        at.to->commit(tag_of(sent++));
        moved = true;
      }
    if (const auto* f = at.from->peek(0)) {
      wrong += f->tag == tag_of(taken) && is_filled(f->payload, taken) ? 0 : 1;
      at.from->release();
      ++taken;
      moved = true;
    }
    if (moved) continue;
    if (clock::now() > until) return count;
    std::this_thread::yield();
  }
  return wrong;
}

/// Answers `count` frames with frames of the same number, or asks for them.
class player final : public gpu::work {
public:
  player(net::link_end link, uint64_t count, bool first)
      : link_{std::move(link)}, count_{count}, asks_{first} {}
  progress advance(gpu::kernel_context) override {
    if (asks_) {
      auto* p = gpu::reserve(*link_.to, 54);
      if (p == nullptr) return progress::blocked;
      fill(p, 54, n_);
      link_.to->commit(tag_of(n_));
    } else {
      const auto* f = link_.from->receive(tag_of(n_), 54);
      if (f == nullptr) return progress::blocked;
      if (!is_filled(f->payload, n_)) throw std::runtime_error{"a torn frame"};
      link_.from->release();
    }
    asks_ = !asks_;
    return ++turns_ % 2 == 0 && ++n_ == count_ ? progress::done : progress::advanced;
  }

private:
  net::link_end link_;
  uint64_t count_, n_ = 0, turns_ = 0;
  bool asks_;
};

inline std::future<gpu::work_status> launch(gpu::stream& on, std::shared_ptr<gpu::work> x,
                                            clock::duration limit = timeout) {
  auto end = std::make_shared<std::promise<gpu::work_status>>();
  on.launch(std::move(x), clock::now() + limit, [end](auto status) { end->set_value(status); });
  return end->get_future();
}

} // namespace lamella::tests
