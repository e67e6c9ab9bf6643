// Text to token ids and back, for every tokenizer family that hearth reads (models.md 28-32).
//
//   Tokenizer tokenizer(parse_tokenizer_json(json, "tokenizer.json"));
//   std::vector<int32_t> ids = tokenizer.encode(prompt, {.parse_special = true});
//
// Streaming text out: for each generated id that is not is_special(), append piece_bytes(id, first) to a buffer,
// `first` being true until the first such id; hand out the buffer's complete UTF-8 sequences. The joined bytes are what
// decode() makes text of.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_range.h"
#include "text/tokenizer/tables.h"

namespace hearth::text {

struct EncodeOptions {
  // Special tokens spelled in the text become their ids. False for text from users: it then never yields a special id
  // (the unknown piece excepted), whatever it spells.
  bool parse_special = false;
  // Adds what the file asks to stand around a text (BOS, EOS, [CLS], [SEP]). With parse_special, a text that already
  // begins with the BOS gets no second one (models.md 32).
  bool add_special = true;
  // Stretches of the text that come from users, ascending and disjoint: with parse_special, a special token that takes
  // a byte of one is plain text all the same. Rendered::quoted of a chat template.
  std::span<const ByteRange> quoted;
};

// Immutable and re-entrant: any thread, any number at once.
class Tokenizer {
 public:
  using EncodeOptions = text::EncodeOptions;

  // Throws Error{corrupt_file} when the tables contradict themselves, Error{invalid_argument} when they ask for
  // something that is not supported (a pattern that does not compile, an unknown order of decoder steps).
  explicit Tokenizer(TokenizerTables tables);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // O(n log n) in the bytes of the text, without recursion. Text need not be valid UTF-8: bytes of broken sequences are
  // never rewritten by a normalizer, count as neither letter, number, mark nor space, and reach the model as they are
  // (byte-level pieces, <0xNN> pieces, else the unknown piece).
  // Throws Error{invalid_argument} when a pattern run on PCRE2 exceeds its limits.
  std::vector<int32_t> encode(std::string_view utf8, const EncodeOptions& options = {}) const;

  // Always valid UTF-8: each maximal broken sequence becomes one U+FFFD. Throws Error{invalid_argument} for an id
  // outside [0, vocab_size()).
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  // The bytes that a piece contributes to a text, perhaps a part of a UTF-8 sequence; valid as long as the tokenizer.
  // `first`: no piece stands before it (a dummy prefix space is dropped). Special pieces give their spelling.
  // Throws Error{invalid_argument} for an id outside [0, vocab_size()).
  std::string_view piece_bytes(int32_t id, bool first) const;

  int64_t vocab_size() const;                                  // V: highest id + 1; some ids may have no piece
  std::optional<int32_t> id_of(std::string_view piece) const;  // by spelling in the vocabulary or of an added token
  std::string_view piece(int32_t id) const;                    // spelling in the vocabulary; empty when the id has none
  bool is_special(int32_t id) const;                           // false outside [0, V)

  std::optional<int32_t> bos() const;
  std::string_view bos_text() const;         // empty without a BOS
  std::span<const int32_t> end_ids() const;  // eos, eot, eom of the tokenizer's file; the first is the eos
  std::string_view eos_text() const;         // empty without an eos
  bool adds_bos() const;                     // add_special puts the BOS first

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace hearth::text
