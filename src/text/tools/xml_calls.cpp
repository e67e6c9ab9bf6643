// Calls as tags around each argument:
//   Qwen3-Coder, Qwen3.5   <tool_call><function=NAME><parameter=KEY>value</parameter></function></tool_call>
//   MiniCPM5               <function name="NAME"><param name="KEY">value</param></function>
#include <optional>

#include "text/tools/call_reader.h"
#include "text/tools/literal_match.h"
#include "text/tools/xml_value.h"

namespace hearth::text::tools {
namespace {

constexpr size_t kNameMax = 256;

struct XmlDialect {
  bool attributes = false;  // the names stand in attributes: <function name="NAME">
  std::string_view function, function_close, parameter, wrapper_close;
  XmlValueRules value;
};

constexpr XmlDialect kQwen = {
    .function = "<function=",
    .function_close = "</function>",
    .parameter = "<parameter=",
    .wrapper_close = "</tool_call>",
    .value = {.close = "</parameter>", .next = {"<parameter=", "</function>"}, .line_breaks = true}};
constexpr XmlDialect kMiniCpm = {.attributes = true,
                                 .function = "<function",
                                 .function_close = "</function>",
                                 .parameter = "<param",
                                 .value = {.close = "</param>", .next = {"<param", "</function>"}, .markup = true}};

class XmlCalls : public CallReader {
 public:
  XmlCalls(const XmlDialect& dialect, std::span<const ToolSpec> tools) : CallReader(tools), dialect_(dialect) {}

  void begin(size_t opener) override {
    begin_call();
    wrapped_ = !dialect_.attributes && opener == 0;
    if (wrapped_) expect(State::wrapper, dialect_.function);
    else header(Tag::function);
  }

  CallStep push(char c) override {
    switch (state_) {
      case State::wrapper: return match(c, [&] { return header(Tag::function); });
      case State::gap:
        if (!is_blank(c)) return CallStep::failed;
        return expect(State::attribute, "name");
      case State::attribute: return match(c, [&] { return expect(State::equals, "="); });
      case State::equals: return match(c, [&] { return expect(State::quote, "\"", "'"); });
      case State::quote:
        return match(c, [&] {
          quote_ = c;
          state_ = State::quoted_name;
          return CallStep::more;
        });
      case State::quoted_name:
        if (c != quote_) return name_byte(c);
        return expect(State::tag_end, ">", "/>");
      case State::tag_end: return match(c, [&] { return named(word_.which() == 1); });
      case State::bare_name: return c == '>' ? named(false) : name_byte(c);
      case State::between:
        return match(c, [&] { return word_.which() == 0 ? header(Tag::parameter) : function_closed(); });
      case State::value:
        if (value_->push(c) == Step::more) return CallStep::more;
        if (!value_->next()) return next_argument();
        return *value_->next() == 0 ? header(Tag::parameter) : function_closed();
      case State::trailer:
        return match(c, [&] {
          if (word_.which() == 0) return end_call(CallStep::ended_closed);
          state_ = State::next_call;  // another function inside the same outer tag
          return end_call(CallStep::ended);
        });
      case State::next_call:
        begin_call();
        header(Tag::function);
        return push(c);
    }
    return CallStep::failed;
  }

  std::string_view ahead() const override { return state_ == State::next_call ? dialect_.function : ""; }

 private:
  enum class State {
    wrapper,
    gap,
    attribute,
    equals,
    quote,
    quoted_name,
    tag_end,
    bare_name,
    between,
    value,
    trailer,
    next_call
  };
  enum class Tag { function, parameter };

  template <class Then>
  CallStep match(char c, const Then& then) {
    const Match m = word_.push(c);
    if (m == Match::found) return then();
    return m == Match::more ? CallStep::more : CallStep::failed;
  }
  CallStep expect(State state, std::string_view first, std::string_view second = {}) {
    state_ = state;
    word_ = LiteralMatch(first, second);
    return CallStep::more;
  }
  CallStep header(Tag tag) {
    tag_ = tag;
    name_.clear();
    state_ = dialect_.attributes ? State::gap : State::bare_name;
    return CallStep::more;
  }
  CallStep name_byte(char c) {
    if (c == '<' || c == '>' || c == '\n' || name_.size() >= kNameMax) return CallStep::failed;
    name_ += c;
    return CallStep::more;
  }
  CallStep next_argument() { return expect(State::between, dialect_.parameter, dialect_.function_close); }

  // The tag's name is whole; `empty`: the tag closes itself.
  CallStep named(bool empty) {
    const std::string_view name = without_blanks(name_);
    if (tag_ == Tag::function) {
      if (!find(name)) return CallStep::failed;
      arguments_.begin_object();
      return empty ? function_closed() : next_argument();
    }
    if (!arguments_.key(name)) return CallStep::failed;
    value_.emplace(dialect_.value, arguments_, string_rule(tool_->parameters, name));
    state_ = State::value;
    if (!empty) return CallStep::more;
    value_->finish();
    return next_argument();
  }

  CallStep function_closed() {
    arguments_.end();
    whole_ = true;
    if (!wrapped_) return end_call(CallStep::ended_closed);
    return expect(State::trailer, dialect_.wrapper_close, dialect_.function);
  }

  const XmlDialect& dialect_;
  State state_ = State::wrapper;
  Tag tag_ = Tag::function;
  bool wrapped_ = false;
  char quote_ = '"';
  LiteralMatch word_;
  std::string name_;
  std::optional<XmlValueReader> value_;
};

}  // namespace

std::unique_ptr<CallReader> make_xml_calls(ToolDialect dialect, std::span<const ToolSpec> tools) {
  return std::make_unique<XmlCalls>(dialect == ToolDialect::minicpm5 ? kMiniCpm : kQwen, tools);
}

}  // namespace hearth::text::tools
