// Byte-pair encoding by ranks (Sennrich, Haddow & Birch 2016): merge the neighbouring pair of lowest rank, the leftmost
// among equals, until no pair is in the list.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/model.h"
#include "text/tokenizer/piece_index.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

// (left, right) to (rank, result).
class MergeTable {
 public:
  struct Found {
    int32_t rank = INT32_MAX;
    int32_t result = -1;
  };

  explicit MergeTable(size_t merges) {
    size_t size = 16;
    while (size < merges * 2) size *= 2;
    slots_.resize(size);
  }

  // The first rank of a pair counts.
  void insert(int32_t left, int32_t right, Found merge) {
    const uint64_t key = key_of(left, right);
    size_t slot = hash(key);
    for (; slots_[slot].key != kEmpty; slot = (slot + 1) & (slots_.size() - 1))
      if (slots_[slot].key == key) return;
    slots_[slot] = {key, merge};
  }

  Found find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t slot = hash(key);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Found merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t hash(uint64_t key) const {
    key *= 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(key ^ key >> 32) & (slots_.size() - 1);
  }
  std::vector<Slot> slots_;
};

class Bpe : public WordModel {
 public:
  explicit Bpe(const ModelOptions& o) : t_(o.tables), bytes_(o.words_are_bytes), merges_(o.tables.merges.size()) {
    for (size_t rank = 0; rank < t_.merges.size(); ++rank) {
      const Merge& m = t_.merges[rank];
      if (!o.special[static_cast<size_t>(m.result)])
        merges_.insert(m.left, m.right, {static_cast<int32_t>(rank), m.result});
    }
    if (bytes_) {
      byte_ids_.fill(-1);
      if (t_.ignore_merges) words_.resize(t_.pieces.size());
      for (size_t id = 0; id < t_.pieces.size(); ++id) {
        // A single byte is spelled with one character, of two bytes at most.
        const bool single = t_.pieces[id].size() <= 2;
        if (o.special[id] || t_.pieces[id].empty() || (!single && !t_.ignore_merges)) continue;
        std::optional<std::string> spelled = bytes_of_alphabet(t_.pieces[id]);
        if (!spelled) continue;
        if (spelled->size() == 1) byte_ids_[static_cast<unsigned char>((*spelled)[0])] = static_cast<int32_t>(id);
        if (t_.ignore_merges) words_[id] = *std::move(spelled);
      }
    }
    const std::vector<std::string>& pieces = bytes_ ? words_ : t_.pieces;
    if (!bytes_ || t_.ignore_merges) {
      index_.emplace(pieces);
      for (size_t id = 0; id < pieces.size(); ++id)
        if (!o.special[id] && !pieces[id].empty()) index_->insert(static_cast<int32_t>(id));
    }
    if (t_.byte_fallback) fallback_ = byte_piece_ids(t_);
  }

  void encode(std::string_view word, std::vector<int32_t>& out) const override {
    if (t_.ignore_merges)
      if (const int32_t id = index_->find(word); id >= 0) {
        out.push_back(id);
        return;
      }
    const size_t begin = out.size();
    if (bytes_) start_with_bytes(word, out);
    else start_with_characters(word, out);
    // `out` from `begin` holds the first symbols and then, shortened, the merged ones.
    if (out.size() - begin <= kScanMax) merge_by_scan(out, begin);
    else merge_by_heap(out, begin);
  }

 private:
  static constexpr size_t kScanMax = 32;  // up to here a scan for the best pair beats a heap

  // Unknown symbols, one or fused, as the flags of the file ask.
  struct Unknown {
    const TokenizerTables& t;
    bool pending = false;
    void add(std::vector<int32_t>& out) {
      if (!t.unk) return;  // without an unknown piece such symbols vanish
      if (pending && !t.fuse_unk) out.push_back(*t.unk);
      pending = true;
    }
    void flush(std::vector<int32_t>& out) {
      if (pending) out.push_back(*t.unk);
      pending = false;
    }
  };

  void start_with_bytes(std::string_view word, std::vector<int32_t>& out) const {
    Unknown unknown{t_};
    for (const char b : word) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(b)];
      if (id < 0) {
        unknown.add(out);
        continue;
      }
      unknown.flush(out);
      out.push_back(id);
    }
    unknown.flush(out);
  }

  void start_with_characters(std::string_view word, std::vector<int32_t>& out) const {
    Unknown unknown{t_};
    std::string decorated;
    for (size_t at = 0; at < word.size();) {
      const size_t size = unicode::decode(word, at).size;
      std::string_view symbol = word.substr(at, size);
      const bool first = at == 0, last = at + size == word.size();
      at += size;
      if ((!first && !t_.continuing_subword_prefix.empty()) || (last && !t_.end_of_word_suffix.empty())) {
        decorated = first ? "" : t_.continuing_subword_prefix;
        decorated += symbol;
        if (last) decorated += t_.end_of_word_suffix;
        symbol = decorated;
      }
      if (const int32_t id = index_->find(symbol); id >= 0) {
        unknown.flush(out);
        out.push_back(id);
        continue;
      }
      const auto known_byte = [&](char b) { return fallback_[static_cast<unsigned char>(b)] >= 0; };
      if (!fallback_.empty() && std::all_of(symbol.begin(), symbol.end(), known_byte)) {
        for (const char b : symbol) out.push_back(fallback_[static_cast<unsigned char>(b)]);
        continue;
      }
      unknown.add(out);
    }
    unknown.flush(out);
  }

  void merge_by_scan(std::vector<int32_t>& out, size_t begin) const {
    int32_t* ids = out.data() + begin;
    size_t n = out.size() - begin;
    MergeTable::Found pairs[kScanMax];
    for (size_t i = 0; i + 1 < n; ++i) pairs[i] = merges_.find(ids[i], ids[i + 1]);
    while (n > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < n; ++i)
        if (pairs[i].rank < pairs[best].rank) best = i;
      if (pairs[best].result < 0) break;
      ids[best] = pairs[best].result;
      std::copy(ids + best + 2, ids + n, ids + best + 1);
      if (best + 2 < n) std::copy(pairs + best + 2, pairs + n - 1, pairs + best + 1);
      --n;
      if (best > 0) pairs[best - 1] = merges_.find(ids[best - 1], ids[best]);
      if (best + 1 < n) pairs[best] = merges_.find(ids[best], ids[best + 1]);
    }
    out.resize(begin + n);
  }

  void merge_by_heap(std::vector<int32_t>& out, size_t begin) const {
    struct Symbol {
      int32_t id, previous, next;  // id -1: merged away
    };
    struct Candidate {
      int32_t rank, at, result;
      bool operator<(const Candidate& other) const {  // the heap's top is the smallest
        return rank != other.rank ? rank > other.rank : at > other.at;
      }
    };
    const auto n = static_cast<int32_t>(out.size() - begin);
    std::vector<Symbol> symbols(static_cast<size_t>(n));
    std::vector<Candidate> heap;
    heap.reserve(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i)
      symbols[static_cast<size_t>(i)] = {out[begin + static_cast<size_t>(i)], i - 1, i + 1 < n ? i + 1 : -1};
    const auto symbol = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
    const auto candidate = [&](int32_t at) -> std::optional<Candidate> {
      const MergeTable::Found found = merges_.find(symbol(at).id, symbol(symbol(at).next).id);
      if (found.result < 0) return std::nullopt;
      return Candidate{found.rank, at, found.result};
    };
    for (int32_t i = 0; i + 1 < n; ++i)
      if (const auto c = candidate(i)) heap.push_back(*c);
    std::make_heap(heap.begin(), heap.end());
    const auto push = [&](int32_t at) {
      if (const auto c = candidate(at)) {
        heap.push_back(*c);
        std::push_heap(heap.begin(), heap.end());
      }
    };
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Candidate top = heap.back();
      heap.pop_back();
      Symbol& left = symbol(top.at);
      if (left.id < 0 || left.next < 0) continue;
      Symbol& right = symbol(left.next);
      const MergeTable::Found now = merges_.find(left.id, right.id);
      if (now.result != top.result || now.rank != top.rank) continue;  // the pair has changed since
      left.id = top.result;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) {
        symbol(left.next).previous = top.at;
        push(top.at);
      }
      if (left.previous >= 0) push(left.previous);
    }
    size_t kept = begin;
    for (const Symbol& s : symbols)
      if (s.id >= 0) out[kept++] = s.id;
    out.resize(kept);
  }

  const TokenizerTables& t_;
  bool bytes_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_{};
  std::vector<std::string> words_;  // [V] bytes of the pieces, with ignore_merges
  std::optional<PieceIndex> index_;
  std::vector<int32_t> fallback_;
};

}  // namespace

std::vector<int32_t> byte_piece_ids(const TokenizerTables& tables) {
  std::vector<int32_t> ids(256, -1);
  for (size_t id = 0; id < tables.pieces.size(); ++id)
    if (const auto byte = byte_of_piece(tables.pieces[id]); byte && tables.pieces[id] == byte_piece(*byte))
      ids[*byte] = static_cast<int32_t>(id);
  return ids;
}

std::unique_ptr<const WordModel> make_bpe(const ModelOptions& options) { return std::make_unique<Bpe>(options); }

}  // namespace hearth::text
