// Which folder may include which: an arrow that is not in the table is a decision, not a slip.
#include "actors/protocol/prefills.hpp"
#include "tests/house/sources.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace lamella::house;
namespace fs = std::filesystem;

namespace {

/// What each folder includes beside itself, from the ground up.
const std::map<std::string, std::set<std::string>> arrows{
    {"base", {}},
    {"model", {}},
    {"model/tokenizer", {"base", "model"}},
    {"model/grammar", {"base", "model", "model/tokenizer"}},
    {"model/grammar/json_schema", {"base", "model/grammar"}},
    {"model/grammar/text", {"base", "model/grammar"}},
    {"model/jinja", {"base"}},
    {"model/chat", {"base", "model/grammar", "model/grammar/json_schema", "model/jinja"}},
    {"model/files/hugging_face", {"base", "model", "model/files", "model/tokenizer"}},
    {"model/files", {"base", "model", "model/files/hugging_face", "model/tokenizer"}},
    {"model/program", {"model", "model/files", "model/tokenizer"}},
    {"scheduler", {"base", "model"}},
    {"scheduler/batch", {"model", "scheduler"}},
    {"scheduler/kv", {"model", "scheduler"}},
    {"scheduler/membership", {"scheduler"}},
    {"scheduler/times", {"scheduler"}},
    {"scheduler/planner/cost", {"scheduler/times"}},
    {"scheduler/planner",
     {"scheduler", "scheduler/batch", "scheduler/kv", "scheduler/planner/cost", "scheduler/times"}},
    {"scheduler/planner/papers", {"scheduler", "scheduler/planner", "scheduler/planner/cost"}},
    {"config", {}},
    {"gpu/kernels", {"base", "gpu/kernels/tiles", "model"}},
    {"gpu/kernels/tiles", {"gpu/kernels"}},
    {"gpu", {"base", "gpu/kernels"}},
    {"gpu/cuda/numbers", {"gpu/kernels", "model"}},
    {"gpu/ring", {"base", "gpu", "gpu/kernels"}},
    {"gpu/cuda/stream", {"gpu/ring"}},
    {"gpu/cuda/attention", {"gpu", "gpu/cuda/numbers", "gpu/cuda/stream", "gpu/kernels"}},
    {"gpu/cuda/driver", {"base", "gpu", "gpu/cuda/numbers", "gpu/cuda/stream", "gpu/ring"}},
    {"gpu/cuda/gemm", {"gpu/cuda/driver", "gpu/cuda/numbers", "gpu/cuda/stream", "model"}},
    {"gpu/cuda/rows", {"base", "gpu/cuda/numbers", "gpu/cuda/stream", "gpu/kernels"}},
    {"gpu/cuda/operators",
     {"base", "gpu", "gpu/cuda/attention", "gpu/cuda/driver", "gpu/cuda/gemm", "gpu/cuda/rows",
      "gpu/cuda/stream", "gpu/kernels", "gpu/ring", "model"}},
    {"gpu/cuda",
     {"gpu", "gpu/cuda/attention", "gpu/cuda/driver", "gpu/cuda/operators", "gpu/cuda/rows",
      "gpu/cuda/stream"}},
    {"gpu/trace", {}},
    {"gpu/runners", {"base", "gpu", "gpu/ring", "gpu/trace", "model", "model/program"}},
    {"gpu/cuda/bench",
     {"gpu", "gpu/cuda/attention", "gpu/cuda/driver", "gpu/cuda/gemm", "gpu/cuda/operators",
      "gpu/cuda/rows", "gpu/cuda/stream", "gpu/ring", "gpu/runners", "model/program"}},
    {"gpu/host", {"base", "gpu", "gpu/ring", "gpu/trace"}},
    {"net/http", {"base"}},
    {"net/api", {"base", "model/chat", "model/tokenizer", "net/http"}},
    {"net/api/responses", {"base", "net/api"}},
    {"net/console", {"net/http"}},
    {"net/http/client", {"net/http"}},
    {"net/tracing", {"base", "net/http", "net/http/client"}},
    {"net/link", {"base", "gpu", "gpu/ring"}},
    {"net/rdma/mlx5", {"gpu/cuda/stream", "gpu/ring", "net/rdma"}},
    {"net/rdma",
     {"base", "gpu", "gpu/cuda/bench", "gpu/cuda/stream", "gpu/ring", "net/link", "net/rdma/mlx5"}},
    {"net/data_plane", {"base", "net/http", "net/http/client", "net/link", "net/rdma"}},
    {"net/metrics", {"base", "net/api"}},
    {"actors/protocol",
     {"config", "gpu", "gpu/kernels", "model", "scheduler", "scheduler/kv",
      "scheduler/membership"}},
    {"actors/shared",
     {"actors/protocol", "base", "gpu", "model/grammar", "net/metrics", "scheduler",
      "scheduler/membership"}},
    {"actors/device",
     {"actors/protocol", "actors/shared", "base", "gpu", "gpu/runners", "gpu/trace", "net/link",
      "net/metrics", "scheduler"}},
    {"actors/decode", {"actors/protocol", "actors/shared", "net/metrics", "scheduler"}},
    {"actors/machine",
     {"actors/protocol", "config", "gpu", "gpu/host", "gpu/kernels", "gpu/ring", "gpu/runners",
      "model", "model/program", "net/data_plane", "net/link", "scheduler", "scheduler/membership"}},
    {"actors/membership",
     {"actors/machine", "actors/protocol", "actors/shared", "base", "net/metrics", "scheduler",
      "scheduler/membership", "scheduler/times"}},
    {"actors/request",
     {"actors/protocol", "actors/request/chat", "actors/shared", "base", "config", "model/chat",
      "model/grammar", "model/grammar/json_schema", "model/grammar/text", "model/tokenizer",
      "net/api", "net/api/responses", "net/http", "net/metrics", "net/tracing", "scheduler"}},
    {"actors/request/chat", {"actors/request", "base", "model/chat", "net/api"}},
    {"actors/worker",
     {"actors/device", "actors/machine", "actors/protocol", "actors/shared", "base", "config",
      "gpu", "gpu/host", "gpu/runners", "gpu/trace", "model/program", "net/data_plane", "net/http",
      "net/link", "net/metrics", "scheduler", "scheduler/membership"}},
    {"actors/gateway",
     {"actors/machine", "actors/protocol", "actors/request", "actors/shared", "actors/worker",
      "base", "net/api", "net/api/responses", "net/console", "net/http", "net/metrics",
      "scheduler"}},
    {"actors/kv",
     {"actors/device", "actors/protocol", "actors/shared", "base", "gpu/runners", "net/metrics",
      "scheduler", "scheduler/kv"}},
    {"actors/lane",
     {"actors/device", "actors/protocol", "actors/shared", "base", "gpu/runners", "scheduler",
      "scheduler/batch"}},
    {"actors/scaling",
     {"actors/machine", "actors/protocol", "actors/request", "actors/shared", "config",
      "net/metrics", "scheduler", "scheduler/kv", "scheduler/membership"}},
    {"actors/node", {"actors/decode",  "actors/device",
                     "actors/gateway", "actors/kv",
                     "actors/machine", "actors/membership",
                     "actors/lane",    "actors/protocol",
                     "actors/request", "actors/request/chat",
                     "actors/scaling", "actors/shared",
                     "actors/worker",  "base",
                     "config",         "gpu/host",
                     "gpu/runners",    "model/program",
                     "net/data_plane", "net/http",
                     "net/metrics",    "net/tracing",
                     "scheduler",      "scheduler/batch",
                     "scheduler/kv",   "scheduler/membership"}},
    {"cli",
     {"actors/machine", "actors/node", "actors/protocol", "actors/shared", "base", "config", "gpu",
      "gpu/kernels", "gpu/ring", "model/program", "net/api", "net/data_plane", "net/http/client",
      "net/link", "net/rdma", "scheduler", "scheduler/planner/cost"}},
    {"cli/plan",
     {"actors/node", "actors/request", "base", "cli", "config", "scheduler", "scheduler/planner",
      "scheduler/planner/papers"}},
    {"cli/bench/load",
     {"base", "cli", "cli/bench", "scheduler/planner/cost", "scheduler/planner/papers"}},
    {"cli/bench/parts",
     {"actors/machine", "base", "cli", "gpu/host", "gpu/kernels", "gpu/ring", "net/data_plane",
      "net/link", "net/rdma"}},
    {"cli/bench",
     {"actors/node", "actors/protocol", "actors/request", "actors/shared", "actors/worker", "base",
      "cli", "cli/bench/load", "cli/plan", "config", "net/http", "scheduler/planner"}},
    {"cli/client", {"base", "cli", "cli/bench", "net/http"}},
    {"cli/model", {"base", "cli", "model/chat", "model/files", "model/program"}},
    {"cli/serve",
     {"actors/machine", "actors/node", "actors/worker", "base", "cli", "net/data_plane"}},
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// A folder and its own child are one room with an alcove: they may know each other.
bool is_child(const std::string& a, const std::string& b) {
  return folder_of(a) == b || folder_of(b) == a;
}

} // namespace

TEST_CASE("folders include what the table says, and all that it says") {
  std::map<std::string, std::set<std::string>> seen;
  for (const auto& top : top_folders) {
    for (const auto& file : code_of(top)) seen[folder_of(name_of(file))];
    for_each_include(top, [&](const fs::path& file, const include_line& x) {
      if (!x.quoted) return;
      REQUIRE_MESSAGE(x.path.find('/') != std::string::npos, "paths are written from the root");
      CHECK(fs::exists(root / x.path));
      const auto from = folder_of(name_of(file)), to = folder_of(x.path);
      if (from == to) return;
      seen[from].insert(to);
      const auto allowed = arrows.find(from);
      REQUIRE_MESSAGE(allowed != arrows.end(), "a folder that the table does not know");
      CHECK(allowed->second.contains(to));
    });
  }
  for (const auto& [folder, allowed] : arrows)
    for (const auto& to : allowed) {
      INFO(folder << " -> " << to << " is used no longer");
      CHECK(seen[folder].contains(to));
    }
  CHECK(seen.size() == arrows.size());
}

TEST_CASE("no folders stand in a circle") {
  enum class mark { open, closed };
  std::map<std::string, mark> marks;
  std::vector<std::string> way;
  const std::function<void(const std::string&)> walk = [&](const std::string& folder) {
    marks[folder] = mark::open;
    way.push_back(folder);
    for (const auto& to : arrows.at(folder)) {
      if (is_child(folder, to)) continue;
      const auto known = marks.find(to);
      std::string circle;
      for (const auto& x : way) circle += x + " -> ";
      INFO(circle << to);
      CHECK_FALSE((known != marks.end() && known->second == mark::open));
      if (known == marks.end()) walk(to);
    }
    way.pop_back();
    marks[folder] = mark::closed;
  };
  for (const auto& [folder, allowed] : arrows)
    if (!marks.contains(folder)) walk(folder);
}

TEST_CASE("live code never includes planners, simulators and papers") {
  for (const auto& [folder, allowed] : arrows) {
    if (folder.starts_with("scheduler/planner") || folder.starts_with("cli")) continue;
    for (const auto& to : allowed) {
      INFO(folder << " -> " << to);
      CHECK_FALSE(to.starts_with("scheduler/planner"));
    }
  }
}

TEST_CASE("no folder holds more than 40 files") {
  std::map<std::string, int> files;
  for (const auto& top : top_folders)
    for (const auto& file : code_of(top)) ++files[folder_of(name_of(file))];
  for (const auto& [folder, count] : files) {
    INFO(folder);
    CHECK(count <= 40);
  }
}
