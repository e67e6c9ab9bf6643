#include "text/grammar/automaton.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace hearth::text::grammar {

namespace {

constexpr size_t kConfigsMax = 2'048, kFramesMax = 32'768, kThreadsMax = 1 << 18, kMasksMax = 24;
constexpr size_t kReadingsMax = 16'384;  // threads of one config
constexpr uint32_t kDepthMax = 4'096;    // frames of a stack

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}

}  // namespace

size_t Generation::FrameHash::operator()(const Frame& f) const {
  return static_cast<size_t>(mix(mix(f.parent, f.inst), f.count));
}

Automaton::Automaton(GrammarPtr grammar, std::shared_ptr<const VocabularyIndex> vocabulary)
    : grammar_(std::move(grammar)),
      p_(grammar_->program()),
      vocabulary_(std::move(vocabulary)),
      g_(std::make_shared<Generation>()),
      seen_(64, Task{~0u, 0, 0}) {}

Place Automaton::start() {
  Place at{g_, 0};
  begin();
  close(p_.start, 0);
  const int32_t config = intern();
  HEARTH_CHECK(config >= 0, "a grammar that accepts nothing was compiled");
  at.config = static_cast<uint32_t>(config);
  return at;
}

void Automaton::begin() {
  threads_.clear();
  open_.clear();
  accepting_ = false;
  for (const uint32_t slot : seen_at_) seen_[slot].inst = ~0u;
  seen_at_.clear();
}

bool Automaton::seen(const Task& task) {
  if (2 * seen_at_.size() >= seen_.size()) {
    std::vector<Task> old;
    for (const uint32_t slot : seen_at_) old.push_back(seen_[slot]);
    seen_.assign(4 * seen_.size(), Task{~0u, 0, 0});
    seen_at_.clear();
    for (const Task& t : old) seen(t);
  }
  size_t slot = mix(mix(task.inst, task.stack), task.fresh) % seen_.size();
  for (; seen_[slot].inst != ~0u; slot = (slot + 1) % seen_.size())
    if (seen_[slot] == task) return true;
  seen_[slot] = task;
  seen_at_.push_back(static_cast<uint32_t>(slot));
  return false;
}

uint32_t Automaton::push(uint32_t inst, uint32_t count, uint32_t parent) {
  const Generation::Frame frame{parent, inst, count, g_->frames[parent].depth + 1};
  const auto [found, made] = g_->frame_numbers.try_emplace(frame, static_cast<uint32_t>(g_->frames.size()));
  if (made) g_->frames.push_back(frame);
  return found->second;
}

void Automaton::add_thread(const Thread& thread) {
  threads_.push_back(thread);
  if (threads_.size() > kReadingsMax)
    fail(ErrorKind::invalid_argument, "the grammar is too ambiguous: a text can be read in more than {} ways at once",
         kReadingsMax);
}

void Automaton::enter_loop(uint32_t inst, uint32_t count, uint32_t stack, uint32_t fresh) {
  const Inst& loop = p_.insts[inst];
  if (count >= loop.min) open_.push_back({loop.b, stack, fresh});
  const bool unbounded = loop.max == kUnbounded;
  if ((unbounded || count < loop.max) && g_->frames[stack].depth < kDepthMax)
    open_.push_back({loop.a, push(inst, unbounded ? std::min(count, loop.min) : count, stack), fresh + 1});
}

// Threads of all that can come next without a byte. `fresh` counts the frames on top that were pushed on the way: a
// loop body that ends on its own fresh frame took no byte, so the copies of it that are still owed need none either.
void Automaton::close(uint32_t inst, uint32_t stack) {
  open_.push_back({inst, stack, 0});
  while (!open_.empty()) {
    const Task t = open_.back();
    open_.pop_back();
    if (seen(t)) continue;
    const Inst& i = p_.insts[t.inst];
    switch (i.op) {
      case Op::term: {
        const Terminal& terminal = p_.terminals[i.a];
        if (terminal.counted ? terminal.min == 0 : terminal.dfa->accept[0] != 0)
          open_.push_back({i.b, t.stack, t.fresh});
        if (terminal.dfa->has_edges(0) && terminal.max > 0) add_thread({t.inst, 0, 0, t.stack});
        break;
      }
      case Op::call:
        // A call at the end of a rule needs no frame: lists by right recursion stay flat.
        if (p_.insts[i.b].op == Op::ret) open_.push_back({p_.entry[i.a], t.stack, t.fresh});
        else if (g_->frames[t.stack].depth < kDepthMax)
          open_.push_back({p_.entry[i.a], push(t.inst, 0, t.stack), t.fresh + 1});
        break;
      case Op::split:
        for (uint32_t k = 0; k < i.b; ++k) open_.push_back({p_.targets[i.a + k], t.stack, t.fresh});
        break;
      case Op::loop: enter_loop(t.inst, 0, t.stack, t.fresh); break;
      case Op::ret: {
        if (t.stack == 0) {
          accepting_ = true;
          break;
        }
        const Generation::Frame frame = g_->frames[t.stack];
        const uint32_t fresh = t.fresh > 0 ? t.fresh - 1 : 0;
        if (p_.insts[frame.inst].op == Op::call) open_.push_back({p_.insts[frame.inst].b, frame.parent, fresh});
        else if (t.fresh > 0) open_.push_back({p_.insts[frame.inst].b, frame.parent, fresh});
        else enter_loop(frame.inst, frame.count + 1, frame.parent, 0);
        break;
      }
    }
  }
}

int32_t Automaton::intern() {
  std::sort(threads_.begin(), threads_.end());
  threads_.erase(std::unique(threads_.begin(), threads_.end()), threads_.end());
  if (threads_.empty() && !accepting_) return kDead;
  uint64_t hash = accepting_;
  for (const Thread& t : threads_)
    hash = mix(hash, mix(uint64_t{t.inst} << 32 | t.state, uint64_t{t.count} << 32 | t.stack));
  const auto [begin, end] = g_->config_numbers.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Config& c = *g_->configs[it->second];
    if (c.accepting == accepting_ && c.threads == threads_) return static_cast<int32_t>(it->second);
  }
  auto config = std::make_unique<Config>();
  config->threads = threads_;
  config->accepting = accepting_;
  g_->threads += threads_.size();
  g_->configs.push_back(std::move(config));
  const auto number = static_cast<uint32_t>(g_->configs.size() - 1);
  g_->config_numbers.emplace(hash, number);
  return static_cast<int32_t>(number);
}

int32_t Automaton::step_config(uint32_t config, uint8_t byte) {
  if (!g_->configs[config]->next.empty() && g_->configs[config]->next[byte] != kUnknown)
    return g_->configs[config]->next[byte];
  begin();
  for (const Thread& t : g_->configs[config]->threads) {
    const Inst& inst = p_.insts[t.inst];
    const Terminal& terminal = p_.terminals[inst.a];
    const int32_t next = terminal.dfa->step(t.state, byte);
    if (next < 0) continue;
    const auto state = static_cast<uint32_t>(next);
    const bool accept = terminal.dfa->accept[state] != 0;
    if (!terminal.counted) {
      if (accept) close(inst.b, t.stack);
      if (terminal.dfa->has_edges(state)) add_thread({t.inst, state, 0, t.stack});
    } else if (!accept) {
      add_thread({t.inst, state, t.count, t.stack});
    } else {
      const bool unbounded = terminal.max == kUnbounded;
      const uint32_t count = unbounded ? std::min(t.count + 1, terminal.min) : t.count + 1;
      if (count >= terminal.min) close(inst.b, t.stack);
      if (unbounded || count < terminal.max) add_thread({t.inst, 0, count, t.stack});
    }
  }
  const int32_t number = intern();
  Config& from = *g_->configs[config];
  if (from.next.empty()) from.next.assign(256, kUnknown);
  return from.next[byte] = number;
}

// The same place in the present generation.
void Automaton::adopt(Place& at) {
  if (at.generation == g_) return;
  const std::shared_ptr<Generation> old = at.generation;
  const Config& from = *old->configs[at.config];
  begin();
  accepting_ = from.accepting;
  std::unordered_map<uint32_t, uint32_t> moved{{0, 0}};
  std::vector<uint32_t> chain;
  for (Thread t : from.threads) {
    for (uint32_t s = t.stack; !moved.contains(s); s = old->frames[s].parent) chain.push_back(s);
    for (; !chain.empty(); chain.pop_back()) {
      const Generation::Frame& f = old->frames[chain.back()];
      moved[chain.back()] = push(f.inst, f.count, moved[f.parent]);
    }
    t.stack = moved[t.stack];
    threads_.push_back(t);
  }
  at = {g_, static_cast<uint32_t>(intern())};
}

void Automaton::keep_bounded(Place& at) {
  if (g_->configs.size() > kConfigsMax || g_->frames.size() > kFramesMax || g_->threads > kThreadsMax)
    g_ = std::make_shared<Generation>();
  adopt(at);
}

bool Automaton::step(Place& at, uint8_t byte) { return step(at, std::string_view(reinterpret_cast<char*>(&byte), 1)); }

bool Automaton::step(Place& at, std::string_view bytes) {
  keep_bounded(at);
  uint32_t config = at.config;
  for (const char c : bytes) {
    const int32_t next = step_config(config, static_cast<uint8_t>(c));
    if (next < 0) return false;
    config = static_cast<uint32_t>(next);
  }
  at.config = config;
  return true;
}

std::span<const uint64_t> Automaton::mask(Place& at) {
  keep_bounded(at);
  if (const auto found = g_->masks.find(at.config); found != g_->masks.end()) return found->second;
  if (g_->masks.size() >= kMasksMax) g_->masks.clear();
  std::vector<uint64_t> bits(vocabulary_->words(), 0);
  const std::vector<Thread> threads = g_->configs[at.config]->threads;  // configs are made on the way
  for (const Thread& t : threads) mask_thread(t, bits);
  return g_->masks[at.config] = std::move(bits);
}

// The config behind a thread's terminal; kDead when there is none.
int32_t Automaton::behind(const Thread& thread) {
  begin();
  close(p_.insts[thread.inst].b, thread.stack);
  if (threads_.empty()) return kDead;  // nothing can follow: no token reaches beyond
  return intern();
}

void Automaton::mask_thread(const Thread& thread, std::vector<uint64_t>& bits) {
  const Terminal& t = p_.terminals[p_.insts[thread.inst].a];
  const std::shared_ptr<const TokenEffects> effects = vocabulary_->effects(t.dfa, thread.state, t.counted, t.follow);
  if (t.counted) return mask_counted(thread, t, *effects, bits);
  for (size_t w = 0; w < effects->inside.size(); ++w) bits[w] |= effects->inside[w];
  for (const int32_t id : effects->few) bits[static_cast<size_t>(id) / 64] |= 1ull << (id % 64);
  if (effects->tails.size() == 0) return;
  if (const int32_t next = behind(thread); next >= 0)
    walk(effects->tails, static_cast<uint32_t>(next), 0, kUnbounded, bits);
}

void Automaton::mask_counted(const Thread& thread, const Terminal& t, const TokenEffects& effects,
                             std::vector<uint64_t>& bits) {
  const uint32_t left = t.max == kUnbounded ? kUnbounded : t.max - thread.count;
  const uint32_t owed = t.min > thread.count ? t.min - thread.count : 0;
  const uint32_t need_max = effects.by_need.empty() ? 0 : effects.by_need.back().first;
  const int32_t next = behind(thread);
  if (left < need_max && next >= 0 && t.follow.meets(t.dfa->first_bytes(0))) {
    // What follows may look like one more unit, so tokens that are too long to stay inside may still leave in time:
    // each is followed byte by byte.
    begin();
    threads_.push_back(thread);
    walk(vocabulary_->trie(), static_cast<uint32_t>(intern()), 0, kUnbounded, bits);
    return;
  }
  if (left >= need_max) {
    for (size_t w = 0; w < effects.inside.size(); ++w) bits[w] |= effects.inside[w];
    for (const int32_t id : effects.few) bits[static_cast<size_t>(id) / 64] |= 1ull << (id % 64);
  } else if (left < effects.ladder.size()) {
    for (size_t w = 0; w < bits.size(); ++w) bits[w] |= effects.ladder[left][w];
  } else {
    // By rising need: from the last step of the ladder on, or from the first token without one.
    size_t at = 0;
    if (!effects.ladder.empty()) {
      for (size_t w = 0; w < bits.size(); ++w) bits[w] |= effects.ladder.back()[w];
      const auto last = static_cast<uint32_t>(effects.ladder.size() - 1);
      at = static_cast<size_t>(
          std::upper_bound(effects.by_need.begin(), effects.by_need.end(), std::pair(last, INT32_MAX)) -
          effects.by_need.begin());
    }
    for (; at < effects.by_need.size() && effects.by_need[at].first <= left; ++at)
      bits[static_cast<size_t>(effects.by_need[at].second) / 64] |= 1ull << (effects.by_need[at].second % 64);
  }
  if (next >= 0 && effects.tails.size() > 0) walk(effects.tails, static_cast<uint32_t>(next), owed, left, bits);
}

// Sets the bits of the texts that can be read from a config on, of those whose units are within bounds.
void Automaton::walk(const TokenTrie& trie, uint32_t config, uint32_t units_min, uint32_t units_max,
                     std::vector<uint64_t>& bits) {
  std::vector<int32_t> path(trie.depth_max + 1);
  path[0] = static_cast<int32_t>(config);
  for (size_t node = 0; node < trie.size();) {
    const size_t depth = trie.depth[node];
    const int32_t next = step_config(static_cast<uint32_t>(path[depth - 1]), trie.byte[node]);
    if (next < 0) {
      node = trie.end[node];
      continue;
    }
    path[depth] = next;
    for (const TokenTrie::Item& item : trie.at(node))
      if (item.units >= units_min && item.units <= units_max)
        bits[static_cast<size_t>(item.id) / 64] |= 1ull << (item.id % 64);
    ++node;
  }
}

std::string Automaton::expected(const Place& at) const {
  std::string out;
  ByteSet set;
  for (const Thread& t : at.get().threads) {
    const ByteSet first = p_.terminals[p_.insts[t.inst].a].dfa->first_bytes(t.state);
    for (size_t w = 0; w < 4; ++w) set.words[w] |= first.words[w];
  }
  for (int b = 0; b < 256 && out.size() < 16; ++b)
    if (set.contains(static_cast<uint8_t>(b))) out += static_cast<char>(b);
  return printable(out);
}

}  // namespace hearth::text::grammar
