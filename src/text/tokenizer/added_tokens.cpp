#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "text/tokenizer/unicode.h"

namespace hearth::text {

AddedTokens::AddedTokens(const std::vector<Entry>& entries) {
  std::vector<ByteTrie::Entry> spellings;
  for (const Entry& e : entries) {
    spellings.push_back({e.spelling, static_cast<int32_t>(tokens_.size())});
    tokens_.push_back(e.token);
    begins_[static_cast<unsigned char>(e.spelling[0])] = true;
  }
  trie_ = ByteTrie(std::move(spellings));
}

bool AddedTokens::any_special() const {
  return std::any_of(tokens_.begin(), tokens_.end(), [](const AddedToken* t) { return t->special; });
}

AddedTokens::Found AddedTokens::token_at(std::string_view text, size_t at, bool specials,
                                         std::span<const ByteRange> quoted) const {
  const ByteTrie::Match longest = trie_.longest(text.substr(at));
  if (longest.value < 0) return {nullptr, at + 1};
  const AddedToken* token = tokens_[static_cast<size_t>(longest.value)];
  const size_t end = at + longest.size;
  if (!token->special) return {token, end};
  if (!specials) return {nullptr, end};
  // The first quoted stretch that ends behind `at`.
  const auto next = std::partition_point(quoted.begin(), quoted.end(), [&](ByteRange r) { return r.end <= at; });
  if (next == quoted.end() || next->begin >= end) return {token, end};
  // Quoted: passed over, but only as far as the conversation's own words go.
  if (next->begin <= at) return {nullptr, std::min(end, next->end)};
  // Begun by the template and lengthened by what it quotes: the token may be one that ends before.
  const ByteTrie::Match own = trie_.longest(text.substr(at, next->begin - at));
  if (own.value < 0) return {nullptr, at + 1};
  return {tokens_[static_cast<size_t>(own.value)], at + own.size};
}

void AddedTokens::find(std::string_view text, bool specials, std::span<const ByteRange> quoted,
                       std::vector<Section>& out) const {
  const auto has = [](unicode::CodePoint c, uint16_t kind) { return (unicode::classes(c.value) & kind) != 0; };
  size_t done = 0;  // everything before is in a section
  for (size_t at = 0; at < text.size();) {
    if (!begins_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const Found found = token_at(text, at, specials, quoted);
    size_t begin = at, end = found.end;
    at = end;
    if (!found.token) continue;
    const AddedToken& token = *found.token;
    if (token.single_word) {
      const bool word_before = begin > 0 && has(unicode::decode_before(text, begin), unicode::kWord);
      const bool word_after = end < text.size() && has(unicode::decode(text, end), unicode::kWord);
      if (word_before || word_after) continue;
    }
    if (token.lstrip)
      while (begin > done) {
        const unicode::CodePoint c = unicode::decode_before(text.substr(0, begin), begin);
        if (!has(c, unicode::kSpace)) break;
        begin -= c.size;
      }
    if (token.rstrip)
      while (end < text.size() && has(unicode::decode(text, end), unicode::kSpace))
        end += unicode::decode(text, end).size;
    if (done < begin) out.push_back({text.substr(done, begin - done), -1, done == 0});
    out.push_back({{}, token.id, done == 0});
    done = end;
    // Tokens that begin inside the white space taken by rstrip are still found: the search goes on behind the match.
  }
  if (done < text.size()) out.push_back({text.substr(done), -1, done == 0});
}

}  // namespace hearth::text
