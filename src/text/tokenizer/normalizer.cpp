#include "text/tokenizer/normalizer.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer/bert_classes.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/matcher.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {

// A text on its way through the steps, and for each byte of it whether it is made of quoted text, where that is asked.
struct Normalizer::Tracked {
  std::string text;
  bool tracks = false;
  std::string quoted;  // [text.size()] of 0 and 1, or empty

  // An empty text that is asked as much.
  Tracked next() const {
    Tracked out;
    out.tracks = tracks;
    out.text.reserve(text.size());
    if (tracks) out.quoted.reserve(text.size());
    return out;
  }
  // Appends bytes made of from.text[begin, begin + size).
  void put(std::string_view bytes, const Tracked& from, size_t begin, size_t size) {
    text += bytes;
    if (!tracks) return;
    const bool any = std::string_view(from.quoted).substr(begin, size).find('\1') != std::string_view::npos;
    quoted.append(bytes.size(), any ? '\1' : '\0');
  }
  void put(const Tracked& from, size_t begin, size_t size) {
    text.append(from.text, begin, size);
    if (tracks) quoted.append(from.quoted, begin, size);
  }
  void resize(size_t bytes) {
    text.resize(bytes);
    if (tracks) quoted.resize(bytes);
  }
};

class Normalizer::Step {
 public:
  using Tracked = Normalizer::Tracked;
  virtual ~Step() = default;
  // `out` is empty.
  virtual void apply(const Tracked& in, Tracked& out, size_t bytes_max) const = 0;
};

namespace {

using unicode::classes;
using unicode::CodePoint;
using Tracked = Normalizer::Tracked;

constexpr std::string_view kMark = "\u2581";

// Calls f(code_point, its first byte, its size) for each character.
template <class F>
void each_character(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = unicode::decode(text, at);
    f(c.value, at, size_t{c.size});
    at += c.size;
  }
}

// Keeps the characters for which keep(code_point) holds.
template <class Keep>
void filter(const Tracked& in, Tracked& out, Keep&& keep) {
  each_character(in.text, [&](uint32_t c, size_t at, size_t size) {
    if (keep(c)) out.put(in, at, size);
  });
}

void lower(const Tracked& in, Tracked& out) {
  std::string made;
  each_character(in.text, [&](uint32_t c, size_t at, size_t size) {
    made.clear();
    unicode::append_lower(made, c);
    out.put(made, in, at, size);
  });
}

// Nothing composes with an ASCII character before it and none is moved across one, so a text may be cut in front of
// each. What follows is normalized together.
void normalize(const Tracked& in, Tracked& out, unicode::Form form) {
  if (!in.tracks) {
    out.text = unicode::normalize(in.text, form);
    return;
  }
  const std::string_view text = in.text;
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = at + 1;
    while (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) ++end;
    const std::string made = unicode::normalize(text.substr(at, end - at), form);
    const size_t same = static_cast<unsigned char>(text[at]) < 0x80 && made.starts_with(text[at]) ? 1 : 0;
    out.put(in, at, same);
    out.put(std::string_view(made).substr(same), in, at + same, end - at - same);
  }
}

class UnicodeStep : public Normalizer::Step {
 public:
  explicit UnicodeStep(UnicodeForm::Form form)
      : form_(form == UnicodeForm::Form::nfc    ? unicode::Form::nfc
              : form == UnicodeForm::Form::nfd  ? unicode::Form::nfd
              : form == UnicodeForm::Form::nfkc ? unicode::Form::nfkc
                                                : unicode::Form::nfkd) {}
  void apply(const Tracked& in, Tracked& out, size_t) const override { normalize(in, out, form_); }

 private:
  unicode::Form form_;
};

class LowercaseStep : public Normalizer::Step {
 public:
  void apply(const Tracked& in, Tracked& out, size_t) const override { lower(in, out); }
};

class StripAccentsStep : public Normalizer::Step {
 public:
  void apply(const Tracked& in, Tracked& out, size_t) const override {
    filter(in, out, [](uint32_t c) { return !(classes(c) & unicode::kMark); });
  }
};

class StripSpaceStep : public Normalizer::Step {
 public:
  explicit StripSpaceStep(StripSpace step) : step_(step) {}
  void apply(const Tracked& in, Tracked& out, size_t) const override {
    const auto is_space = [](CodePoint c) { return (classes(c.value) & unicode::kSpace) != 0; };
    size_t begin = 0, end = in.text.size();
    while (step_.left && begin < end && is_space(unicode::decode(in.text, begin)))
      begin += unicode::decode(in.text, begin).size;
    while (step_.right && begin < end && is_space(unicode::decode_before(in.text, end)))
      end -= unicode::decode_before(in.text, end).size;
    out.put(in, begin, end - begin);
  }

 private:
  StripSpace step_;
};

class PrependStep : public Normalizer::Step {
 public:
  explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(const Tracked& in, Tracked& out, size_t) const override {
    if (in.text.empty()) return;
    out.put(prefix_, in, 0, 0);
    out.put(in, 0, in.text.size());
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
  void apply(const Tracked& in, Tracked& out, size_t bytes_max) const override {
    std::vector<Span> spans;
    matcher_->find(in.text, spans);
    for (const Span& s : spans) {
      if (s.match) out.put(content_, in, s.begin, s.end - s.begin);
      else out.put(in, s.begin, s.end - s.begin);
      if (out.text.size() > bytes_max)
        fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
    }
  }

 private:
  std::unique_ptr<const Matcher> matcher_;
  std::string content_, what_;
};

class BertStep : public Normalizer::Step {
 public:
  explicit BertStep(const BertNormalizer& step) : step_(step) {}
  void apply(const Tracked& in, Tracked& out, size_t) const override {
    Tracked now = in.next();
    clean(in, now);
    if (step_.strip_accents) {
      Tracked parts = in.next(), bare = in.next();
      normalize(now, parts, unicode::Form::nfd);
      filter(parts, bare, [](uint32_t c) { return !unicode::is_bert_accent(c); });
      now = std::move(bare);
    }
    if (step_.lowercase) lower(now, out);
    else out = std::move(now);
  }

 private:
  void clean(const Tracked& in, Tracked& out) const {
    each_character(in.text, [&](uint32_t c, size_t at, size_t size) {
      if (step_.clean_text) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (!line && unicode::is_bert_control(c))) return;
        if (line || (classes(c) & unicode::kSpace)) return out.put(" ", in, at, size);
      }
      const bool apart = step_.handle_chinese_chars && unicode::is_bert_ideograph(c);
      if (apart) out.put(" ", in, at, size);
      out.put(in, at, size);
      if (apart) out.put(" ", in, at, size);
    });
  }

  BertNormalizer step_;
};

class NmtStep : public Normalizer::Step {
 public:
  void apply(const Tracked& in, Tracked& out, size_t) const override {
    each_character(in.text, [&](uint32_t c, size_t at, size_t size) {
      if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
      const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      if (space) out.put(" ", in, at, size);
      else out.put(in, at, size);
    });
  }
};

class ByteAlphabetStep : public Normalizer::Step {
 public:
  void apply(const Tracked& in, Tracked& out, size_t) const override {
    if (!in.tracks) out.text = to_alphabet(in.text);
    else
      for (size_t at = 0; at < in.text.size(); ++at)
        out.put(to_alphabet(std::string_view(in.text).substr(at, 1)), in, at, 1);
  }
};

// The rule of the tokenizers library: a grapheme of less than 6 bytes is looked up whole (its shortest known beginning
// decides), a longer or unknown one character by character.
class CharsmapStep : public Normalizer::Step {
 public:
  CharsmapStep(const Charsmap& step, std::string_view what) : table_(step.table, what), what_(what) {}
  void apply(const Tracked& in, Tracked& out, size_t bytes_max) const override {
    const std::string_view text = in.text;
    for (size_t at = 0, end = 0; at < text.size(); at = end) {
      if (out.text.size() > bytes_max)
        fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
      end = unicode::grapheme_end(text, at);
      const std::string_view grapheme = text.substr(at, end - at);
      if (grapheme.size() < 6)
        if (const auto match = table_.shortest(grapheme)) {
          out.put(match->replacement, in, at, end - at);
          continue;
        }
      each_character(grapheme, [&](uint32_t, size_t inside, size_t size) {
        const auto match = table_.shortest(grapheme.substr(inside, size));
        if (match) out.put(match->replacement, in, at + inside, size);
        else out.put(in, at + inside, size);
      });
    }
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

  void apply(const Tracked& in, Tracked& out, size_t bytes_max) const override {
    const std::string_view space = step_.escape_whitespaces ? kMark : std::string_view(" ");
    const std::string_view text = in.text;
    size_t at = 0;
    if (step_.remove_extra_whitespaces)
      while (at < text.size()) {
        const auto [size, replaced] = prefix(text.substr(at));
        if (replaced != " ") break;
        at += size;
      }
    if (at == text.size()) return;
    if (step_.add_dummy_prefix && !step_.whitespace_as_suffix) out.put(space, in, 0, 0);
    bool after_space = step_.remove_extra_whitespaces;
    while (at < text.size()) {
      auto [size, replaced] = prefix(text.substr(at));
      while (after_space && replaced.starts_with(' ')) replaced.remove_prefix(1);
      for (size_t i = 0, end = 0; i < replaced.size(); i = end) {
        end = std::min(replaced.find(' ', i), replaced.size());
        if (i < end) out.put(replaced.substr(i, end - i), in, at, size);
        else out.put(space, in, at, size), ++end;
      }
      at += size;
      if (out.text.size() > bytes_max)
        fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
      // A character that vanished leaves the state as it was.
      if (!replaced.empty()) after_space = replaced.ends_with(' ') && step_.remove_extra_whitespaces;
    }
    if (step_.remove_extra_whitespaces)
      while (out.text.ends_with(space)) out.resize(out.text.size() - space.size());
    if (step_.add_dummy_prefix && step_.whitespace_as_suffix) out.put(space, in, 0, 0);
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

void Normalizer::run(Tracked& text) const {
  const size_t bytes_max = 64 * text.text.size() + (1 << 20);
  for (const auto& step : steps_) {
    Tracked made = text.next();
    step->apply(text, made, bytes_max);
    text = std::move(made);
    if (text.text.size() > bytes_max)
      fail(ErrorKind::invalid_argument, "{}: the normalizer grows a text beyond {} bytes", what_, bytes_max);
  }
}

std::string Normalizer::apply(std::string_view text) const {
  Tracked now;
  now.text = text;
  run(now);
  return std::move(now.text);
}

std::string Normalizer::apply(std::string_view text, std::vector<ByteRange>& quoted) const {
  Tracked now;
  now.text = text;
  now.tracks = true;
  now.quoted.assign(text.size(), '\0');
  for (const ByteRange& r : quoted) std::fill(now.quoted.begin() + r.begin, now.quoted.begin() + r.end, '\1');
  run(now);
  quoted.clear();
  for (size_t at = 0; (at = now.quoted.find('\1', at)) != std::string::npos;) {
    const size_t end = std::min(now.quoted.find('\0', at), now.quoted.size());
    quoted.push_back({at, end});
    at = end;
  }
  return std::move(now.text);
}

}  // namespace hearth::text
