#include "net/http.h"

#include <algorithm>

#include "net/grammar.h"

namespace hearth::net {

bool same_token(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::string_view> RequestHead::header(std::string_view name) const {
  for (const Header& header : headers)
    if (same_token(header.first, name)) return header.second;
  return std::nullopt;
}

size_t RequestHead::header_count(std::string_view name) const {
  return static_cast<size_t>(
      std::count_if(headers.begin(), headers.end(), [&](const Header& h) { return same_token(h.first, name); }));
}

bool lists_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    if (same_token(trim(item), token)) return true;
  }
  return false;
}

bool RequestHead::wants_websocket() const {
  const auto upgrade = header("upgrade");
  return method == "GET" && upgrade && same_token(*upgrade, "websocket");
}

std::optional<std::string> percent_decode(std::string_view text, Plus plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(16 * high + low);
      i += 2;
    } else if (c == '+' && plus == Plus::space) {
      c = ' ';
    }
    if (c == '\0') return std::nullopt;
    out.push_back(c);
  }
  return out;
}

std::optional<std::vector<Header>> query_parameters(std::string_view query, size_t pairs_max) {
  std::vector<Header> out;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    if (out.size() == pairs_max) return std::nullopt;
    const size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), Plus::space);
    auto value = percent_decode(equals == pair.npos ? "" : pair.substr(equals + 1), Plus::space);
    if (!name || !value) return std::nullopt;
    out.emplace_back(std::move(*name), std::move(*value));
  }
  return out;
}

}  // namespace hearth::net
