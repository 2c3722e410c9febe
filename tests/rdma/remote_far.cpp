#include "tests/rdma/remote_far.hpp"

namespace lamella::tests {

namespace {

message make(order what) {
  message x;
  x.put(what);
  return x;
}

/// The sending end of a link of the other process. A frame is made here and sent there.
class remote_sender final : public gpu::channel_sender {
public:
  remote_sender(std::shared_ptr<agent_session> session, uint32_t link, size_t slot_bytes)
      : session_{std::move(session)}, link_{link}, slot_bytes_{slot_bytes} {}

  std::byte* reserve(size_t bytes) override {
    auto answer = session_->ask(make(order::reserve).put(link_).put(bytes));
    if (!answer.get<bool>()) return nullptr;
    room_.resize(bytes + 1); // never null
    bytes_ = bytes;
    return room_.data();
  }
  void commit(const gpu::frame_tag& tag) override {
    auto answer = session_->ask(
        make(order::commit).put(link_).put(tag).put_bytes(std::span{room_}.first(bytes_)));
    sent.store(answer.get<uint64_t>());
  }
  size_t slot_bytes() const override { return slot_bytes_; }
  gpu::channel_state state() const override {
    return session_->ask(make(order::look).put(link_).put(true)).get<gpu::channel_state>();
  }
  void end(gpu::channel_state why) override {
    session_->ask(make(order::end).put(link_).put(true).put(why));
  }

  std::atomic<uint64_t> sent{0};

private:
  std::shared_ptr<agent_session> session_;
  uint32_t link_;
  size_t slot_bytes_, bytes_ = 0;
  std::vector<std::byte> room_;
};

class remote_receiver final : public gpu::channel_receiver {
public:
  remote_receiver(std::shared_ptr<agent_session> session, uint32_t link)
      : session_{std::move(session)}, link_{link} {}

  const gpu::frame* peek(size_t ahead) override {
    auto answer = session_->ask(make(order::peek).put(link_).put(ahead));
    if (!answer.get<bool>()) return nullptr;
    auto& seen = copies_[ahead];
    seen.is.tag = answer.get<gpu::frame_tag>();
    const auto payload = answer.rest();
    seen.payload.assign(payload.begin(), payload.end());
    seen.is.payload = seen.payload;
    return &seen.is;
  }
  void release() override {
    session_->ask(make(order::release).put(link_));
    copies_.clear();
  }
  gpu::channel_state state() const override {
    return session_->ask(make(order::look).put(link_).put(false)).get<gpu::channel_state>();
  }
  void end(gpu::channel_state why) override {
    session_->ask(make(order::end).put(link_).put(false).put(why));
  }

private:
  struct copy {
    gpu::frame is;
    std::vector<std::byte> payload;
  };
  std::shared_ptr<agent_session> session_;
  uint32_t link_;
  std::map<size_t, copy> copies_;
};

} // namespace

message agent_session::ask(const message& x) {
  const std::lock_guard lock{mutex_};
  socket_.send(x);
  auto answer = socket_.receive();
  switch (answer.get<outcome>()) {
  case outcome::done:
    return answer;
  case outcome::too_long:
    throw std::length_error{answer.get_text()};
  case outcome::failed:
    break;
  }
  throw std::runtime_error{"the other end: " + answer.get_text()};
}

void agent_session::tell(const message& x) {
  const std::lock_guard lock{mutex_};
  socket_.send(x);
}

remote_far::remote_far(const std::string& ipv4_address, const std::string& transport)
    : session_{std::make_shared<agent_session>(ipv4_address)} {
  message hello;
  hello.put_text(transport);
  session_->tell(hello);
}

std::string remote_far::address() { return session_->ask(make(order::address)).get_text(); }

net::link_end remote_far::accept(const net::link_key& key, const net::link_terms& terms) {
  const auto link = session_->ask(make(order::accept).put(key).put(terms)).get<uint32_t>();
  auto to = std::make_shared<remote_sender>(session_, link, gpu::slot_room(terms.slot_bytes));
  const std::shared_ptr<const std::atomic<uint64_t>> sent{to, &to->sent};
  return {to, std::make_shared<remote_receiver>(session_, link), sent};
}

void remote_far::end_epoch(uint64_t epoch) { session_->ask(make(order::end_epoch).put(epoch)); }

void remote_far::go() { session_->ask(make(order::go)); }

void remote_far::die() { session_->tell(make(order::die)); }

std::string remote_far::wait_for(net::link_event::kind what, const std::string& part) {
  return session_->ask(make(order::wait_for).put(what).put_text(part)).get_text();
}

std::chrono::nanoseconds remote_far::round_trip() {
  return session_->ask(make(order::round_trip)).get<std::chrono::nanoseconds>();
}

std::future<uint64_t> remote_far::task(const message& x) {
  const auto number = session_->ask(x).get<uint32_t>();
  return std::async(std::launch::async, [session = session_, number] {
    while (true) {
      auto answer = session->ask(make(order::result).put(number));
      if (answer.get<bool>()) return answer.get<uint64_t>();
    }
  });
}

std::future<uint64_t> remote_far::exchange(uint64_t count) {
  return task(make(order::exchange).put(count));
}

std::future<gpu::work_status> remote_far::play(uint64_t count, bool first) {
  return std::async(std::launch::async,
                    [value = task(make(order::play).put(count).put(first))]() mutable {
                      return static_cast<gpu::work_status>(value.get());
                    });
}

} // namespace lamella::tests
