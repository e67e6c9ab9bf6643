// The states that a text can put a pushdown automaton in, made as they are met. Internal to text/grammar.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/program.h"
#include "text/grammar/vocabulary.h"

namespace hearth::text::grammar {

// One way of reading the text so far: inside a terminal, with what is to be done behind it on a stack.
struct Thread {
  uint32_t inst, state, count, stack;
  auto operator<=>(const Thread&) const = default;
};

// All ways of reading one text. Equal ones are one object per generation.
struct Config {
  std::vector<Thread> threads;  // rising
  bool accepting = false;
  std::vector<int32_t> next;  // [256] when known: config, kDead or kUnknown
};

// Configs and stacks since the last time that there were too many.
struct Generation {
  struct Frame {
    uint32_t parent, inst, count, depth;
  };
  struct FrameHash {
    size_t operator()(const Frame& f) const;
  };
  struct FrameEqual {
    bool operator()(const Frame& a, const Frame& b) const {
      return a.parent == b.parent && a.inst == b.inst && a.count == b.count;
    }
  };
  std::vector<Frame> frames{{0, 0, 0, 0}};  // 0: the empty stack
  std::unordered_map<Frame, uint32_t, FrameHash, FrameEqual> frame_numbers;
  std::vector<std::unique_ptr<Config>> configs;
  std::unordered_multimap<uint64_t, uint32_t> config_numbers;
  std::unordered_map<uint32_t, std::vector<uint64_t>> masks;  // by config
  size_t threads = 0;
};

// A place in the automaton: stays valid when its generation has been left.
struct Place {
  std::shared_ptr<Generation> generation;
  uint32_t config = 0;
  const Config& get() const { return *generation->configs[config]; }
};

// One thread at a time. Memory is bounded: a new generation begins when the old one is full.
class Automaton {
 public:
  Automaton(GrammarPtr grammar, std::shared_ptr<const VocabularyIndex> vocabulary);

  Place start();
  // False when no text goes on with this byte; `at` is as before then.
  // Throws Error{invalid_argument} when the text can be read in too many ways at once.
  bool step(Place& at, uint8_t byte);
  bool step(Place& at, std::string_view bytes);
  // Ids whose bytes keep the text readable; end ids are left to the caller. The span lives until the next call.
  std::span<const uint64_t> mask(Place& at);

  const VocabularyIndex& vocabulary() const { return *vocabulary_; }
  // What may stand at a place, for messages: up to a few bytes.
  std::string expected(const Place& at) const;

 private:
  static constexpr int32_t kUnknown = -2, kDead = -1;

  struct Task {
    uint32_t inst, stack, fresh;
    bool operator==(const Task&) const = default;
  };

  void adopt(Place& at);
  void keep_bounded(Place& at);
  int32_t step_config(uint32_t config, uint8_t byte);
  void close(uint32_t inst, uint32_t stack);
  void enter_loop(uint32_t inst, uint32_t count, uint32_t stack, uint32_t fresh);
  bool seen(const Task& task);
  void add_thread(const Thread& thread);
  int32_t intern();
  uint32_t push(uint32_t inst, uint32_t count, uint32_t parent);
  void begin();

  void mask_thread(const Thread& thread, std::vector<uint64_t>& bits);
  void mask_counted(const Thread& thread, const Terminal& t, const TokenEffects& effects, std::vector<uint64_t>& bits);
  void walk(const TokenTrie& trie, uint32_t config, uint32_t units_min, uint32_t units_max,
            std::vector<uint64_t>& bits);
  int32_t behind(const Thread& thread);

  const GrammarPtr grammar_;
  const Program& p_;
  const std::shared_ptr<const VocabularyIndex> vocabulary_;
  std::shared_ptr<Generation> g_;

  // Of the config being made.
  std::vector<Thread> threads_;
  bool accepting_ = false;
  std::vector<Task> open_;
  std::vector<Task> seen_;         // open addressing
  std::vector<uint32_t> seen_at_;  // slots in use
};

}  // namespace hearth::text::grammar
