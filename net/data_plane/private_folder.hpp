/// A folder of one process for as long as it lives, for sockets that its children and it share.
#pragma once

#include "net/link/shm_segment.hpp"

#include <filesystem>

namespace lamella::net {

/// Made in the temporary folder of the system, for this user alone, with a random name and a lock
/// that the kernel takes back when the process ends, however it ends: nobody removes a folder that
/// is locked, neither another service of this user nor a cleaner of old files that knows locks. It
/// goes with its content at the end.
class private_folder {
public:
  /// Also removes the folders of processes that could not do so themselves. Throws
  /// std::system_error when none can be made.
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
