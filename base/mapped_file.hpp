/// Read-only mappings of files that other processes may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <span>

namespace lamella {

/// A regular file, mapped for reading.
///
/// Another process may truncate the file while it is read; the kernel then sends SIGBUS for the
/// lost pages. Opening the first mapping installs a handler for this signal. For an address in one
/// of our mappings it puts a page of zeros there, notes the loss, and lets the read go on; the
/// reader learns of it from check_intact(). All other SIGBUS go to the handler that was there
/// before. At most 256 files can be mapped at a time.
class mapped_file {
public:
  /// Resolves symbolic links, then opens what they lead to without following any further link (so
  /// the file checked is the file read), and maps it. Throws file_error if this is no regular file,
  /// is empty, or cannot be read.
  explicit mapped_file(const std::filesystem::path& path);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Throws file_error if the file's length or time of change differ from when it was opened, or if
  /// a page of it was lost.
  void check_intact() const;

  /// Drops the mapping's pages from memory; they are read again when touched.
  void release_pages() const;

private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::span<const std::byte> bytes_;
  timespec changed_{};
  size_t slot_ = 0;
};

} // namespace lamella
