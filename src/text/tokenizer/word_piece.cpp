// WordPiece (Schuster & Nakajima 2012, as in BERT): the longest piece from the left, again and again; a word with a
// rest that no piece begins, or of too many characters, is the unknown piece.
#include "base/error.h"
#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/model.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

class WordPiece : public WordModel {
 public:
  explicit WordPiece(const ModelOptions& o) : t_(o.tables) {
    std::vector<ByteTrie::Entry> first, rest;
    for (size_t id = 0; id < t_.pieces.size(); ++id) {
      const std::string_view piece = t_.pieces[id];
      if (o.special[id] || piece.empty()) continue;
      first.push_back({piece, static_cast<int32_t>(id)});
      if (piece.starts_with(t_.continuing_subword_prefix) && piece.size() > t_.continuing_subword_prefix.size())
        rest.push_back({piece.substr(t_.continuing_subword_prefix.size()), static_cast<int32_t>(id)});
    }
    first_ = ByteTrie(std::move(first));
    rest_ = ByteTrie(std::move(rest));
  }

  void encode(std::string_view word, std::vector<int32_t>& out) const override {
    const size_t begin = out.size();
    const auto give_up = [&] {
      out.resize(begin);
      out.push_back(*t_.unk);
    };
    if (static_cast<int64_t>(unicode::count(word)) > t_.max_input_chars_per_word) return give_up();
    for (size_t at = 0; at < word.size();) {
      const ByteTrie::Match match = (at == 0 ? first_ : rest_).longest(word.substr(at));
      if (match.value < 0) return give_up();
      out.push_back(match.value);
      at += match.size;
    }
  }

 private:
  const TokenizerTables& t_;
  ByteTrie first_, rest_;
};

}  // namespace

std::unique_ptr<const WordModel> make_word_piece(const ModelOptions& options) {
  return std::make_unique<WordPiece>(options);
}

}  // namespace hearth::text
