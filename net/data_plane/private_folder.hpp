/// A folder of one process during its lifetime, for sockets shared with its children.
#pragma once

#include "net/link/shm_segment.hpp"

#include <filesystem>

namespace lamella::net {

/// Created in the temporary folder of the system, for this user only, with a random name and a lock
/// that the kernel releases when the process ends, however it ends: neither another service of this
/// user nor a cleaner of old files that respects locks removes a locked folder. Removed with its
/// content at the end.
class private_folder {
public:
  /// Also removes folders left by killed processes. Throws std::system_error when no folder can be
  /// created.
  explicit private_folder(
      const std::filesystem::path& base = std::filesystem::temp_directory_path());
  ~private_folder();
  private_folder(const private_folder&) = delete;
  private_folder& operator=(const private_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  owned_descriptor lock_;
};

} // namespace lamella::net
