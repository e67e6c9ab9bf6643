#include "text/tokenizer/decoder.h"

#include "base/error.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

void replace_all(std::string& s, std::string_view pattern, std::string_view content) {
  if (pattern.empty() || s.find(pattern) == std::string::npos) return;
  std::string out;
  size_t at = 0;
  for (size_t found; (found = s.find(pattern, at)) != std::string::npos; at = found + pattern.size())
    out.append(s, at, found - at).append(content);
  s = out.append(s, at, std::string::npos);
}

void clean_up(std::string& s) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(s, from, to);
}

struct PieceDecoder {
  const std::vector<DecoderStep>& steps;

  std::string operator()(std::string s, bool first) const {
    bool fused = false;
    for (const DecoderStep& step : steps) {
      if (std::holds_alternative<DecodeByteLevel>(step)) {
        if (auto bytes = bytes_of_alphabet(s)) s = *std::move(bytes);
      } else if (std::holds_alternative<DecodeByteFallback>(step)) {
        if (const auto byte = byte_of_piece(s)) s.assign(1, static_cast<char>(*byte));
      } else if (std::holds_alternative<DecodeFuse>(step)) {
        fused = true;
      } else if (const auto* r = std::get_if<DecodeReplace>(&step)) {
        replace_all(s, r->pattern, r->content);
      } else if (const auto* strip = std::get_if<DecodeStrip>(&step)) {
        for (int i = 0; i < strip->start && (first || !fused) && s.starts_with(strip->content); ++i)
          s.erase(0, strip->content.size());
        for (int i = 0; i < strip->stop && s.ends_with(strip->content); ++i) s.resize(s.size() - strip->content.size());
      } else if (const auto* m = std::get_if<DecodeMetaspace>(&step)) {
        replace_all(s, m->replacement, first && m->drop_first ? "" : " ");
      } else if (const auto* w = std::get_if<DecodeWordPiece>(&step)) {
        if (!first) {
          if (!w->prefix.empty() && s.starts_with(w->prefix)) s.erase(0, w->prefix.size());
          else s.insert(0, " ");
        }
        if (w->cleanup) clean_up(s);
      } else if (const auto* suffix = std::get_if<DecodeSuffix>(&step)) {
        replace_all(s, suffix->suffix, " ");
      }
    }
    return s;
  }
};

}  // namespace

DecodedPieces decode_pieces(const std::vector<std::string>& pieces, const std::vector<DecoderStep>& steps,
                            std::string_view what) {
  DecodedPieces out;
  bool fused = false, first_differs = false;
  for (const DecoderStep& step : steps) {
    if (std::holds_alternative<DecodeFuse>(step)) fused = true;
    if (const auto* r = std::get_if<DecodeReplace>(&step); r && fused && unicode::count(r->pattern) > 1)
      fail(ErrorKind::invalid_argument, "{}: decoder replaces \"{}\" across pieces, which is not supported", what,
           r->pattern);
    if (const auto* s = std::get_if<DecodeStrip>(&step)) {
      if (fused && s->stop > 0)
        fail(ErrorKind::invalid_argument, "{}: decoder strips the end of a text, which is not supported", what);
      first_differs |= fused && s->start > 0;
    }
    if (const auto* m = std::get_if<DecodeMetaspace>(&step)) first_differs |= m->drop_first;
    first_differs |= std::holds_alternative<DecodeWordPiece>(step);
    out.drop_last_space |= std::holds_alternative<DecodeSuffix>(step);
  }
  size_t spelled = 0;
  for (const std::string& piece : pieces) spelled += piece.size();
  out.bytes.reserve(pieces.size(), spelled);
  if (steps.size() == 1 && std::holds_alternative<DecodeByteLevel>(steps.front())) {  // most tokenizers: no copies
    for (const std::string& piece : pieces) {
      if (!append_bytes_of_alphabet(out.bytes.open(), piece)) out.bytes.open() += piece;
      out.bytes.close();
    }
    return out;
  }
  const PieceDecoder decode{steps};
  for (const std::string& piece : pieces) out.bytes.add(decode(piece, false));
  if (first_differs) {
    out.first.reserve(pieces.size(), spelled);
    for (const std::string& piece : pieces) out.first.add(decode(piece, true));
  }
  return out;
}

}  // namespace hearth::text
