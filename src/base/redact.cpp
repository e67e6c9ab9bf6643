#include "base/redact.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"

namespace hearth {
namespace {

constexpr std::string_view kMask = "***";

constexpr std::array<std::string_view, 10> kTokenPrefixes = {"hf_",   "sk-",   "ghp_", "gho_",   "github_pat_",
                                                             "xoxb-", "xoxp-", "AKIA", "glpat-", "npm_"};
constexpr size_t kTokenLengthMin = 8;

constexpr std::array<std::string_view, 2> kSchemes = {"bearer", "basic"};

constexpr std::array<std::string_view, 10> kSecretKeys = {"api_key",    "api-key",   "apikey",   "access_token",
                                                          "auth_token", "hub_token", "hf_token", "secret",
                                                          "password",   "passwd"};
// Whole names only: eos_token is none.
constexpr std::array<std::string_view, 4> kSecretNames = {"authorization", "cookie", "set-cookie", "token"};

using ascii::is_alnum, ascii::lower;

bool is_token(char c) { return is_alnum(c) || c == '_' || c == '-'; }
bool is_space(char c) { return c == ' ' || c == '\t'; }

// Characters of a credential after a scheme word: base64, JWT and RFC 6750's b64token.
bool is_credential(char c) { return is_token(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '='; }

bool starts_with_lower(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char p, char t) { return p == lower(t); });
}

template <class Accept>
size_t span_of(std::string_view text, size_t from, const Accept& accept) {
  size_t end = from;
  while (end < text.size() && accept(text[end])) ++end;
  return end;
}

// What to drop at `at`: [begin, end) of the text.
struct Cut {
  size_t begin, end;
};

std::optional<Cut> token_at(std::string_view text, size_t at) {
  if (at > 0 && is_token(text[at - 1])) return std::nullopt;
  for (const std::string_view prefix : kTokenPrefixes) {
    if (!text.substr(at).starts_with(prefix)) continue;
    const size_t begin = at + prefix.size(), end = span_of(text, begin, is_token);
    if (end - begin >= kTokenLengthMin) return Cut{begin, end};
  }
  return std::nullopt;
}

std::optional<Cut> scheme_at(std::string_view text, size_t at) {
  if (at > 0 && is_token(text[at - 1])) return std::nullopt;
  for (const std::string_view scheme : kSchemes) {
    if (!starts_with_lower(text.substr(at), scheme)) continue;
    const size_t begin = span_of(text, at + scheme.size(), is_space), end = span_of(text, begin, is_credential);
    // A shorter word after "basic" is prose.
    if (begin > at + scheme.size() && end - begin >= kTokenLengthMin) return Cut{begin, end};
  }
  return std::nullopt;
}

std::optional<Cut> value_at(std::string_view text, size_t at) {
  for (const std::string_view key : kSecretKeys) {
    if (!starts_with_lower(text.substr(at), key)) continue;
    size_t begin = at + key.size();
    if (begin < text.size() && (text[begin] == '"' || text[begin] == '\'')) ++begin;
    begin = span_of(text, begin, is_space);
    if (begin >= text.size() || (text[begin] != '=' && text[begin] != ':')) continue;
    begin = span_of(text, begin + 1, is_space);
    if (begin >= text.size()) continue;
    if (text[begin] == '"' || text[begin] == '\'') {
      const char quote = text[begin++];
      size_t end = begin;
      while (end < text.size() && text[end] != quote) end += text[end] == '\\' && end + 1 < text.size() ? 2 : 1;
      if (end > begin) return Cut{begin, end};
    } else {
      const auto value = [](char c) { return c != ' ' && c != '\t' && c != '&' && c != ',' && c != ';' && c != '\n'; };
      const size_t end = span_of(text, begin, value);
      if (end > begin) return Cut{begin, end};
    }
  }
  return std::nullopt;
}

// `at` stands on "://": the part up to an '@' within the authority.
std::optional<Cut> user_at(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("://")) return std::nullopt;
  const size_t begin = at + 3;
  const auto authority = [](char c) { return c > ' ' && c != '/' && c != '?' && c != '#' && c != '"' && c != '\''; };
  const size_t end = span_of(text, begin, authority);
  const size_t sign = text.substr(begin, end - begin).rfind('@');
  if (sign == std::string_view::npos || sign == 0) return std::nullopt;
  return Cut{begin, begin + sign};
}

std::optional<Cut> shape_at(std::string_view text, size_t at) {
  switch (lower(text[at])) {
    case ':': return user_at(text, at);
    case 'b':
      if (const auto cut = scheme_at(text, at)) return cut;
      return std::nullopt;
    default: break;
  }
  if (const auto cut = token_at(text, at)) return cut;
  return value_at(text, at);
}

// Copies the text with every cut that `find` reports replaced by the mask.
template <class Find>
std::string mask_all(std::string_view text, const Find& find) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const std::optional<Cut> cut = find(at);
    if (!cut) {
      out += text[at++];
      continue;
    }
    out += text.substr(at, cut->begin - at);
    out += kMask;
    at = cut->end;
  }
  return out;
}

}  // namespace

void Redactor::add(std::string_view secret) {
  if (secret.empty()) return;
  const std::lock_guard lock(mutex_);
  if (std::find(secrets_.begin(), secrets_.end(), secret) != secrets_.end()) return;
  const auto place = std::find_if(secrets_.begin(), secrets_.end(),
                                  [&](const std::string& other) { return other.size() < secret.size(); });
  secrets_.insert(place, std::string(secret));
}

std::string Redactor::redact(std::string_view text) const {
  // Registered secrets first: one may reach past the end of a shape.
  std::string known;
  {
    const std::lock_guard lock(mutex_);
    known = mask_all(text, [&](size_t at) -> std::optional<Cut> {
      for (const std::string& secret : secrets_)
        if (text.substr(at).starts_with(secret)) return Cut{at, at + secret.size()};
      return std::nullopt;
    });
  }
  return mask_all(known, [&](size_t at) { return shape_at(known, at); });
}

bool names_secret(std::string_view key) {
  const std::string name = lower(key);
  const auto ends = [&](std::string_view word) { return std::string_view(name).ends_with(word); };
  return std::any_of(kSecretKeys.begin(), kSecretKeys.end(), ends) ||
         std::find(kSecretNames.begin(), kSecretNames.end(), name) != kSecretNames.end();
}

}  // namespace hearth
