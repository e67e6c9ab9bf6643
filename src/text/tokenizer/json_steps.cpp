#include "text/tokenizer/json_steps.h"

#include <array>
#include <functional>

#include "base/error.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

constexpr size_t kStepsMax = 64;
constexpr size_t kTextMax = 256;  // of a replacement or a prefix

// Reads the fields of one object with their names in the errors.
class Fields {
 public:
  Fields(const json::Value& value, std::string_view what, std::string_view part)
      : value_(value), where_(fmt::format("{}: {}", what, part)) {
    value.as_object(where_);
    type_ = value.get("type") ? value.get("type")->as_string(where_ + ".type") : "";
  }

  const std::string& type() const { return type_; }
  const std::string& where() const { return where_; }

  const json::Value& required(std::string_view key) const {
    const json::Value* v = value_.get(key);
    if (!v) fail(ErrorKind::corrupt_file, "{}: {} without \"{}\"", where_, type_, key);
    return *v;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const json::Value* v = value_.get(key);
    return v ? v->as_bool(name(key)) : otherwise;
  }
  bool has(std::string_view key) const { return value_.get(key) != nullptr; }
  int64_t integer(std::string_view key, int64_t lowest, int64_t highest) const {
    const int64_t v = required(key).as_int(name(key));
    if (v < lowest || v > highest)
      fail(ErrorKind::corrupt_file, "{} is {}, {} to {} are possible", name(key), v, lowest, highest);
    return v;
  }
  std::string text(std::string_view key) const {
    const std::string& s = required(key).as_string(name(key));
    if (s.size() > kTextMax)
      fail(ErrorKind::corrupt_file, "{} has {} bytes, the limit is {}", name(key), s.size(), kTextMax);
    return s;
  }
  const json::Array& array(std::string_view key) const { return required(key).as_array(name(key)); }

  // {"String": ...} or {"Regex": ...}
  std::pair<std::string, bool> pattern() const {
    const json::Value& p = required("pattern");
    if (const json::Value* s = p.get("String")) return {s->as_string(name("pattern")), false};
    if (const json::Value* r = p.get("Regex")) return {r->as_string(name("pattern")), true};
    if (const std::string* s = p.string()) return {*s, false};
    fail(ErrorKind::corrupt_file, "{}: pattern is neither a String nor a Regex", where_);
  }

  std::string name(std::string_view key) const { return fmt::format("{} {}.{}", where_, type_, key); }
  [[noreturn]] void unknown(std::string_view supported) const {
    fail(ErrorKind::invalid_argument, "{} of type \"{}\" is not supported; supported are {}", where_,
         type_.substr(0, 100), supported);
  }

 private:
  const json::Value& value_;
  std::string where_;
  std::string type_;
};

// The steps of an object in order, sequences taken apart. JSON depth bounds the nesting, kStepsMax the number.
std::vector<const json::Value*> flatten(const json::Value& root, std::string_view member, std::string_view where) {
  std::vector<const json::Value*> out, stack = {&root};
  while (!stack.empty()) {
    const json::Value* v = stack.back();
    stack.pop_back();
    const json::Value* type = v->get("type");
    if (type && type->string() && *type->string() == "Sequence") {
      const json::Value* steps = v->get(member);
      if (!steps) fail(ErrorKind::corrupt_file, "{}: Sequence without \"{}\"", where, member);
      const json::Array& a = steps->as_array(where);
      for (size_t i = a.size(); i-- > 0;) stack.push_back(&a[i]);
    } else {
      out.push_back(v);
    }
    if (out.size() + stack.size() > kStepsMax)
      fail(ErrorKind::corrupt_file, "{}: more than {} steps", where, kStepsMax);
  }
  return out;
}

SplitBehavior behavior_of(const Fields& f, std::string_view otherwise) {
  const std::string name = f.has("behavior") ? f.text("behavior") : std::string(otherwise);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  fail(ErrorKind::corrupt_file, "{}: unknown behavior \"{}\"", f.where(), name);
}

std::string one_character(const Fields& f, std::string_view key) {
  std::string s = f.text(key);
  if (unicode::count(s) != 1) fail(ErrorKind::corrupt_file, "{} is \"{}\", one character was expected", f.name(key), s);
  return s;
}

// Base64 of RFC 4648.
std::string base64(std::string_view text, const std::string& name) {
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) fail(ErrorKind::corrupt_file, "{} is not base64", name);
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((have += 6) >= 8) out += static_cast<char>(bits >> (have -= 8) & 0xFF);
  }
  return out;
}

// prepend_scheme, or the older add_prefix_space.
MetaspaceSplit::Prepend prepend_of(const Fields& f) {
  if (!f.has("prepend_scheme"))
    return f.flag("add_prefix_space", true) ? MetaspaceSplit::Prepend::always : MetaspaceSplit::Prepend::never;
  const std::string scheme = f.text("prepend_scheme");
  if (scheme == "always") return MetaspaceSplit::Prepend::always;
  if (scheme == "first") return MetaspaceSplit::Prepend::first;
  if (scheme == "never") return MetaspaceSplit::Prepend::never;
  fail(ErrorKind::corrupt_file, "{}: unknown prepend_scheme \"{}\"", f.where(), scheme);
}

}  // namespace

void read_normalizer(const json::Value& value, TokenizerTables& t) {
  for (const json::Value* v : flatten(value, "normalizers", t.what + ": normalizer")) {
    const Fields f(*v, t.what, "normalizer");
    const std::string& type = f.type();
    std::vector<NormalizerStep>& out = t.normalizers;
    if (type == "NFC") out.push_back(UnicodeForm{UnicodeForm::Form::nfc});
    else if (type == "NFD") out.push_back(UnicodeForm{UnicodeForm::Form::nfd});
    else if (type == "NFKC") out.push_back(UnicodeForm{UnicodeForm::Form::nfkc});
    else if (type == "NFKD") out.push_back(UnicodeForm{UnicodeForm::Form::nfkd});
    else if (type == "Lowercase") out.push_back(Lowercase{});
    else if (type == "StripAccents") out.push_back(StripAccents{});
    else if (type == "Strip") out.push_back(StripSpace{f.flag("strip_left", true), f.flag("strip_right", true)});
    else if (type == "Prepend") out.push_back(Prepend{f.text("prepend")});
    else if (type == "Replace") {
      auto [pattern, is_regex] = f.pattern();
      out.push_back(ReplaceAll{std::move(pattern), is_regex, f.text("content")});
    } else if (type == "BertNormalizer") {
      const bool lowercase = f.flag("lowercase", true);
      out.push_back(BertNormalizer{f.flag("clean_text", true), f.flag("handle_chinese_chars", true),
                                   f.flag("strip_accents", lowercase), lowercase});
    } else if (type == "Nmt") out.push_back(NmtNormalizer{});
    else if (type == "ByteLevel") out.push_back(ByteAlphabetNormalizer{});
    else if (type == "Precompiled")
      out.push_back(Charsmap{base64(f.required("precompiled_charsmap").as_string(f.name("precompiled_charsmap")),
                                    f.name("precompiled_charsmap"))});
    else
      f.unknown(
          "NFC NFD NFKC NFKD Lowercase StripAccents Strip Prepend Replace BertNormalizer Nmt ByteLevel Precompiled "
          "Sequence");
  }
}

void read_pre_tokenizer(const json::Value& value, TokenizerTables& t) {
  for (const json::Value* v : flatten(value, "pretokenizers", t.what + ": pre_tokenizer")) {
    const Fields f(*v, t.what, "pre_tokenizer");
    const std::string& type = f.type();
    std::vector<PreTokenizerStep>& out = t.pre_tokenizers;
    if (type == "ByteLevel") out.push_back(ByteLevelSplit{f.flag("add_prefix_space", true), f.flag("use_regex", true)});
    else if (type == "Split") {
      auto [pattern, is_regex] = f.pattern();
      out.push_back(PatternSplit{std::move(pattern), is_regex, behavior_of(f, "Isolated"), f.flag("invert", false)});
    } else if (type == "Digits") out.push_back(DigitsSplit{f.flag("individual_digits", false)});
    else if (type == "Metaspace")
      out.push_back(MetaspaceSplit{prepend_of(f), one_character(f, "replacement"), f.flag("split", true)});
    else if (type == "Whitespace") out.push_back(WhitespaceSplit{true});
    else if (type == "WhitespaceSplit") out.push_back(WhitespaceSplit{false});
    else if (type == "BertPreTokenizer") out.push_back(BertSplit{});
    else if (type == "Punctuation") out.push_back(PunctuationSplit{behavior_of(f, "Isolated")});
    else if (type == "CharDelimiterSplit")
      out.push_back(PatternSplit{one_character(f, "delimiter"), false, SplitBehavior::removed, false});
    else
      f.unknown(
          "ByteLevel Split Digits Metaspace Whitespace WhitespaceSplit BertPreTokenizer Punctuation CharDelimiterSplit "
          "Sequence");
  }
}

void read_decoder(const json::Value& value, TokenizerTables& t) {
  for (const json::Value* v : flatten(value, "decoders", t.what + ": decoder")) {
    const Fields f(*v, t.what, "decoder");
    const std::string& type = f.type();
    std::vector<DecoderStep>& out = t.decoders;
    if (type == "ByteLevel") out.push_back(DecodeByteLevel{});
    else if (type == "ByteFallback") out.push_back(DecodeByteFallback{});
    else if (type == "Fuse") out.push_back(DecodeFuse{});
    else if (type == "Replace") {
      auto [pattern, is_regex] = f.pattern();
      if (is_regex) fail(ErrorKind::invalid_argument, "{}: Replace by a Regex is not supported", f.where());
      out.push_back(DecodeReplace{std::move(pattern), f.text("content")});
    } else if (type == "Strip")
      out.push_back(DecodeStrip{one_character(f, "content"), static_cast<int>(f.integer("start", 0, 1000)),
                                static_cast<int>(f.integer("stop", 0, 1000))});
    else if (type == "Metaspace")
      out.push_back(DecodeMetaspace{one_character(f, "replacement"), prepend_of(f) != MetaspaceSplit::Prepend::never});
    else if (type == "WordPiece") out.push_back(DecodeWordPiece{f.text("prefix"), f.flag("cleanup", true)});
    else if (type == "BPEDecoder") out.push_back(DecodeSuffix{f.text("suffix")});
    else f.unknown("ByteLevel ByteFallback Fuse Replace Strip Metaspace WordPiece BPEDecoder Sequence");
  }
}

namespace {

// ["[CLS]", 101]
int32_t named_id(const Fields& f, std::string_view key, const VocabularyBuilder& vocabulary) {
  const json::Array& pair = f.array(key);
  if (pair.size() != 2) fail(ErrorKind::corrupt_file, "{} has {} members, 2 expected", f.name(key), pair.size());
  const int32_t id = vocabulary.require(pair[0].as_string(f.name(key)), f.name(key));
  if (pair[1].as_int(f.name(key)) != id)
    fail(ErrorKind::corrupt_file, "{} says id {}, the vocabulary {}", f.name(key), pair[1].as_int(f.name(key)), id);
  return id;
}

// What TemplateProcessing puts before and behind a single text.
void read_template(const Fields& f, std::vector<int32_t>& before, std::vector<int32_t>& behind) {
  const json::Value& tokens = f.required("special_tokens");
  bool seen = false;
  for (const json::Value& piece : f.array("single")) {
    if (piece.get("Sequence")) {
      if (seen) fail(ErrorKind::corrupt_file, "{}: template with the text twice", f.where());
      seen = true;
      continue;
    }
    const json::Value* special = piece.get("SpecialToken");
    const json::Value* name = special ? special->get("id") : nullptr;
    if (!name) fail(ErrorKind::corrupt_file, "{}: template member is neither Sequence nor SpecialToken", f.where());
    const json::Value* token = tokens.get(name->as_string(f.name("single")));
    const json::Value* ids = token ? token->get("ids") : nullptr;
    if (!ids)
      fail(ErrorKind::corrupt_file, "{}: template names \"{}\", which special_tokens does not", f.where(),
           *name->string());
    for (const json::Value& id : ids->as_array(f.name("special_tokens"))) {
      const int64_t n = id.as_int(f.name("special_tokens"));
      if (n < 0 || n > INT32_MAX) fail(ErrorKind::corrupt_file, "{} holds the id {}", f.name("special_tokens"), n);
      (seen ? behind : before).push_back(static_cast<int32_t>(n));
    }
  }
  if (!seen) fail(ErrorKind::corrupt_file, "{}: template without the text", f.where());
}

}  // namespace

void read_post_processor(const json::Value& value, const VocabularyBuilder& vocabulary, TokenizerTables& t) {
  for (const json::Value* v : flatten(value, "processors", t.what + ": post_processor")) {
    const Fields f(*v, t.what, "post_processor");
    const std::string& type = f.type();
    std::vector<int32_t> before, behind;
    if (type == "ByteLevel") continue;  // moves offsets only
    else if (type == "TemplateProcessing") read_template(f, before, behind);
    else if (type == "BertProcessing" || type == "RobertaProcessing") {
      before = {named_id(f, "cls", vocabulary)};
      behind = {named_id(f, "sep", vocabulary)};
    } else f.unknown("ByteLevel TemplateProcessing BertProcessing RobertaProcessing Sequence");
    t.prefix_ids.insert(t.prefix_ids.begin(), before.begin(), before.end());
    t.suffix_ids.insert(t.suffix_ids.end(), behind.begin(), behind.end());
    if (t.prefix_ids.size() + t.suffix_ids.size() > kStepsMax)
      fail(ErrorKind::corrupt_file, "{}: more than {} tokens around a text", f.where(), kStepsMax);
  }
}

}  // namespace hearth::text
