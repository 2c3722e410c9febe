#include "scheduler/prefix_cache.hpp"

#include "scheduler/pull_plan.hpp"

#include <algorithm>

namespace lamella::scheduler {

namespace {

uint32_t common(std::span<const model::token_id> a, std::span<const model::token_id> b) {
  const auto most = std::min(a.size(), b.size());
  size_t same = 0;
  while (same < most && a[same] == b[same]) ++same;
  return static_cast<uint32_t>(same);
}

/// Positions [first, end) of what lies in `runs`.
std::vector<slot_run> behind(std::span<const slot_run> runs, uint32_t first) {
  std::vector<slot_run> result;
  append_positions(result, runs, first, length_of(runs) - first);
  return result;
}

/// How many slots at the end nobody else refers to; counts up to `most`.
uint32_t idle_end(const slot_pool& pool, const std::vector<slot_run>& runs, uint32_t most) {
  uint32_t idle = 0;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    for (auto slot = run->first + run->length; slot-- > run->first; ++idle)
      if (idle == most || pool.references(slot) > 1) return idle;
  return idle;
}

/// Slots of the runs that somebody but the cache refers to.
uint32_t in_use(const slot_pool& pool, const std::vector<slot_run>& runs) {
  uint32_t count = 0;
  for (const auto& run : runs)
    for (auto slot = run.first; slot < run.first + run.length; ++slot)
      count += pool.references(slot) > 1 ? 1 : 0;
  return count;
}

} // namespace

/// Leaf by leaf: what frees its children by itself would nest as deep as they do.
prefix_cache::~prefix_cache() {
  while (!leaves_.empty()) unlink(*leaves_.begin()->second);
}

void prefix_cache::touch(node& x, nanoseconds now) {
  if (is_leaf(x)) leaves_.erase(key_of(x));
  x.used = std::max(x.used, now);
  if (is_leaf(x)) leaves_.emplace(key_of(x), &x);
}

prefix_cache::place prefix_cache::walk(node& root, std::span<const token_id> tokens) {
  place result{&root, 0, 0};
  while (result.matched < tokens.size() && result.inside == result.at->tokens.size()) {
    const auto rest = tokens.subspan(result.matched);
    const auto next = result.at->children.find(rest.front());
    if (next == result.at->children.end()) break;
    result.at = next->second.get();
    result.inside = common(result.at->tokens, rest);
    result.matched += result.inside;
  }
  return result;
}

std::vector<slot_run> prefix_cache::runs_to(const place& end) {
  if (end.matched < least_tokens) return {};
  std::vector<const node*> path;
  for (const auto* x = end.at; x != nullptr; x = x->parent) path.push_back(x);
  std::vector<slot_run> runs;
  for (auto x = path.rbegin(); x != path.rend(); ++x) append(runs, (*x)->runs);
  return prefix(runs, end.matched);
}

/// The same walk, as a use: it ends at the end of a node, and what is behind that stays as old as
/// it was.
prefix_cache::place prefix_cache::enter(node& root, std::span<const token_id> tokens,
                                        nanoseconds now) {
  auto end = walk(root, tokens);
  if (end.inside < end.at->tokens.size()) {
    split(*end.at, end.inside);
    end.at = end.at->parent;
  }
  for (auto* x = end.at; x->parent != nullptr; x = x->parent) touch(*x, now);
  return end;
}

std::vector<slot_run> prefix_cache::find(uint64_t scope, std::span<const token_id> tokens,
                                         nanoseconds now) {
  const auto root = roots_.find(scope);
  if (root == roots_.end() || walk(*root->second, tokens).matched < least_tokens) return {};
  return runs_to(enter(*root->second, tokens, now));
}

std::vector<slot_run> prefix_cache::look(uint64_t scope, std::span<const token_id> tokens) const {
  const auto root = roots_.find(scope);
  if (root == roots_.end()) return {};
  return runs_to(walk(*root->second, tokens));
}

prefix_cache::node& prefix_cache::add(node& parent, std::span<const token_id> tokens,
                                      std::vector<slot_run> runs, nanoseconds now) {
  auto made = std::make_unique<node>();
  auto& x = *made;
  x.number = ++numbers_;
  x.scope = parent.scope;
  x.parent = &parent;
  x.tokens.assign(tokens.begin(), tokens.end());
  x.runs = std::move(runs);
  x.used = now;
  parent.children.emplace(tokens.front(), std::move(made));
  leaves_.emplace(key_of(x), &x);
  return x;
}

/// Its first `at` tokens become a node of their own above it.
void prefix_cache::split(node& x, uint32_t at) {
  auto& seat = x.parent->children.at(x.tokens.front());
  auto below = std::move(seat);
  seat = std::make_unique<node>();
  auto& above = *seat;
  above.number = ++numbers_;
  above.scope = x.scope;
  above.parent = x.parent;
  above.tokens.assign(x.tokens.begin(), x.tokens.begin() + at);
  above.runs = prefix(x.runs, at);
  above.used = x.used;
  x.parent = &above;
  x.tokens.erase(x.tokens.begin(), x.tokens.begin() + at);
  x.runs = behind(x.runs, at);
  above.children.emplace(x.tokens.front(), std::move(below));
}

void prefix_cache::keep(slot_pool& pool, uint64_t scope, std::span<const token_id> tokens,
                        std::span<const slot_run> runs, nanoseconds now) {
  if (tokens.size() < least_tokens) return;
  auto& root = roots_[scope];
  if (!root) {
    root = std::make_unique<node>();
    root->scope = scope;
  }
  const auto end = enter(*root, tokens, now);
  if (end.matched == tokens.size()) return;
  auto rest = behind(prefix(runs, static_cast<uint32_t>(tokens.size())), end.matched);
  pool.cache(rest);
  slots_ += length_of(rest);
  const auto more = tokens.subspan(end.matched);
  if (is_leaf(*end.at)) { // the sequence goes on where another ended
    end.at->tokens.insert(end.at->tokens.end(), more.begin(), more.end());
    append(end.at->runs, rest);
  } else {
    add(*end.at, more, std::move(rest), now);
  }
}

/// Gives up the last tokens of a leaf.
void prefix_cache::cut(slot_pool& pool, node& leaf, uint32_t tokens) {
  const auto left = static_cast<uint32_t>(leaf.tokens.size()) - tokens;
  pool.uncache(behind(leaf.runs, left));
  slots_ -= tokens;
  if (left == 0) return unlink(leaf);
  leaf.tokens.resize(left);
  leaf.runs = prefix(leaf.runs, left);
}

void prefix_cache::unlink(node& leaf) {
  leaves_.erase(key_of(leaf));
  auto& parent = *leaf.parent;
  parent.children.erase(leaf.tokens.front());
  if (!parent.children.empty()) return;
  if (parent.parent == nullptr)
    roots_.erase(parent.scope);
  else
    leaves_.emplace(key_of(parent), &parent);
}

void prefix_cache::make_room(slot_pool& pool, uint32_t free) {
  while (pool.free() < free && pool.cached() > 0) {
    auto leaf = std::find_if(leaves_.begin(), leaves_.end(),
                             [&](const auto& x) { return idle_end(pool, x.second->runs, 1) > 0; });
    if (leaf == leaves_.end()) { // what is idle lies before what is not
      cut(pool, *leaves_.begin()->second,
          static_cast<uint32_t>(leaves_.begin()->second->tokens.size()));
      continue;
    }
    auto& x = *leaf->second;
    cut(pool, x, idle_end(pool, x.runs, free - pool.free()));
  }
}

void prefix_cache::expire(slot_pool& pool, nanoseconds before) {
  while (!leaves_.empty() && leaves_.begin()->first.first < before) {
    auto& leaf = *leaves_.begin()->second;
    cut(pool, leaf, static_cast<uint32_t>(leaf.tokens.size()));
  }
}

void prefix_cache::forget(slot_pool& pool, const slot_set& lost) {
  struct visit {
    node* x;
    bool doomed;
  };
  std::vector<visit> open;
  std::vector<node*> doomed; // parents before their children
  for (const auto& [scope, root] : roots_) open.push_back({root.get(), false});
  while (!open.empty()) {
    auto [x, gone] = open.back();
    open.pop_back();
    gone |= lost.meets(x->runs);
    if (gone) doomed.push_back(x);
    for (const auto& [token, child] : x->children) open.push_back({child.get(), gone});
  }
  for (auto x = doomed.rbegin(); x != doomed.rend(); ++x)
    cut(pool, **x, static_cast<uint32_t>((*x)->tokens.size()));
}

void prefix_cache::clear(slot_pool& pool) {
  while (!leaves_.empty()) {
    auto& leaf = *leaves_.begin()->second;
    cut(pool, leaf, static_cast<uint32_t>(leaf.tokens.size()));
  }
}

std::optional<uint32_t> table_with(std::span<const slot_pool> pools,
                                   std::span<const prefix_cache> caches, uint64_t scope,
                                   std::span<const model::token_id> tokens, uint64_t slots,
                                   uint32_t keep_free) {
  const auto load = [](const slot_pool& x) { return x.used() - x.cached(); };
  auto least = ~0u;
  for (const auto& x : pools)
    if (x.slots() > 0) least = std::min(least, load(x));
  auto most = static_cast<uint32_t>(tokens.size() / 2);
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < pools.size(); ++i) {
    if (pools[i].slots() == 0 || load(pools[i]) - least > pools[i].slots() / 4) continue;
    const auto runs = caches[i].look(scope, tokens);
    const auto found = length_of(runs);
    // What others use as well is neither free nor has to be.
    if (found <= most
        || uint64_t{pools[i].free()} + pools[i].cached() + in_use(pools[i], runs)
               < slots + keep_free)
      continue;
    most = found;
    best = i;
  }
  return best;
}

} // namespace lamella::scheduler
