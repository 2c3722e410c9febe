/// Taking one file out of a Python wheel, which is a ZIP archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lamella::cli {

/// The archive is damaged, or does not have the file.
struct wheel_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Told while it is unpacked: bytes done, bytes in all.
using unpack_progress = std::function<void(uint64_t, uint64_t)>;

/// Writes the only member whose name ends in `suffix` to `to` and returns the SHA-256 of what was
/// written, in lower-case hex. Members may be stored or deflated and at most 1 GiB; sizes and
/// CRC-32 are checked. Throws wheel_error, and std::system_error when a file cannot be read or
/// written.
std::string unpack_member(const std::filesystem::path& wheel, std::string_view suffix,
                          const std::filesystem::path& to, const unpack_progress& progress);

/// SHA-256 of a file in lower-case hex. Throws std::system_error.
std::string file_sha256(const std::filesystem::path& file, const unpack_progress& progress);

} // namespace lamella::cli
