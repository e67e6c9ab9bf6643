#include "text/tokenizer/normalizer.h"

#include "base/error.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/matcher.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {

class Normalizer::Step {
 public:
  virtual ~Step() = default;
  virtual std::string apply(std::string_view text, size_t bytes_max) const = 0;
};

namespace {

using unicode::classes;
using unicode::CodePoint;

constexpr std::string_view kMark = "\u2581";

// Calls f(code_point, its bytes) for each character.
template <class F>
void each_character(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = unicode::decode(text, at);
    f(c.value, text.substr(at, c.size));
    at += c.size;
  }
}

// The characters for which keep(code_point) holds.
template <class Keep>
std::string filtered(std::string_view text, Keep&& keep) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](uint32_t c, std::string_view bytes) {
    if (keep(c)) out += bytes;
  });
  return out;
}

class UnicodeStep : public Normalizer::Step {
 public:
  explicit UnicodeStep(UnicodeForm::Form form)
      : form_(form == UnicodeForm::Form::nfc    ? unicode::Form::nfc
              : form == UnicodeForm::Form::nfd  ? unicode::Form::nfd
              : form == UnicodeForm::Form::nfkc ? unicode::Form::nfkc
                                                : unicode::Form::nfkd) {}
  std::string apply(std::string_view text, size_t) const override { return unicode::normalize(text, form_); }

 private:
  unicode::Form form_;
};

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](uint32_t c, std::string_view) { unicode::append_lower(out, c); });
  return out;
}

class LowercaseStep : public Normalizer::Step {
 public:
  std::string apply(std::string_view text, size_t) const override { return lower(text); }
};

class StripAccentsStep : public Normalizer::Step {
 public:
  std::string apply(std::string_view text, size_t) const override {
    return filtered(text, [](uint32_t c) { return !(classes(c) & unicode::kMark); });
  }
};

class StripSpaceStep : public Normalizer::Step {
 public:
  explicit StripSpaceStep(StripSpace step) : step_(step) {}
  std::string apply(std::string_view text, size_t) const override {
    const auto is_space = [](CodePoint c) { return (classes(c.value) & unicode::kSpace) != 0; };
    while (step_.left && !text.empty() && is_space(unicode::decode(text, 0)))
      text.remove_prefix(unicode::decode(text, 0).size);
    while (step_.right && !text.empty() && is_space(unicode::decode_before(text, text.size())))
      text.remove_suffix(unicode::decode_before(text, text.size()).size);
    return std::string(text);
  }

 private:
  StripSpace step_;
};

class PrependStep : public Normalizer::Step {
 public:
  explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string_view text, size_t) const override {
    return text.empty() ? std::string() : prefix_ + std::string(text);
  }

 private:
  std::string prefix_;
};

class ReplaceStep : public Normalizer::Step {
 public:
  ReplaceStep(const ReplaceAll& step, std::string_view what)
      : matcher_(step.is_regex ? regex_matcher(step.pattern, what) : literal_matcher(step.pattern)),
        content_(step.content),
        what_(what) {}
  std::string apply(std::string_view text, size_t bytes_max) const override {
    std::vector<Span> spans;
    matcher_->find(text, spans);
    std::string out;
    out.reserve(text.size());
    for (const Span& s : spans) {
      if (s.match) out += content_;
      else out += text.substr(s.begin, s.end - s.begin);
      if (out.size() > bytes_max)
        fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
    }
    return out;
  }

 private:
  std::unique_ptr<const Matcher> matcher_;
  std::string content_, what_;
};

class BertStep : public Normalizer::Step {
 public:
  explicit BertStep(const BertNormalizer& step) : step_(step) {}
  std::string apply(std::string_view text, size_t) const override {
    std::string out;
    out.reserve(text.size());
    each_character(text, [&](uint32_t c, std::string_view bytes) {
      if (step_.clean_text) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (!line && (classes(c) & unicode::kOther))) return;
        if (line || (classes(c) & unicode::kSpace)) {
          out += ' ';
          return;
        }
      }
      if (step_.handle_chinese_chars && unicode::is_bert_ideograph(c)) ((out += ' ') += bytes) += ' ';
      else out += bytes;
    });
    if (step_.strip_accents)
      out = filtered(unicode::normalize(out, unicode::Form::nfd),
                     [](uint32_t c) { return !(classes(c) & unicode::kNonspacing); });
    return step_.lowercase ? lower(out) : out;
  }

 private:
  BertNormalizer step_;
};

class NmtStep : public Normalizer::Step {
 public:
  std::string apply(std::string_view text, size_t) const override {
    std::string out;
    out.reserve(text.size());
    each_character(text, [&](uint32_t c, std::string_view bytes) {
      if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
      const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      if (space) out += ' ';
      else out += bytes;
    });
    return out;
  }
};

class ByteAlphabetStep : public Normalizer::Step {
 public:
  std::string apply(std::string_view text, size_t) const override { return to_alphabet(text); }
};

// The rule of the tokenizers library: a grapheme of less than 6 bytes is looked up whole (its shortest known beginning
// decides), a longer or unknown one character by character.
class CharsmapStep : public Normalizer::Step {
 public:
  CharsmapStep(const Charsmap& step, std::string_view what) : table_(step.table, what), what_(what) {}
  std::string apply(std::string_view text, size_t bytes_max) const override {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      if (out.size() > bytes_max)
        fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
      const size_t end = unicode::grapheme_end(text, at);
      const std::string_view grapheme = text.substr(at, end - at);
      at = end;
      if (grapheme.size() < 6)
        if (const auto match = table_.shortest(grapheme)) {
          out += match->replacement;
          continue;
        }
      each_character(grapheme, [&](uint32_t, std::string_view bytes) {
        const auto match = table_.shortest(bytes);
        out += match ? match->replacement : bytes;
      });
    }
    return out;
  }

 private:
  CharsmapTable table_;
  std::string what_;
};

class SentencePieceStep : public Normalizer::Step {
 public:
  SentencePieceStep(const SentencePieceNormalizer& step, std::string_view what) : step_(step), what_(what) {
    if (!step.charsmap.empty()) table_.emplace(step.charsmap, what);
    std::vector<ByteTrie::Entry> kept;
    for (const std::string& text : step_.kept) kept.push_back({text, 0});
    kept_ = ByteTrie(std::move(kept));
  }

  std::string apply(std::string_view text, size_t bytes_max) const override {
    const std::string_view space = step_.escape_whitespaces ? kMark : std::string_view(" ");
    if (step_.remove_extra_whitespaces)
      while (!text.empty()) {
        const auto [size, replaced] = prefix(text);
        if (replaced != " ") break;
        text.remove_prefix(size);
      }
    std::string out;
    if (text.empty()) return out;
    out.reserve(text.size() + text.size() / 4 + 3);
    if (step_.add_dummy_prefix && !step_.whitespace_as_suffix) out += space;
    bool after_space = step_.remove_extra_whitespaces;
    while (!text.empty()) {
      auto [size, replaced] = prefix(text);
      text.remove_prefix(size);
      while (after_space && replaced.starts_with(' ')) replaced.remove_prefix(1);
      for (const char c : replaced)
        if (c == ' ') out += space;
        else out += c;
      if (out.size() > bytes_max)
        fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
      // A character that vanished leaves the state as it was.
      if (!replaced.empty()) after_space = replaced.ends_with(' ') && step_.remove_extra_whitespaces;
    }
    if (step_.remove_extra_whitespaces)
      while (out.ends_with(space)) out.resize(out.size() - space.size());
    if (step_.add_dummy_prefix && step_.whitespace_as_suffix) out += space;
    return out;
  }

 private:
  struct Prefix {
    size_t size;
    std::string_view replaced;
  };
  Prefix prefix(std::string_view text) const {
    if (!kept_.empty())
      if (const ByteTrie::Match kept = kept_.longest(text); kept.value >= 0)
        return {kept.size, text.substr(0, kept.size)};
    if (table_)
      if (const auto match = table_->longest(text)) return {match->size, match->replacement};
    const size_t size = unicode::decode(text, 0).size;
    return {size, text.substr(0, size)};
  }

  SentencePieceNormalizer step_;
  std::optional<CharsmapTable> table_;
  ByteTrie kept_;
  std::string what_;
};

struct Compile {
  std::string_view what;
  using Made = std::unique_ptr<const Normalizer::Step>;
  Made operator()(const UnicodeForm& s) const { return std::make_unique<UnicodeStep>(s.form); }
  Made operator()(const Lowercase&) const { return std::make_unique<LowercaseStep>(); }
  Made operator()(const StripAccents&) const { return std::make_unique<StripAccentsStep>(); }
  Made operator()(const StripSpace& s) const { return std::make_unique<StripSpaceStep>(s); }
  Made operator()(const Prepend& s) const { return std::make_unique<PrependStep>(s.text); }
  Made operator()(const ReplaceAll& s) const { return std::make_unique<ReplaceStep>(s, what); }
  Made operator()(const BertNormalizer& s) const { return std::make_unique<BertStep>(s); }
  Made operator()(const NmtNormalizer&) const { return std::make_unique<NmtStep>(); }
  Made operator()(const ByteAlphabetNormalizer&) const { return std::make_unique<ByteAlphabetStep>(); }
  Made operator()(const Charsmap& s) const { return std::make_unique<CharsmapStep>(s, what); }
  Made operator()(const SentencePieceNormalizer& s) const { return std::make_unique<SentencePieceStep>(s, what); }
};

}  // namespace

Normalizer::Normalizer(const std::vector<NormalizerStep>& steps, std::string_view what) : what_(what) {
  for (const NormalizerStep& step : steps) steps_.push_back(std::visit(Compile{what}, step));
}

Normalizer::~Normalizer() = default;

std::string Normalizer::apply(std::string_view text) const {
  const size_t bytes_max = 64 * text.size() + (1 << 20);
  std::string now(text);
  for (const auto& step : steps_) {
    now = step->apply(now, bytes_max);
    if (now.size() > bytes_max)
      fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
  }
  return now;
}

}  // namespace hearth::text
