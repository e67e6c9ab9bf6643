#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <optional>

#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/bert_classes.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

using unicode::classes;

bool is_number(uint32_t c) { return (classes(c) & unicode::kNumber) != 0; }
bool is_space(uint32_t c) { return (classes(c) & unicode::kSpace) != 0; }

// \w+|[^\w\s]+
class WordOrPunctuation : public Matcher {
 public:
  void find(std::string_view text, std::vector<Span>& out) const override {
    enum Kind { space, word, other };
    const auto kind_at = [&](size_t at) {
      const uint16_t c = classes(unicode::decode(text, at).value);
      return c & unicode::kWord ? word : c & unicode::kSpace ? space : other;
    };
    for (size_t at = 0; at < text.size();) {
      const Kind kind = kind_at(at);
      size_t end = at;
      while (end < text.size() && kind_at(end) == kind) end += unicode::decode(text, end).size;
      out.push_back({at, end, kind != space});
      at = end;
    }
  }
};

// Joins spans as the behaviour asks; matches that are removed leave no span.
void arrange(std::vector<Span>& spans, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::isolated: return;
    case SplitBehavior::removed: std::erase_if(spans, [](const Span& s) { return s.match; }); return;
    case SplitBehavior::contiguous: {
      size_t n = 0;
      for (const Span s : spans)
        if (n > 0 && spans[n - 1].match == s.match) spans[n - 1].end = s.end;
        else spans[n++] = s;
      spans.resize(n);
      return;
    }
    case SplitBehavior::merged_with_previous: {
      size_t n = 0;
      bool previous_match = false;
      for (const Span s : spans) {
        if (s.match && !previous_match && n > 0) spans[n - 1].end = s.end;
        else spans[n++] = s;
        previous_match = s.match;
      }
      spans.resize(n);
      return;
    }
    case SplitBehavior::merged_with_next: {
      size_t first = spans.size();
      bool next_match = false;
      for (size_t i = spans.size(); i-- > 0;) {
        const Span s = spans[i];
        if (s.match && !next_match && first < spans.size()) spans[first].begin = s.begin;
        else spans[--first] = s;
        next_match = s.match;
      }
      spans.erase(spans.begin(), spans.begin() + static_cast<ptrdiff_t>(first));
      return;
    }
  }
}

}  // namespace

// Rewrites a word, then splits it.
struct PreTokenizer::Stage {
  bool prefix_space = false;  // byte-level
  std::optional<MetaspaceSplit> metaspace;
  std::unique_ptr<const Matcher> matcher;  // null: no split
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
  bool alphabet = false;  // then write the bytes in the byte alphabet
};

PreTokenizer::~PreTokenizer() = default;

PreTokenizer::PreTokenizer(const std::vector<PreTokenizerStep>& steps, bool keep_last_bytes, std::string_view what) {
  for (size_t i = 0; i < steps.size(); ++i) {
    Stage stage;
    if (const auto* s = std::get_if<ByteLevelSplit>(&steps[i])) {
      stage.prefix_space = s->add_prefix_space;
      if (s->use_regex) stage.matcher = regex_matcher(patterns::kGpt2, what);
      stage.alphabet = !(keep_last_bytes && i + 1 == steps.size());
    } else if (const auto* p = std::get_if<PatternSplit>(&steps[i])) {
      stage.matcher = p->is_regex ? regex_matcher(p->pattern, what) : literal_matcher(p->pattern);
      stage.behavior = p->behavior;
      stage.invert = p->invert;
    } else if (const auto* d = std::get_if<DigitsSplit>(&steps[i])) {
      stage.matcher = character_matcher(is_number);
      stage.behavior = d->individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
    } else if (const auto* m = std::get_if<MetaspaceSplit>(&steps[i])) {
      stage.metaspace = *m;
      if (m->split) stage.matcher = literal_matcher(m->replacement);
      stage.behavior = SplitBehavior::merged_with_next;
    } else if (const auto* w = std::get_if<WhitespaceSplit>(&steps[i])) {
      if (w->words) {
        stage.matcher = std::make_unique<WordOrPunctuation>();
        stage.invert = true;
      } else {
        stage.matcher = character_matcher(is_space);
      }
      stage.behavior = SplitBehavior::removed;
    } else if (std::get_if<BertSplit>(&steps[i])) {
      Stage spaces;
      spaces.matcher = character_matcher(is_space);
      spaces.behavior = SplitBehavior::removed;
      stages_.push_back(std::move(spaces));
      stage.matcher = character_matcher(unicode::is_bert_punctuation);
    } else if (const auto* u = std::get_if<PunctuationSplit>(&steps[i])) {
      stage.matcher = character_matcher(unicode::is_bert_punctuation);
      stage.behavior = u->behavior;
    }
    stages_.push_back(std::move(stage));
  }
}

void PreTokenizer::split(std::vector<Word>& words, std::deque<std::string>& arena) const {
  std::vector<Word> out;
  std::vector<Span> spans;
  for (const Stage& stage : stages_) {
    out.clear();
    for (const Word& word : words) {
      std::string_view text = word.text;
      if (stage.prefix_space && !text.starts_with(' ')) text = arena.emplace_back(" " + std::string(text));
      if (stage.metaspace) {
        const MetaspaceSplit& m = *stage.metaspace;
        std::string& marked = arena.emplace_back();
        marked.reserve(text.size() + 3);
        for (const char c : text)
          if (c == ' ') marked += m.replacement;
          else marked += c;
        const bool wanted = m.prepend == MetaspaceSplit::Prepend::always ||
                            (m.prepend == MetaspaceSplit::Prepend::first && word.at_start);
        if (wanted && !marked.starts_with(m.replacement)) marked.insert(0, m.replacement);
        text = marked;
      }
      spans.clear();
      if (stage.matcher) {
        stage.matcher->find(text, spans);
        if (stage.invert)
          for (Span& s : spans) s.match = !s.match;
        arrange(spans, stage.behavior);
      } else if (!text.empty()) {
        spans.push_back({0, text.size(), false});
      }
      for (const Span& s : spans) {
        std::string_view piece = text.substr(s.begin, s.end - s.begin);
        if (stage.alphabet) piece = arena.emplace_back(to_alphabet(piece));
        out.push_back({piece, word.at_start && s.begin == 0});
      }
    }
    words.swap(out);
  }
}

}  // namespace hearth::text
