#include "gpu/ring/channel.hpp"

#include <array>
#include <string>

namespace lamella::gpu {

std::string_view to_string(channel_state state) {
  constexpr std::array<std::string_view, 7> names{"open",  "closed", "aborted", "revoked",
                                                  "stale", "torn",   "unread"};
  const auto i = static_cast<size_t>(state);
  return i < names.size() ? names[i] : "unknown";
}

channel_ended::channel_ended(channel_state why)
    : std::runtime_error{"the channel is closed: " + std::string{to_string(why)}}, why_{why} {}

const frame* channel_receiver::receive(const frame_tag& expected, size_t bytes, size_t ahead) {
  while (true) {
    // The state comes first: frames sent before the channel was closed are still to be taken.
    const auto before = state();
    const auto* next = peek(ahead);
    if (next == nullptr) {
      if (before != channel_state::open) throw channel_ended{before};
      return nullptr;
    }
    if (next->tag == expected) {
      if (next->payload.size() == bytes) return next;
      throw std::runtime_error("frame of " + std::to_string(next->payload.size())
                               + " bytes, expected " + std::to_string(bytes));
    }
    if (ahead != 0 || next->tag > expected) return nullptr;
    on_drop(next->tag, expected);
    release();
  }
}

void channel_receiver::on_drop(const frame_tag&, const frame_tag&) {}

std::byte* reserve(channel_sender& to, size_t bytes) {
  auto* place = to.reserve(bytes);
  if (place == nullptr)
    if (const auto state = to.state(); state != channel_state::open) throw channel_ended{state};
  return place;
}

} // namespace lamella::gpu
