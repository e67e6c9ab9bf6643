// Calls as JSON objects:
//   Hermes, Qwen2/2.5/3   <tool_call> {"name": NAME, "arguments": {...}} </tool_call>
//   Llama 3.x             {"name": NAME, "parameters": {...}}, perhaps behind <|python_tag|>
//   Mistral               [TOOL_CALLS] [{"name": NAME, "arguments": {...}}, ...], later [TOOL_CALLS]NAME[ARGS]{...}
#include <algorithm>
#include <optional>

#include "base/json.h"
#include "text/tools/call_reader.h"
#include "text/tools/literal_match.h"
#include "text/tools/value_reader.h"

namespace hearth::text::tools {
namespace {

constexpr size_t kNameMax = 256;

class JsonCalls : public CallReader {
 public:
  JsonCalls(ToolDialect dialect, std::span<const ToolSpec> tools)
      : CallReader(tools),
        mistral_(dialect == ToolDialect::mistral || dialect == ToolDialect::mistral_args),
        closer_(dialect == ToolDialect::llama3 || mistral_ ? "" : "</tool_call>") {}
  // One object and nothing around it, a name and arguments and nothing beside them.
  explicit JsonCalls(std::span<const ToolSpec> tools) : CallReader(tools), mistral_(false), strict_(true) {}

  void begin(size_t opener) override {
    begin_call();
    if (opener == 1) open_object();  // Llama's bare object: the marker was its brace
  }

  CallStep push(char c) override {
    switch (state_) {
      case State::start:
        if (is_blank(c)) return CallStep::more;
        if (c == '{') return open_object();
        if (c == '[') {
          list_ = true;
          in_call_ = false;
          state_ = State::item;
          return CallStep::more;
        }
        if (!mistral_) return CallStep::failed;
        state_ = State::bare_name;
        return name_byte(c);
      case State::item:
        if (is_blank(c)) return CallStep::more;
        if (c != '{') return CallStep::failed;
        begin_call();
        return open_object();
      case State::separator:
        if (is_blank(c)) return CallStep::more;
        if (c == ']') return closer_.empty() ? CallStep::closed : expect_closer();
        if (c != ',') return CallStep::failed;
        state_ = State::item;
        return CallStep::more;
      case State::closer:
        if (const Match m = word_.push(c); m != Match::found)
          return m == Match::more ? CallStep::more : CallStep::failed;
        return list_ ? CallStep::closed : end_call(CallStep::ended_closed);
      case State::bare_name: return name_byte(c);
      case State::header: return header_byte(c);
      default: return object_byte(c);
    }
  }

 private:
  enum class State { start, item, separator, closer, bare_name, header, key, colon, value_start, value, after_value };
  enum class Field { name, arguments, other };

  CallStep open_object() {
    state_ = State::key;
    has_arguments_ = false;
    return CallStep::more;
  }

  CallStep object_byte(char c) {
    if (state_ != State::value && is_blank(c)) return CallStep::more;
    switch (state_) {
      case State::key:
        if (c != '"') return CallStep::failed;
        read_aside(Field::other);
        in_key_ = true;
        return value_byte(c);
      case State::colon: state_ = State::value_start; return c == ':' ? CallStep::more : CallStep::failed;
      case State::value_start: return begin_value(c);
      case State::value: return value_byte(c);
      case State::after_value:
        if (c == '}') return object_closed();
        state_ = State::key;
        return c == ',' ? CallStep::more : CallStep::failed;
      default: return CallStep::failed;
    }
  }

  CallStep begin_value(char c) {
    if (field_ == Field::name && c != '"') return CallStep::failed;
    if (field_ == Field::arguments && c == '{') {
      value_.emplace(arguments_, Syntax::json);
      state_ = State::value;
      return value_byte(c);
    }
    if (field_ == Field::arguments && (c != 'n' || strict_)) return CallStep::failed;  // null: no arguments
    read_aside(field_);
    return value_byte(c);
  }

  // The next value goes beside the arguments: keys, the name, what is not looked at.
  void read_aside(Field field) {
    aside_ = {};
    field_ = field;
    in_key_ = false;
    value_.emplace(aside_, Syntax::json);
    state_ = State::value;
  }

  CallStep value_byte(char c) {
    const Step step = value_->push(c);
    if (step == Step::failed) return CallStep::failed;
    if (step == Step::more) return strict_ && !may_fit() ? CallStep::failed : CallStep::more;
    if (const CallStep done = value_ended(); done != CallStep::more) return done;
    return step == Step::before ? object_byte(c) : CallStep::more;
  }

  // Whether the key or the name that is being read may become one that is known.
  bool may_fit() const {
    const auto begins = [&](std::string_view word) {
      ArgumentWriter whole;
      whole.begin_string();
      whole.text(word);
      return whole.written().starts_with(aside_.written());
    };
    if (in_key_) return begins("name") || begins("arguments");
    return field_ != Field::name || std::ranges::any_of(tools_, [&](const ToolSpec& t) { return begins(t.name); });
  }

  CallStep value_ended() {
    if (in_key_) {
      in_key_ = false;
      state_ = State::colon;
      return key_known();
    }
    if (named_by_marker_) {
      named_by_marker_ = false;
      return end_call(CallStep::ended_closed);
    }
    state_ = State::after_value;
    if (field_ == Field::name) return find(aside_text()) ? CallStep::more : CallStep::failed;
    if (field_ == Field::arguments) {
      if (!aside_.written().empty() && aside_.written() != "null") return CallStep::failed;
      if (!aside_.written().empty()) no_arguments();
      has_arguments_ = true;
    }
    return CallStep::more;
  }

  CallStep key_known() {
    const std::string key = aside_text();
    aside_ = {};
    field_ = Field::other;
    if (key == "name") {
      field_ = Field::name;
      return tool_ ? CallStep::failed : CallStep::more;
    }
    if (key == "arguments" || (key == "parameters" && !strict_)) {
      field_ = Field::arguments;
      return has_arguments_ ? CallStep::failed : CallStep::more;
    }
    return (key == "id" || key == "type") && !strict_ ? CallStep::more : CallStep::failed;
  }

  std::string aside_text() const { return json::parse(aside_.written(), "name").as_string("name"); }

  CallStep object_closed() {
    if (!tool_) return CallStep::failed;
    if (!has_arguments_ && strict_) return CallStep::failed;
    if (!has_arguments_) no_arguments();
    whole_ = true;
    if (list_) {
      state_ = State::separator;
      return end_call(CallStep::ended);
    }
    return closer_.empty() ? end_call(CallStep::ended_closed) : expect_closer();
  }

  CallStep expect_closer() {
    state_ = State::closer;
    word_ = LiteralMatch(closer_);
    return CallStep::more;
  }

  // Mistral's later form: the name up to a brace, or to [ARGS], perhaps with [CALL_ID]... between.
  CallStep name_byte(char c) {
    if (c == '{' || c == '[') {
      if (!find(without_blanks(name_))) return CallStep::failed;
      name_.clear();
      if (c == '{') return arguments_by_marker(c);
      state_ = State::header;
      return header_byte(c);
    }
    if (c == '<' || c == '\n' || name_.size() >= kNameMax) return CallStep::failed;
    name_ += c;
    return CallStep::more;
  }
  CallStep header_byte(char c) {
    static constexpr std::string_view kArgs = "[ARGS]", kId = "[CALL_ID]";
    const bool args = name_ == kArgs, id = name_.starts_with(kId);
    if (args && is_blank(c)) return CallStep::more;
    if (args) return c == '{' ? arguments_by_marker(c) : CallStep::failed;
    if (id && c == '[') name_.clear();  // the model's own id is not used
    name_ += c;
    const bool open = kArgs.starts_with(name_) || kId.starts_with(name_) || id;
    return open && name_.size() < kNameMax ? CallStep::more : CallStep::failed;
  }
  CallStep arguments_by_marker(char c) {
    named_by_marker_ = true;
    in_key_ = false;
    value_.emplace(arguments_, Syntax::json);
    state_ = State::value;
    return value_byte(c);
  }

  bool mistral_, strict_ = false;
  std::string_view closer_;
  State state_ = State::start;
  bool list_ = false, in_key_ = false, has_arguments_ = false, named_by_marker_ = false;
  Field field_ = Field::other;
  ArgumentWriter aside_;
  std::optional<ValueReader> value_;
  LiteralMatch word_;
  std::string name_;
};

}  // namespace

std::unique_ptr<CallReader> make_json_calls(ToolDialect dialect, std::span<const ToolSpec> tools) {
  return std::make_unique<JsonCalls>(dialect, tools);
}

std::unique_ptr<CallReader> make_strict_json_call(std::span<const ToolSpec> tools) {
  return std::make_unique<JsonCalls>(tools);
}

}  // namespace hearth::text::tools
