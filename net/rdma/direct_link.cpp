#include "net/rdma/direct_link.hpp"

#include "gpu/device.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace lamella::net {

using gpu::channel_state;

namespace {

channel_state state_of(const link_memory& memory) {
  return std::max(gpu::state_of(*memory.out()), gpu::state_of(*memory.in()));
}

/// What both ends on the host's side have.
template <class End> class word_end : public End {
public:
  word_end(std::shared_ptr<link_memory> memory, std::shared_ptr<gpu::listener> posts)
      : memory_{std::move(memory)}, posts_{std::move(posts)} {}
  channel_state state() const override { return state_of(*memory_); }
  void end(channel_state why) override {
    gpu::end_ring(*memory_->out(), why);
    gpu::end_ring(*memory_->in(), why);
    posts_->ring();
  }

protected:
  [[noreturn]] static void refuse() {
    throw std::logic_error{"frames of this link are in its device's memory"};
  }
  std::shared_ptr<link_memory> memory_;

private:
  std::shared_ptr<gpu::listener> posts_;
};

class word_sender final : public word_end<gpu::channel_sender> {
public:
  using word_end::word_end;
  std::byte* reserve(size_t) override { refuse(); }
  void commit(const gpu::frame_tag&) override { refuse(); }
  size_t slot_bytes() const override { return memory_->rings().slot_bytes; }
};

class word_receiver final : public word_end<gpu::channel_receiver> {
public:
  using word_end::word_end;
  const gpu::frame* peek(size_t) override { refuse(); }
  void release() override { refuse(); }
};

/// An adapter whose register a device has mapped stays open as long as the process: the address
/// of its register would else be given to another one, and the device ring the bell of the old one.
void keep_open(const std::shared_ptr<verbs_device>& adapter) {
  static std::mutex mutex;
  static auto* all = new std::set<std::shared_ptr<verbs_device>>;
  const std::lock_guard lock{mutex};
  all->insert(adapter);
}

/// The device's ends; the link ends with them.
struct held_ends {
  ~held_ends() { link->end(channel_state::closed); }
  std::shared_ptr<pending_link> link;
  std::shared_ptr<direct_link> rings;
  std::shared_ptr<gpu::channel_sender> to;
  std::shared_ptr<gpu::channel_receiver> from;
};

} // namespace

direct_link::direct_link(const std::shared_ptr<gpu::device>& device, const gpu::ring_terms& rings,
                         gpu::ring_identity self, const std::optional<stream_posting>& by_stream)
    : memory_{std::make_shared<link_memory>(device, rings, by_stream.has_value())}, self_{self} {
  if (!by_stream) return;
  queue_ = by_stream->adapter->make_stream_queue(memory_->registered(), memory_->queue_place());
  if (gpu::slot_stride(rings.slot_bytes) > queue_->write_bytes_max())
    throw std::runtime_error{by_stream->adapter->name() + " does not accept frames of "
                             + std::to_string(rings.slot_bytes) + " bytes"};
  if (by_stream->rings) {
    bell_ = device->map_register(queue_->bell());
    keep_open(by_stream->adapter);
  }
  auto* words = memory_->posting();
  posts_by_stream_ = std::make_shared<gpu::stream_posts>();
  auto& p = *posts_by_stream_;
  p.queue = memory_->kept_queue();
  p.birth = reinterpret_cast<const std::byte*>(&words->birth);
  p.ready = &words->ready;
  p.published = &words->published;
  p.rings = by_stream->rings;
  p.in_at = link_memory::in_at;
  p.out_at = memory_->out_at();
  p.bytes = &memory_->posted;
  p.released = p.told = rings.first();
}

std::unique_ptr<stream_queue> direct_link::take_queue() {
  if (posts_by_stream_ && !queue_)
    throw std::runtime_error{"another handshake already uses the queue of this link"};
  return std::move(queue_);
}

void direct_link::open(stream_queue& queue) {
  auto* words = memory_->posting();
  words->birth = queue.hand_over(&words->published);
  if (bell_ != nullptr) words->birth.blue_flame = bell_;
  std::atomic_ref{words->ready}.store(1, std::memory_order_release);
}

link_end direct_link::ends(gpu::device& device, const std::shared_ptr<pending_link>& link) {
  {
    const std::lock_guard lock{mutex_};
    link_ = link;
  }
  gpu::ring_place out{memory_->base() + memory_->out_at(), memory_, nullptr, shared_from_this(),
                      memory_->rings()};
  auto in = out;
  out.words = memory_->out();
  out.headers = memory_->headers();
  out.posts = in.posts = posts_by_stream_;
  in.base = memory_->base() + link_memory::in_at;
  in.words = memory_->in();
  auto all = std::make_shared<held_ends>();
  all->link = link;
  all->rings = shared_from_this();
  all->to = device.make_sender(out, self_);
  all->from = device.make_receiver(in);
  return {std::shared_ptr<gpu::channel_sender>{all, all->to.get()},
          std::shared_ptr<gpu::channel_receiver>{all, all->from.get()},
          std::shared_ptr<const std::atomic<uint64_t>>{memory_, &memory_->posted}};
}

void direct_link::attach(std::weak_ptr<gpu::listener> posts) {
  {
    const std::lock_guard lock{mutex_};
    posts_ = std::move(posts);
  }
  ring();
}

void direct_link::end(channel_state why) {
  gpu::end_ring(*memory_->out(), why);
  gpu::end_ring(*memory_->in(), why);
}

void direct_link::ring() {
  std::shared_ptr<gpu::listener> posts;
  std::shared_ptr<pending_link> link;
  {
    const std::lock_guard lock{mutex_};
    posts = posts_.lock();
    link = link_.lock();
  }
  if (posts) return posts->ring();
  if (const auto why = state_of(*memory_); link && why != channel_state::open) link->end(why);
}

link_end host_side_of(const std::shared_ptr<link_memory>& memory,
                      std::shared_ptr<gpu::listener> posts) {
  return {std::make_shared<word_sender>(memory, posts),
          std::make_shared<word_receiver>(memory, posts)};
}

} // namespace lamella::net
