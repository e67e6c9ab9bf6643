// Source text to tokens, by the rules of Jinja 3.1 with trim_blocks and lstrip_blocks on.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace hearth::text::jinja {

enum class TokenKind : uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  floating,
  op,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  int line = 1;
  std::string text;  // data, name, decoded string, operator
  int64_t integer = 0;
  double floating = 0;

  bool is_op(std::string_view s) const { return kind == TokenKind::op && text == s; }
  bool is_name(std::string_view s) const { return kind == TokenKind::name && text == s; }
};

// A fault of the source, with its line.
class SyntaxFault : public Fault {
 public:
  SyntaxFault(const std::string& what, int line_) : Fault(what), line(line_) {}
  int line;
};

// `source` is UTF-8. Line ends become \n and one at the very end is dropped. Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source);

}  // namespace hearth::text::jinja
