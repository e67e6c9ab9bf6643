// Byte-pair encoding by scores (Kudo & Richardson 2018): merge the neighbours whose joined spelling is the piece of
// highest score, the leftmost among equals, until no joined spelling is a piece.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "text/tokenizer/model.h"
#include "text/tokenizer/piece_index.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

class SentencePieceBpe : public WordModel {
 public:
  explicit SentencePieceBpe(const ModelOptions& o) : t_(o.tables), index_(o.tables.pieces) {
    for (size_t id = 0; id < t_.pieces.size(); ++id) {
      const PieceType type = t_.types.empty() ? PieceType::normal : t_.types[id];
      const bool in_text = type == PieceType::normal || type == PieceType::user_defined || type == PieceType::unused;
      if (!in_text || o.special[id] || t_.pieces[id].empty()) continue;
      index_.insert(static_cast<int32_t>(id));
      longest_ = std::max(longest_, t_.pieces[id].size());
      any_unused_ |= type == PieceType::unused;
    }
    if (t_.byte_fallback) fallback_ = byte_piece_ids(t_);
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    struct Symbol {
      uint32_t begin, size;  // size 0: merged away
      int32_t previous, next;
    };
    struct Candidate {
      double score;
      int32_t at;
      uint32_t size;
      bool operator<(const Candidate& other) const {  // the heap's top is the greatest
        return score != other.score ? score < other.score : at > other.at;
      }
    };
    std::vector<Symbol> symbols;
    for (size_t at = 0; at < text.size();) {
      const uint32_t size = unicode::decode(text, at).size;
      const auto i = static_cast<int32_t>(symbols.size());
      symbols.push_back({static_cast<uint32_t>(at), size, i - 1, i + 1});
      at += size;
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    const auto symbol = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };

    Splits splits;
    std::vector<Candidate> heap;
    const auto candidate = [&](int32_t at) {
      const Symbol& left = symbol(at);
      if (left.next < 0) return false;
      const Symbol& right = symbol(left.next);
      const uint32_t size = left.size + right.size;
      if (size > longest_) return false;
      const std::string_view joined = text.substr(left.begin, size);
      const int32_t id = index_.find(joined);
      if (id < 0) return false;
      heap.push_back({t_.scores[static_cast<size_t>(id)], at, size});
      if (any_unused_ && is_unused(id)) splits[joined] = left.size;
      return true;
    };
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) candidate(i);
    std::make_heap(heap.begin(), heap.end());
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Candidate top = heap.back();
      heap.pop_back();
      Symbol& left = symbol(top.at);
      if (left.size == 0 || left.next < 0 || left.size + symbol(left.next).size != top.size) continue;
      Symbol& right = symbol(left.next);
      left.size = top.size;
      right.size = 0;
      left.next = right.next;
      if (left.next >= 0) symbol(left.next).previous = top.at;
      if (left.previous >= 0 && candidate(left.previous)) std::push_heap(heap.begin(), heap.end());
      if (candidate(top.at)) std::push_heap(heap.begin(), heap.end());
    }
    bool after_unknown = false;
    for (const Symbol& s : symbols)
      if (s.size > 0) emit(text.substr(s.begin, s.size), splits, after_unknown, out);
  }

 private:
  // How unused pieces were last joined: size of the left part.
  using Splits = std::unordered_map<std::string_view, uint32_t>;

  bool is_unused(int32_t id) const {
    return !t_.types.empty() && t_.types[static_cast<size_t>(id)] == PieceType::unused;
  }

  // The id of a final symbol; an unused piece is taken apart again, an unknown one becomes bytes or the unknown piece.
  void emit(std::string_view whole, const Splits& splits, bool& after_unknown, std::vector<int32_t>& out) const {
    std::vector<std::string_view> parts = {whole};
    while (!parts.empty()) {
      const std::string_view part = parts.back();
      parts.pop_back();
      const int32_t id = index_.find(part);
      if (id >= 0 && is_unused(id))
        if (const auto split = splits.find(part); split != splits.end()) {
          parts.push_back(part.substr(split->second));
          parts.push_back(part.substr(0, split->second));
          continue;
        }
      if (id >= 0) {
        out.push_back(id);
        after_unknown = false;
        continue;
      }
      const auto known_byte = [&](char b) { return fallback_[static_cast<unsigned char>(b)] >= 0; };
      if (!fallback_.empty() && std::all_of(part.begin(), part.end(), known_byte)) {
        for (const char b : part) out.push_back(fallback_[static_cast<unsigned char>(b)]);
        after_unknown = false;
      } else if (!after_unknown && t_.unk) {  // neighbouring unknowns are one
        out.push_back(*t_.unk);
        after_unknown = true;
      }
    }
  }

  const TokenizerTables& t_;
  PieceIndex index_;
  size_t longest_ = 0;
  bool any_unused_ = false;
  std::vector<int32_t> fallback_;
};

}  // namespace

std::unique_ptr<const WordModel> make_sentencepiece_bpe(const ModelOptions& options) {
  return std::make_unique<SentencePieceBpe>(options);
}

}  // namespace hearth::text
