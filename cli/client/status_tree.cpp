#include "cli/client/status_tree.hpp"

#include "cli/client.hpp"
#include "cli/client/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lamella::cli {

namespace {

struct branch {
  std::string text;
  std::vector<branch> below;
};

void draw(const branch& x, const std::string& before, std::string& out) {
  out += x.text + "\n";
  for (size_t i = 0; i < x.below.size(); ++i) {
    const bool last = i + 1 == x.below.size();
    out += before + (last ? "└─ " : "├─ ");
    draw(x.below[i], before + (last ? "   " : "│  "), out);
  }
}

int64_t count_at(const json_value& from, std::initializer_list<std::string_view> path) {
  return static_cast<int64_t>(number_or(find_path(from, path), 0));
}

/// "1 restart", "2 restarts"
std::string counted(int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Seats of a pool that are drawn.
constexpr size_t seats_max = 64;

/// ", 1 of 5 restarts in 30 s"; empty where nobody is restarted.
std::string budget_of(const json_value& x) {
  const auto allowed = count_at(x, {"restarts", "allowed"});
  if (allowed == 0) return {};
  return fmt::format(", {} of {} restarts in {} s", count_at(x, {"restarts", "used"}), allowed,
                     count_at(x, {"restarts", "window_s"}));
}

/// What is told of that supervisor; null: nothing.
const json_value* supervisor_named(const json_value& status, std::string_view name) {
  for (const auto& x : items_of(status, "supervisors"))
    if (text_or(x.find("name"), "") == name) return &x;
  return nullptr;
}

/// "  one for all, 1 of 5 restarts in 30 s"
std::string strategy_of(const json_value& x) {
  auto strategy = text_or(x.find("strategy"), "");
  std::replace(strategy.begin(), strategy.end(), '_', ' ');
  return "  " + strategy + budget_of(x);
}

/// Its children, several of a kind in one line.
void add_children(branch& to, const json_value& x) {
  for (const auto& child : items_of(x, "children")) {
    const auto count = count_at(child, {"count"});
    auto text = text_or(child.find("name"), "-");
    if (count > 1) text += fmt::format(" x {}", count);
    if (const auto role = text_or(child.find("role"), ""); !role.empty()) text += " (" + role + ")";
    if (count == 0) text += "  not running";
    if (const auto budget = budget_of(child); !budget.empty())
      text += (count == 0 ? ", " : "  ") + budget.substr(2);
    to.below.push_back({text, {}});
  }
  if (const auto more = count_at(x, {"more"}); more > 0)
    to.below.push_back({fmt::format("and {} more", more), {}});
}

/// Who sits there, or that nobody does.
branch seat_of(const json_value& x, size_t width) {
  const auto incarnation = count_at(x, {"incarnation"});
  auto text = fmt::format("{:<{}}  {:<8} incarnation {}, {}", text_or(x.find("seat"), "-"), width,
                          text_or(x.find("state"), "missing"), incarnation,
                          counted(std::max<int64_t>(incarnation - 1, 0), "restart"));
  if (const auto part = text_or(x.find("part"), ""); !part.empty()) text += ", " + part;
  if (const auto cell = text_or(x.find("cell"), ""); !cell.empty()) text += " of " + cell;
  if (x.find("pid") != nullptr)
    text += fmt::format(", pid {} on {}", count_at(x, {"pid"}), text_or(x.find("host"), "-"));
  if (const auto device = text_or(x.find("device"), ""); !device.empty())
    text += ", device " + device;
  const auto* slow = x.find("slow");
  const auto* is_slow = slow == nullptr ? nullptr : slow->get_if<bool>();
  if (is_slow != nullptr && *is_slow) text += ", slow";
  if (const auto trouble = text_or(x.find("trouble"), ""); !trouble.empty()) text += ", " + trouble;
  return {text, {}};
}

/// ", 30 with parity" where a seat holds it.
std::string with_parity(const json_value& status, const json_value& pool) {
  for (const auto& x : items_of(status, "workers"))
    if (text_or(x.find("part"), "") == "parity")
      return fmt::format(", {} with parity", count_at(pool, {"slots", "parity"}));
  return {};
}

/// A role's seats, in their order; those that are missing among them.
branch pool_of(const json_value& status, const std::string& role) {
  std::vector<const json_value*> seats;
  for (const char* list : {"workers", "missing"})
    for (const auto& x : items_of(status, list))
      if (text_or(x.find("role"), "") == role) seats.push_back(&x);
  const auto name_of = [](const json_value* x) { return text_or(x->find("seat"), "-"); };
  std::stable_sort(seats.begin(), seats.end(), [&](auto a, auto b) {
    const auto x = name_of(a), y = name_of(b);
    return x.size() != y.size() ? x.size() < y.size() : x < y; // model/2 before model/10
  });
  branch pool{"pool " + role, {}};
  if (role == "attention")
    for (const auto& p : items_of(status, "pools"))
      pool.text +=
          fmt::format("/{} by {}, {} slots used, {} cached, {} free", text_or(p.find("name"), "-"),
                      text_or(p.find("partition"), "-"), count_at(p, {"slots", "used"}),
                      count_at(p, {"slots", "cached"}), count_at(p, {"slots", "free"}))
          + with_parity(status, p);
  size_t width = 0;
  const auto more = seats.size() - std::min(seats.size(), seats_max);
  seats.resize(seats.size() - more);
  for (const auto* x : seats) width = std::max(width, name_of(x).size());
  for (const auto* x : seats) pool.below.push_back(seat_of(*x, width));
  if (more > 0) pool.below.push_back({fmt::format("and {} more", more), {}});
  return pool;
}

} // namespace

std::string status_tree(const json_value& status) {
  const auto seats = items_of(status, "workers").size();
  const auto missing = items_of(status, "missing").size();
  int64_t epoch = 0;
  const auto* epochs = status.find("epochs");
  if (const auto* pools = epochs == nullptr ? nullptr : epochs->get_if<json_value::object>())
    for (const auto& [pool, x] : *pools) epoch = std::max(epoch, count_at(x, {}));
  branch node{"node", {}};
  if (supervisor_named(status, "node") != nullptr)
    node.text += "  no restarts: when one of these exits, the process exits with 70";
  auto requests = count_at(status, {"gateway", "requests"});
  node.below.push_back({"gateway  " + counted(requests, "request"), {}});
  node.below.push_back(
      {fmt::format("membership  epoch {}, {} of {} seats taken", epoch, seats, seats + missing),
       {}});
  if (const auto* keeper = supervisor_named(status, "child_keeper")) {
    node.below.push_back({"child keeper" + strategy_of(*keeper), {}});
    add_children(node.below.back(), *keeper);
  }
  if (const auto* own = supervisor_named(status, "own_seats"))
    node.below.push_back({"own seats" + strategy_of(*own), {}});
  const auto* supervisor = supervisor_named(status, "pipeline");
  const auto restarts = counted(count_at(status, {"pipeline", "restarts"}), "restart");
  branch pipeline{fmt::format("pipeline{}, sequences: {} running, {} waiting",
                              supervisor == nullptr
                                  ? "  " + restarts
                                  : strategy_of(*supervisor) + ", " + restarts + " in all",
                              count_at(status, {"requests", "running"}),
                              count_at(status, {"requests", "waiting"})),
                  {}};
  if (supervisor != nullptr) {
    for (const auto& pool : items_of(status, "pools")) // outlives the others
      pipeline.below.push_back({"kv_allocator of pool " + text_or(pool.find("name"), "-"), {}});
    add_children(pipeline, *supervisor);
  }
  for (const char* role : {"model", "attention", "prefill"})
    if (auto pool = pool_of(status, role); !pool.below.empty())
      pipeline.below.push_back(std::move(pool));
  node.below.push_back(std::move(pipeline));
  std::string out;
  draw(node, "", out);
  return out;
}

} // namespace lamella::cli
