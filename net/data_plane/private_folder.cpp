#include "net/data_plane/private_folder.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lamella::net {

namespace fs = std::filesystem;

namespace {

const std::string folder_prefix = "lamella-service-";
constexpr size_t random_letters = 6;
constexpr int tries = 16;

/// The folder, locked by us; -1 when somebody else holds it, or it is gone.
owned_descriptor lock(const fs::path& folder) {
  owned_descriptor fd{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (fd.get() < 0 || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return owned_descriptor{};
  // Whoever held it before us may have removed it meanwhile.
  struct stat held {
  }, there{};
  if (fstat(fd.get(), &held) != 0 || lstat(folder.c_str(), &there) != 0
      || held.st_ino != there.st_ino || held.st_dev != there.st_dev || held.st_uid != geteuid())
    return owned_descriptor{};
  return fd;
}

void remove_abandoned(const fs::path& base) {
  std::error_code ec;
  for (fs::directory_iterator at{base, ec}, end; !ec && at != end; at.increment(ec)) {
    const auto name = at->path().filename().string();
    if (!name.starts_with(folder_prefix) || name.size() != folder_prefix.size() + random_letters)
      continue;
    if (const auto held = lock(at->path()); held.get() >= 0) {
      std::error_code ignored;
      fs::remove_all(at->path(), ignored);
    }
  }
}

} // namespace

private_folder::private_folder(const fs::path& base) {
  remove_abandoned(base);
  for (int i = 0; i < tries; ++i) {
    auto pattern = (base / (folder_prefix + std::string(random_letters, 'X'))).string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw std::system_error{errno, std::generic_category(),
                              "cannot create the folder " + pattern};
    lock_ = lock(pattern);
    if (lock_.get() >= 0) {
      path_ = pattern;
      return;
    }
    // Another service took it for an abandoned one before we held it.
  }
  throw std::system_error{EBUSY, std::generic_category(),
                          "cannot create a folder in " + base.string()};
}

private_folder::~private_folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

} // namespace lamella::net
