#include "cli/bench/actor_time.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace lamella::cli {

std::chrono::nanoseconds actor_threads_time() {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::chrono::nanoseconds sum{0};
  for (fs::directory_iterator at{"/proc/self/task", failed}, end; !failed && at != end;
       at.increment(failed)) {
    std::string name;
    std::getline(std::ifstream{at->path() / "comm"}, name);
    int64_t on_processor = 0;
    if (name.starts_with("caf.") && std::ifstream{at->path() / "schedstat"} >> on_processor)
      sum += std::chrono::nanoseconds{on_processor};
  }
  return sum;
}

} // namespace lamella::cli
