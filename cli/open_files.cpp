#include "cli/open_files.hpp"

#include <sys/resource.h>

namespace lamella::cli {

void allow_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

} // namespace lamella::cli
