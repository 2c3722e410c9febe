#include "cli/open_files.hpp"

#include <spdlog/spdlog.h>

#include <sys/resource.h>

namespace lamella::cli {

uint64_t allow_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void warn_of_few_files(uint64_t limit) {
  constexpr uint64_t few = 256;
  if (limit > 0 && limit < few)
    spdlog::warn("this process may open {} files: connections and links beyond that are refused; "
                 "allow {} or more (ulimit -n, LimitNOFILE=)",
                 limit, few);
}

} // namespace lamella::cli
