// Unigram (Kudo 2018): the segmentation with the greatest sum of piece scores, by dynamic programming over the bytes.
// A character that no piece covers costs the lowest score less 10.
#include <algorithm>
#include <cfloat>

#include "base/error.h"
#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/model.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

class Unigram : public WordModel {
 public:
  explicit Unigram(const ModelOptions& o) : t_(o.tables) {
    std::vector<ByteTrie::Entry> entries;
    lowest_ = DBL_MAX;
    highest_ = FLT_MIN;  // as in the library: of the usual scores, which are negative, none is above it
    for (size_t id = 0; id < t_.pieces.size(); ++id) {
      const PieceType type = t_.types.empty() ? PieceType::normal : t_.types[id];
      if (type == PieceType::normal) {
        lowest_ = std::min(lowest_, t_.scores[id]);
        highest_ = std::max(highest_, t_.scores[id]);
      }
      const bool in_text = type == PieceType::normal || type == PieceType::user_defined;
      if (in_text && !o.special[id] && !t_.pieces[id].empty())
        entries.push_back({t_.pieces[id], static_cast<int32_t>(id)});
    }
    trie_ = ByteTrie(std::move(entries));
    if (t_.byte_fallback) fallback_ = byte_piece_ids(t_);
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (t_.float_scores) encode_as<float>(text, out);
    else encode_as<double>(text, out);
  }

 private:
  // Stored is the type of scores and sums: it decides between paths that differ in rounding alone.
  template <class Stored>
  void encode_as(std::string_view text, std::vector<int32_t>& out) const {
    struct Node {
      Stored score = 0;
      int32_t id = -1;  // of the piece that ends here, kUnknown for a character without
      uint32_t begin = kNone;
    };
    std::vector<Node> ends(text.size() + 1);
    const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
      Node& node = ends[end];
      const Stored sum = static_cast<Stored>(score) + ends[begin].score;
      if (node.begin == kNone || sum > node.score) node = {sum, id, static_cast<uint32_t>(begin)};
    };
    const double unknown_score = static_cast<double>(static_cast<Stored>(static_cast<Stored>(lowest_) - 10));
    for (size_t begin = 0; begin < text.size();) {
      const size_t size = unicode::decode(text, begin).size;
      bool covered = false;
      uint32_t node = trie_.empty() ? ByteTrie::kNone : ByteTrie::kRoot;
      for (size_t end = begin; end < text.size() && node != ByteTrie::kNone;) {
        node = trie_.child(node, static_cast<unsigned char>(text[end++]));
        if (node == ByteTrie::kNone) break;
        const int32_t id = trie_.value(node);
        if (id < 0) continue;
        offer(begin, end, id, score_of(id, end - begin));
        covered |= end - begin == size;
      }
      if (!covered) offer(begin, begin + size, kUnknown, unknown_score);
      begin += size;
    }
    // Paths are read from the end; unknown characters are collected to runs.
    const size_t first = out.size();
    size_t run_end = 0;  // end of the pending run of unknown characters, 0: none
    const auto flush = [&](size_t run_begin) {
      if (run_end > 0) unknown(text.substr(run_begin, run_end - run_begin), out);
      run_end = 0;
    };
    for (size_t end = text.size(); end > 0;) {
      const Node& node = ends[end];
      if (node.id != kUnknown) {
        flush(end);
        out.push_back(node.id);
      } else {
        if (run_end > 0 && !t_.fuse_unk) flush(end);
        if (run_end == 0) run_end = end;
      }
      end = node.begin;
    }
    flush(0);
    std::reverse(out.begin() + static_cast<ptrdiff_t>(first), out.end());
  }

  double score_of(int32_t id, size_t bytes) const {
    const auto i = static_cast<size_t>(id);
    // User-defined pieces always win. What they add to a sum decides how it is rounded, and so a tie behind them.
    if (!t_.types.empty() && t_.types[i] == PieceType::user_defined)
      return static_cast<double>(static_cast<float>(bytes) * static_cast<float>(highest_)) - 0.1;
    return t_.scores[i];
  }

  // Bytes back to front, since the caller reverses.
  void unknown(std::string_view run, std::vector<int32_t>& out) const {
    const auto known_byte = [&](char b) { return fallback_[static_cast<unsigned char>(b)] >= 0; };
    if (!fallback_.empty() && std::all_of(run.begin(), run.end(), known_byte))
      for (size_t i = run.size(); i-- > 0;) out.push_back(fallback_[static_cast<unsigned char>(run[i])]);
    else if (t_.unk) out.push_back(*t_.unk);
  }

  static constexpr int32_t kUnknown = -2;
  static constexpr uint32_t kNone = UINT32_MAX;
  const TokenizerTables& t_;
  double lowest_, highest_;
  ByteTrie trie_;
  std::vector<int32_t> fallback_;
};

}  // namespace

std::unique_ptr<const WordModel> make_unigram(const ModelOptions& options) {
  return std::make_unique<Unigram>(options);
}

}  // namespace hearth::text
