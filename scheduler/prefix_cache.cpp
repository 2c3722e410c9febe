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

prefix_cache::place prefix_cache::walk(node& root, std::span<const token_id> tokens,
                                       nanoseconds now) {
  place result{&root, 0, 0};
  while (result.matched < tokens.size()) {
    const auto rest = tokens.subspan(result.matched);
    const auto next = result.at->children.find(rest.front());
    if (next == result.at->children.end()) break;
    result.at = next->second.get();
    result.inside = common(result.at->tokens, rest);
    result.matched += result.inside;
    touch(*result.at, now);
    if (result.inside < result.at->tokens.size()) break;
  }
  return result;
}

std::vector<slot_run> prefix_cache::find(uint64_t scope, std::span<const token_id> tokens,
                                         nanoseconds now) {
  const auto root = roots_.find(scope);
  if (root == roots_.end()) return {};
  const auto end = walk(*root->second, tokens, now);
  if (end.matched < least_tokens) return {};
  std::vector<const node*> path;
  for (const auto* x = end.at; x != nullptr; x = x->parent) path.push_back(x);
  std::vector<slot_run> runs;
  for (auto x = path.rbegin(); x != path.rend(); ++x) append(runs, (*x)->runs);
  return prefix(runs, end.matched);
}

prefix_cache::node& prefix_cache::add(node& parent, std::span<const token_id> tokens,
                                      std::vector<slot_run> runs, nanoseconds now) {
  if (is_leaf(parent)) leaves_.erase(key_of(parent));
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
  auto end = walk(*root, tokens, now);
  if (end.matched == tokens.size()) return;
  auto rest = behind(prefix(runs, static_cast<uint32_t>(tokens.size())), end.matched);
  pool.cache(rest);
  slots_ += length_of(rest);
  const auto more = tokens.subspan(end.matched);
  auto* at = end.at;
  if (end.inside < at->tokens.size()) {
    split(*at, end.inside);
    at = at->parent;
  }
  if (is_leaf(*at)) { // the sequence goes on where another ended
    at->tokens.insert(at->tokens.end(), more.begin(), more.end());
    append(at->runs, rest);
  } else {
    add(*at, more, std::move(rest), now);
  }
}

/// Gives up the last tokens of a leaf.
void prefix_cache::cut(slot_pool& pool, node& leaf, uint32_t tokens) {
  const auto left = static_cast<uint32_t>(leaf.tokens.size()) - tokens;
  pool.uncache(behind(leaf.runs, left));
  slots_ -= tokens;
  leaf.tokens.resize(left);
  leaf.runs = prefix(leaf.runs, left);
  if (left == 0) unlink(leaf);
}

void prefix_cache::unlink(node& leaf) {
  leaves_.erase(key_of(leaf));
  auto& parent = *leaf.parent;
  std::erase_if(parent.children, [&](const auto& x) { return x.second.get() == &leaf; });
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

} // namespace lamella::scheduler
