#include "net/link/pending_link.hpp"

#include <stdexcept>
#include <utility>

namespace lamella::net {

using gpu::channel_state;

class pending_link::sender final : public gpu::channel_sender {
public:
  explicit sender(std::shared_ptr<pending_link> of) : of_{std::move(of)} {}
  std::byte* reserve(size_t bytes) override {
    auto* real = of_->sender_.load(std::memory_order_acquire);
    if (real != nullptr) {
      auto* memory = real->reserve(bytes);
      reserved_ = bytes;
      return memory;
    }
    if (bytes > of_->slot_bytes_)
      throw std::length_error("frame of " + std::to_string(bytes) + " bytes in slots of "
                              + std::to_string(of_->slot_bytes_));
    return nullptr;
  }
  void commit(const gpu::frame_tag& tag) override {
    of_->sender_.load(std::memory_order_acquire)->commit(tag); // reserve() has found it
    of_->sent_.store(of_->sent_.load(std::memory_order_relaxed) + reserved_,
                     std::memory_order_relaxed);
  }
  size_t slot_bytes() const override { return of_->slot_bytes_; }
  channel_state state() const override { return of_->state(); }
  void end(channel_state why) override { of_->end(why); }

private:
  std::shared_ptr<pending_link> of_;
  size_t reserved_ = 0; ///< bytes of the next frame
};

class pending_link::receiver final : public gpu::channel_receiver {
public:
  explicit receiver(std::shared_ptr<pending_link> of) : of_{std::move(of)} {}
  const gpu::frame* peek(size_t ahead) override {
    auto* real = of_->receiver_.load(std::memory_order_acquire);
    return real == nullptr ? nullptr : real->peek(ahead);
  }
  void release() override { of_->receiver_.load(std::memory_order_acquire)->release(); }
  channel_state state() const override { return of_->state(); }
  void end(channel_state why) override { of_->end(why); }

protected:
  void on_drop(const gpu::frame_tag& found, const gpu::frame_tag& expected) override {
    auto& drops = of_->dropped_;
    const auto at = [](const gpu::frame_tag& x) { return std::pair{x.iteration, x.attempt}; };
    auto& counter = found.epoch != expected.epoch ? drops.epoch
                    : at(found) == at(expected)   ? drops.duplicate
                                                  : drops.attempt;
    counter.fetch_add(1, std::memory_order_relaxed);
  }

private:
  std::shared_ptr<pending_link> of_;
};

pending_link::pending_link(const link_key& key, uint64_t slot_bytes,
                           std::shared_ptr<gpu::listener> bell,
                           std::function<void(channel_state)> on_end)
    : key_{key}, slot_bytes_{slot_bytes}, bell_{std::move(bell)}, on_end_{std::move(on_end)} {}

link_end pending_link::ends() {
  return {std::make_shared<sender>(shared_from_this()),
          std::make_shared<receiver>(shared_from_this()),
          std::shared_ptr<const std::atomic<uint64_t>>{shared_from_this(), &sent_},
          std::shared_ptr<const frame_drops>{shared_from_this(), &dropped_}};
}

bool pending_link::bind(link_end real) {
  const std::lock_guard lock{mutex_};
  auto why = before_.load();
  if (real_.to) why = channel_state::stale; // two connections for one link, both proven
  if (why != channel_state::open) {
    real.to->end(why);
    real.from->end(why);
    return false;
  }
  real_ = std::move(real);
  receiver_.store(real_.from.get(), std::memory_order_release);
  sender_.store(real_.to.get(), std::memory_order_release);
  if (bell_) bell_->ring();
  return true;
}

void pending_link::end(channel_state why) {
  std::function<void(channel_state)> told;
  {
    const std::lock_guard lock{mutex_};
    if (real_.to) {
      real_.to->end(why);
      real_.from->end(why);
    } else {
      auto open = channel_state::open;
      before_.compare_exchange_strong(open, why);
      if (bell_) bell_->ring();
    }
    told = std::exchange(on_end_, nullptr);
  }
  if (told) told(why);
}

channel_state pending_link::state() const {
  auto* real = receiver_.load(std::memory_order_acquire);
  return real == nullptr ? before_.load() : real->state();
}

} // namespace lamella::net
