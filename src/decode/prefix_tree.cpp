#include "decode/prefix_tree.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/error.h"

namespace hearth::decode {

using graph::kPagePositions;

PrefixTree::PrefixTree(KvCache& cache, std::span<const int64_t> page_bytes, const Clock& clock)
    : cache_(cache), time_(clock), page_bytes_(page_bytes.begin(), page_bytes.end()) {
  for (size_t g = 0; g < page_bytes_.size(); ++g) nodes_.emplace_back(static_cast<size_t>(cache.pages_total(g)), 0);
}

PrefixTree::~PrefixTree() {
  evicts_ = nullptr;
  shrink(0);
}

void PrefixTree::refer(size_t group, int32_t page) {
  cache_.hold(group, page);
  if (nodes_[group][static_cast<size_t>(page)]++ == 0) bytes_ += page_bytes_[group];
}

void PrefixTree::release(size_t group, int32_t page) {
  cache_.drop(group, page);
  if (--nodes_[group][static_cast<size_t>(page)] == 0) bytes_ -= page_bytes_[group];
}

void PrefixTree::note_use(Node& node) {
  node.used = ++clock_;
  node.used_at = time_.monotonic();
}

PrefixTree::Path PrefixTree::walk(std::string_view space, std::span<const int32_t> ids, int64_t most) const {
  Path path;
  const auto root = roots_.find(space);
  if (root == roots_.end()) return path;
  const int64_t limit = std::min(most, static_cast<int64_t>(ids.size()));
  const Node* node = &root->second;
  while (path.length == node->end() && path.length < limit) {
    const auto next = node->children.find(ids[static_cast<size_t>(path.length)]);
    if (next == node->children.end()) break;
    node = next->second.get();
    const auto rest = ids.subspan(static_cast<size_t>(path.length), static_cast<size_t>(limit - path.length));
    const auto differ = std::mismatch(node->ids.begin(), node->ids.end(), rest.begin(), rest.end());
    path.length += differ.first - node->ids.begin();
    path.nodes.push_back(next->second.get());
  }
  return path;
}

// As a sequence, without references of its own.
Sequence PrefixTree::pages_along(const Path& path, std::span<const int32_t> ids) const {
  Sequence s = cache_.make();
  s.ids.assign(ids.begin(), ids.begin() + path.length);
  for (size_t g = 0; g < s.pages.size(); ++g) {
    std::vector<int32_t>& pages = s.pages[g];
    pages.assign(static_cast<size_t>(pages_of(path.length)), -1);
    for (const Node* node : path.nodes) {
      const auto first = static_cast<size_t>(node->begin / kPagePositions);
      for (size_t i = first; i < pages.size() && i - first < node->pages[g].size(); ++i)
        pages[i] = node->pages[g][i - first];
    }
  }
  return s;
}

Sequence PrefixTree::match(std::string_view space, std::span<const int32_t> ids, int64_t most) {
  const Path path = walk(space, ids, most);
  const Sequence found = pages_along(path, ids);
  if (cache_.reusable_length(found, path.length) != path.length) return cache_.make();
  for (Node* node : path.nodes) note_use(*node);
  return cache_.fork(found);
}

int64_t PrefixTree::match_length(std::string_view space, std::span<const int32_t> ids, int64_t most) const {
  const Path path = walk(space, ids, most);
  return cache_.reusable_length(pages_along(path, ids), path.length);
}

// Pages that the node lacks and s still has.
void PrefixTree::mend(Node& node, const Sequence& s) {
  const auto first = static_cast<size_t>(node.begin / kPagePositions);
  for (size_t g = 0; g < node.pages.size(); ++g)
    for (size_t i = 0; i < node.pages[g].size(); ++i)
      if (int32_t& mine = node.pages[g][i]; mine < 0 && s.pages[g][first + i] >= 0) {
        mine = s.pages[g][first + i];
        refer(g, mine);
      }
}

// The node keeps its first positions; the others become its only child.
void PrefixTree::split(Node& node, int64_t at) {
  auto lower = std::make_unique<Node>();
  lower->parent = &node;
  lower->begin = at;
  lower->used = node.used;
  lower->used_at = node.used_at;
  lower->ids.assign(node.ids.begin() + (at - node.begin), node.ids.end());
  lower->children = std::move(node.children);
  for (auto& [id, child] : lower->children) child->parent = lower.get();
  node.ids.resize(static_cast<size_t>(at - node.begin));
  const int64_t first = node.begin / kPagePositions;
  for (std::vector<int32_t>& pages : node.pages) {
    const size_t g = static_cast<size_t>(&pages - node.pages.data());
    lower->pages.emplace_back(pages.begin() + (at / kPagePositions - first), pages.end());
    pages.resize(static_cast<size_t>(pages_of(at) - first));
    if (at % kPagePositions != 0 && pages.back() >= 0) refer(g, pages.back());  // both reach into it
  }
  node.children.clear();
  const int32_t key = lower->ids.front();
  node.children.emplace(key, std::move(lower));
  ++entries_;
}

void PrefixTree::insert(std::string_view space, const Sequence& s) {
  if (s.length() == 0) return;
  auto root = roots_.find(space);
  if (root == roots_.end()) root = roots_.try_emplace(std::string(space)).first;
  const Path path = walk(space, s.ids, s.length());
  Node* node = path.nodes.empty() ? &root->second : path.nodes.back();
  if (path.length < node->end()) split(*node, path.length);
  for (Node* each : path.nodes) {
    mend(*each, s);
    note_use(*each);
  }
  if (path.length == s.length()) return;
  auto leaf = std::make_unique<Node>();
  leaf->parent = node;
  leaf->begin = path.length;
  leaf->ids.assign(s.ids.begin() + path.length, s.ids.end());
  note_use(*leaf);
  for (size_t g = 0; g < page_bytes_.size(); ++g) {
    leaf->pages.emplace_back(s.pages[g].begin() + path.length / kPagePositions,
                             s.pages[g].begin() + pages_of(s.length()));
    for (const int32_t page : leaf->pages[g])
      if (page >= 0) refer(g, page);
  }
  const int32_t key = leaf->ids.front();
  node->children.emplace(key, std::move(leaf));
  ++entries_;
}

void PrefixTree::show(const Node& leaf,
                      const std::function<void(std::string_view space, const Sequence& s)>& to) const {
  Path path;
  const Node* node = &leaf;
  for (; node->parent; node = node->parent) path.nodes.push_back(const_cast<Node*>(node));
  std::ranges::reverse(path.nodes);
  std::vector<int32_t> ids;
  for (const Node* each : path.nodes) ids.insert(ids.end(), each->ids.begin(), each->ids.end());
  path.length = leaf.end();
  for (const auto& [space, root] : roots_)
    if (&root == node) to(space, pages_along(path, ids));
}

PrefixTree::Node* PrefixTree::remove(Node* leaf) {
  for (size_t g = 0; g < leaf->pages.size(); ++g)
    for (const int32_t page : leaf->pages[g])
      if (page >= 0) release(g, page);
  Node* parent = leaf->parent;
  parent->children.erase(leaf->ids.front());
  --entries_;
  return parent->parent && parent->children.empty() ? parent : nullptr;
}

template <class Worth, class Enough>
bool PrefixTree::drop_leaves(const Worth& worth, const Enough& enough) {
  if (enough()) return true;
  const auto later = [](const Node* a, const Node* b) { return a->used > b->used; };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> leaves(later);
  std::vector<Node*> stack;
  for (auto& [space, root] : roots_) stack.push_back(&root);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node->children.empty() && node->parent) leaves.push(node);
    for (auto& [id, child] : node->children) stack.push_back(child.get());
  }
  while (!leaves.empty() && !enough()) {
    Node* leaf = leaves.top();
    leaves.pop();
    if (!worth(*leaf)) continue;
    if (Node* parent = remove(leaf)) leaves.push(parent);
  }
  return enough();
}

bool PrefixTree::make_room(size_t group, int64_t pages) {
  // What somebody else refers to as well is not freed by giving it up. A page that two
  // nodes share is free when both are gone.
  const auto frees = [&](const Node& leaf) {
    return std::ranges::any_of(leaf.pages[group], [&](int32_t page) {
      return page >= 0 && cache_.references(group, page) == nodes_[group][static_cast<size_t>(page)];
    });
  };
  // Where a node begins inside of a page it has a copy of it: then its parent's is freed only once the node is gone,
  // though the node's own pages may be in use.
  const auto bares = [&](const Node& leaf) {
    for (const Node* node = &leaf; node->parent; node = node->parent)
      if (frees(*node)) return true;
    return false;
  };
  const auto enough = [&] { return cache_.pages_free(group) >= pages; };
  return drop_leaves(frees, enough) || drop_leaves(bares, enough);
}

void PrefixTree::forget(std::string_view space) {
  const auto root = roots_.find(space);
  if (root == roots_.end()) return;
  std::vector<Node*> order = {&root->second};  // parents before children
  for (size_t i = 0; i < order.size(); ++i)
    for (auto& [id, child] : order[i]->children) order.push_back(child.get());
  for (size_t i = order.size(); i-- > 1;) remove(order[i]);
  roots_.erase(root);
}

void PrefixTree::shrink(int64_t bytes) {
  const auto any = [&](const Node& leaf) {
    if (evicts_) show(leaf, evicts_);
    return true;
  };
  drop_leaves(any, [&] { return bytes_ <= bytes; });
  std::erase_if(roots_, [](const auto& root) { return root.second.children.empty(); });
}

void PrefixTree::demote(std::chrono::nanoseconds unused_for,
                        const std::function<Demotion(std::string_view space, const Sequence& s)>& look) {
  const std::chrono::nanoseconds now = time_.monotonic();
  Demotion last = Demotion::stays;
  const auto goes = [&](const Node& leaf) {
    if (now - leaf.used_at < unused_for) last = Demotion::enough;  // leaves come in the order of their last use
    else show(leaf, [&](std::string_view space, const Sequence& s) { last = look(space, s); });
    return last == Demotion::goes;
  };
  drop_leaves(goes, [&] { return last == Demotion::enough; });
  std::erase_if(roots_, [](const auto& root) { return root.second.children.empty(); });
}

}  // namespace hearth::decode
