#include "gpu/runners/qkv_watch.hpp"

#include <algorithm>

namespace lamella::gpu {

qkv_watch::presence::presence(std::shared_ptr<qkv_watch> watch, std::span<const runner_link> links)
    : watch_{std::move(watch)} {
  if (!watch_) return;
  std::lock_guard lock{watch_->mutex_};
  for (const auto& link : links) {
    from_.push_back(link.from);
    ++watch_->open_[link.from.get()];
  }
}

qkv_watch::presence::~presence() { leave(); }

void qkv_watch::presence::received() {
  if (!watch_) return;
  std::lock_guard lock{watch_->mutex_};
  ++watch_->receives_;
}

void qkv_watch::presence::leave() {
  if (!watch_) return;
  {
    std::lock_guard lock{watch_->mutex_};
    for (const auto& from : from_) {
      const auto found = watch_->open_.find(from.get());
      if (--found->second == 0) watch_->open_.erase(found);
    }
  }
  watch_ = nullptr;
}

bool qkv_watch::waits() const {
  std::lock_guard lock{mutex_};
  return std::any_of(open_.begin(), open_.end(),
                     [](const auto& x) { return x.first->peek(0) != nullptr; });
}

uint64_t qkv_watch::receives() const {
  std::lock_guard lock{mutex_};
  return receives_;
}

} // namespace lamella::gpu
