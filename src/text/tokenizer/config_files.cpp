// tokenizer_config.json, special_tokens_map.json and added_tokens.json.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "text/tokenizer/json_steps.h"
#include "text/tokenizer/tables.h"
#include "text/tokenizer/vocabulary_builder.h"

namespace hearth::text {
namespace {

constexpr std::array<std::string_view, 7> kNamed = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                    "pad_token", "cls_token", "mask_token"};
constexpr std::array<std::string_view, 2> kLists = {"additional_special_tokens", "extra_special_tokens"};

// A member with the file that it stands in.
struct Member {
  const json::Value* value = nullptr;
  std::string where;
  explicit operator bool() const { return value != nullptr; }
};

// A token as these files write it: its text, or an object with "content" and properties.
AddedToken token_of(const json::Value& value, const std::string& where) {
  AddedToken token;
  if (value.object()) token = read_added(value, where);
  else token.text = value.as_string(where);
  token.special = true;
  const json::Value* normalized = value.get("normalized");
  token.on = normalized && normalized->as_bool(where) ? AddedToken::On::normalized_text : AddedToken::On::raw_text;
  return token;
}

class ConfigFiles {
 public:
  ConfigFiles(TokenizerTables& tables, const TokenizerConfigFiles& files)
      : t_(tables),
        vocabulary_(VocabularyBuilder::of(tables)),
        config_(parsed(files.tokenizer_config)),
        map_(parsed(files.special_tokens_map)),
        added_(parsed(files.added_tokens)) {
    has_decoder_ = config_ && config_->value.get("added_tokens_decoder");
    for (const AddedToken& a : t_.added) own_.push_back(a.id);
    std::sort(own_.begin(), own_.end());
  }

  void apply() {
    name_specials();
    if (has_decoder_) add_from_decoder();
    else if (added_) add_from_list();
    mark_specials();
    if (!t_.scores.empty()) t_.scores.resize(t_.pieces.size(), 0.0);
    if (!t_.types.empty()) t_.types.resize(t_.pieces.size(), PieceType::unused);
    name_ends();
    put_around();
    set_case();
  }

 private:
  struct Document {
    json::Value value;
    std::string name;
  };

  static std::optional<Document> parsed(const std::optional<TokenizerConfigFiles::File>& file) {
    if (!file) return std::nullopt;
    Document d{json::parse(file->text, file->name), file->name};
    d.value.as_object(d.name);
    return d;
  }

  // special_tokens_map.json comes before tokenizer_config.json, where it counts at all.
  Member member(std::string_view key) const {
    if (!has_decoder_ && map_)
      if (const json::Value* v = map_->value.get(key)) return {v, map_->name + ": " + std::string(key)};
    return setting(key);
  }
  Member setting(std::string_view key) const {
    const json::Value* v = config_ ? config_->value.get(key) : nullptr;
    return v ? Member{v, config_->name + ": " + std::string(key)} : Member{};
  }
  std::optional<bool> flag(std::string_view key) const {
    const Member m = setting(key);
    return m ? std::optional(m.value->as_bool(m.where)) : std::nullopt;
  }

  void name_specials() {
    for (const std::string_view key : kNamed)
      if (const Member m = member(key)) specials_.push_back(token_of(*m.value, m.where));
    for (const std::string_view key : kLists) {
      const Member m = member(key);
      if (!m) continue;
      if (const json::Object* names = m.value->object())  // {"image_token": "<image>", ...}
        for (const json::Member& entry : *names) specials_.push_back(token_of(entry.second, m.where));
      else
        for (const json::Value& entry : m.value->as_array(m.where)) specials_.push_back(token_of(entry, m.where));
    }
  }
  const AddedToken* special(std::string_view text) const {
    const auto found = std::find_if(specials_.begin(), specials_.end(), [&](const auto& s) { return s.text == text; });
    return found == specials_.end() ? nullptr : &*found;
  }

  void add(AddedToken token) {
    if (std::binary_search(own_.begin(), own_.end(), token.id)) return;  // the tokenizer's own file decides
    const auto at = static_cast<size_t>(token.id);
    if (at >= t_.pieces.size() || t_.pieces[at] != token.text) vocabulary_.add(token.id, token.text);
    t_.added.push_back(std::move(token));
  }

  void add_from_decoder() {
    const std::string where = config_->name + ": added_tokens_decoder";
    for (const json::Member& m : config_->value.get("added_tokens_decoder")->as_object(where)) {
      AddedToken token = read_added(m.second, where);
      token.special |= special(token.text) != nullptr;
      token.id = id_in_range(json::parse(m.first, where).as_int(where), where);
      add(std::move(token));
    }
  }

  void add_from_list() {
    for (const json::Member& m : added_->value.as_object(added_->name)) {
      const std::string where = added_->name + ": \"" + m.first.substr(0, 100) + "\"";
      AddedToken token;
      token.text = m.first;
      token.special = special(token.text) != nullptr;
      token.on = token.special ? AddedToken::On::raw_text : AddedToken::On::normalized_text;
      token.id = id_in_range(m.second.as_int(where), where);
      add(std::move(token));
    }
  }

  // Special tokens that are pieces of the vocabulary and were not added yet.
  void mark_specials() {
    for (AddedToken token : specials_) {
      const auto id = vocabulary_.find(token.text);
      const auto is_it = [&](const AddedToken& a) { return a.text == token.text; };
      if (!id || std::any_of(t_.added.begin(), t_.added.end(), is_it)) continue;
      token.id = *id;
      t_.added.push_back(std::move(token));
    }
  }

  void name_ends() {
    const auto id_of = [&](std::string_view key) -> std::optional<int32_t> {
      const Member m = member(key);
      return m ? vocabulary_.find(token_of(*m.value, m.where).text) : std::nullopt;
    };
    if (const auto bos = id_of("bos_token")) t_.bos = bos;
    if (const auto eos = id_of("eos_token")) add_end_id(t_, *eos);
  }

  // These flags rule where the tokenizer's file has no template of its own.
  void put_around() {
    const bool has_bos = t_.bos && !t_.prefix_ids.empty() && t_.prefix_ids.front() == *t_.bos;
    if (const auto wanted = flag("add_bos_token"); wanted && t_.bos) {
      if (*wanted && t_.prefix_ids.empty()) t_.prefix_ids = {*t_.bos};
      if (!*wanted && has_bos) t_.prefix_ids.erase(t_.prefix_ids.begin());
    }
    if (flag("add_eos_token").value_or(false) && !t_.end_ids.empty() && t_.suffix_ids.empty())
      t_.suffix_ids = {t_.end_ids.front()};
  }

  // Accents go with capitals unless the file says otherwise.
  void set_case() {
    const auto lowercase = flag("do_lower_case"), accents = flag("strip_accents"),
               apart = flag("tokenize_chinese_chars");
    for (NormalizerStep& step : t_.normalizers)
      if (auto* bert = std::get_if<BertNormalizer>(&step)) {
        if (lowercase) bert->lowercase = bert->strip_accents = *lowercase;
        if (accents) bert->strip_accents = *accents;
        if (apart) bert->handle_chinese_chars = *apart;
      }
  }

  TokenizerTables& t_;
  VocabularyBuilder vocabulary_;
  std::optional<Document> config_, map_, added_;
  bool has_decoder_ = false;
  std::vector<int32_t> own_;          // ids that the tokenizer's own file added
  std::vector<AddedToken> specials_;  // by name, without ids
};

}  // namespace

void apply_config_files(TokenizerTables& tables, const TokenizerConfigFiles& files) {
  ConfigFiles(tables, files).apply();
}

}  // namespace hearth::text
