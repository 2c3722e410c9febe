#include "net/link/shm_segment.hpp"

#include "base/errno_text.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lamella::net {

namespace {

constexpr size_t descriptors_max = 3;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

} // namespace

owned_descriptor::~owned_descriptor() {
  if (number_ >= 0) close(number_);
}

owned_descriptor& owned_descriptor::operator=(owned_descriptor&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) close(number_);
    number_ = other.release();
  }
  return *this;
}

int owned_descriptor::release() { return std::exchange(number_, -1); }

shm_segment::shm_segment(const gpu::ring_terms& terms)
    : terms_{terms}, descriptor_{memfd_create("lamella link", MFD_CLOEXEC | MFD_ALLOW_SEALING)} {
  if (descriptor_.get() < 0) throw_errno("memfd_create");
  if (ftruncate(descriptor_.get(), static_cast<off_t>(2 * terms.bytes())) != 0)
    throw_errno("ftruncate of a link's segment");
  if (fcntl(descriptor_.get(), F_ADD_SEALS, seals) != 0) throw_errno("sealing a link's segment");
  map();
  gpu::make_ring(forth(), terms);
  gpu::make_ring(back(), terms);
}

shm_segment::shm_segment(owned_descriptor descriptor, const gpu::ring_terms& terms)
    : terms_{terms}, descriptor_{std::move(descriptor)} {
  const auto found = fcntl(descriptor_.get(), F_GET_SEALS);
  // Without the seals the other side could shorten the segment under us: SIGBUS.
  if (found < 0 || (found & F_SEAL_SHRINK) == 0)
    throw std::runtime_error{"the segment is not sealed against shrinking"};
  struct stat info {};
  if (fstat(descriptor_.get(), &info) != 0) throw_errno("fstat of a link's segment");
  if (info.st_size != static_cast<off_t>(2 * terms.bytes()))
    throw std::runtime_error{"the segment has " + std::to_string(info.st_size) + " bytes, expected "
                             + std::to_string(2 * terms.bytes())};
  map();
  if (gpu::is_ring(forth(), terms) && gpu::is_ring(back(), terms)) return;
  munmap(base_, 2 * terms_.bytes());
  throw std::runtime_error{"the rings of the segment differ from the agreed ones"};
}

shm_segment::~shm_segment() { munmap(base_, 2 * terms_.bytes()); }

void shm_segment::map() {
  auto* p =
      mmap(nullptr, 2 * terms_.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (p == MAP_FAILED) throw_errno("mmap of a link's segment");
  base_ = static_cast<std::byte*>(p);
}

void send_descriptors(int socket, std::span<const std::byte> bytes,
                      std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * descriptors_max)> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = room.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  const auto sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) throw_errno("sending descriptors");
  if (static_cast<size_t>(sent) != bytes.size())
    throw std::runtime_error{"a message with descriptors was truncated"};
}

std::vector<owned_descriptor> receive_descriptors(int socket, std::span<std::byte> bytes) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * descriptors_max)> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const auto got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) throw_errno("receiving descriptors");
  std::vector<owned_descriptor> result;
  for (auto* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(h) + i * sizeof(int), sizeof number);
      result.emplace_back(number);
    }
  }
  if (static_cast<size_t>(got) != bytes.size())
    throw std::runtime_error{"a message of " + std::to_string(got) + " bytes, expected "
                             + std::to_string(bytes.size())};
  return result;
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) throw_errno("SO_PEERCRED");
  return peer.uid == geteuid();
}

} // namespace lamella::net
