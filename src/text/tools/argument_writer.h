// The arguments of a call as JSON text, written while the model still writes its markup.
#pragma once
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hearth::text::tools {

inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
std::string_view without_blanks(std::string_view text);  // at both ends

// Writes one value in the form of json::dump ("key": value, members parted by ", "), which is also that of a template's
// tojson: a call comes back from the client's history with the bytes that it left with. Numbers stay as written. The
// caller keeps the order of calls right; what input can do wrong is answered with false.
class ArgumentWriter {
 public:
  static constexpr size_t kDepthMax = 64;  // below what json::parse takes

  bool begin_object() { return begin('{'); }  // false: nested too deep
  bool begin_array() { return begin('['); }
  void end();  // of the innermost object or array
  bool in_object() const { return !scopes_.empty() && scopes_.back().object; }
  size_t depth() const { return scopes_.size(); }

  bool key(std::string_view name);  // false: the object has it already
  void begin_string();
  void text(std::string_view bytes);  // of the open string, not escaped
  void end_string() { out_ += '"'; }
  void literal(std::string_view json);  // a whole value

  const std::string& written() const { return out_; }
  std::string take() { return std::exchange(out_, {}); }  // what was written since the last take

 private:
  struct Scope {
    bool object = false, empty = true;
    std::unordered_set<std::string> keys;
  };
  bool begin(char bracket);
  void separate();  // before a value

  std::string out_;
  std::vector<Scope> scopes_;
};

}  // namespace hearth::text::tools
