// Gemma 4: <|tool_call>call:NAME{key:<|"|>text<|"|>,n:42}<tool_call|>
#include <optional>

#include "text/tools/call_reader.h"
#include "text/tools/literal_match.h"
#include "text/tools/value_reader.h"

namespace hearth::text::tools {
namespace {

constexpr size_t kNameMax = 256;

class GemmaCalls : public CallReader {
 public:
  explicit GemmaCalls(std::span<const ToolSpec> tools) : CallReader(tools) {}

  void begin(size_t) override { begin_call(); }

  CallStep push(char c) override {
    switch (state_) {
      case State::call:
        if (const Match m = word_.push(c); m != Match::found)
          return m == Match::more ? CallStep::more : CallStep::failed;
        state_ = State::name;
        return CallStep::more;
      case State::name:
        if (c == '<' || name_.size() >= kNameMax) return CallStep::failed;
        if (c != '{') {
          name_ += c;
          return CallStep::more;
        }
        if (!find(without_blanks(name_))) return CallStep::failed;
        value_.emplace(arguments_, Syntax::gemma, tool_);
        state_ = State::arguments;
        [[fallthrough]];
      case State::arguments:
        if (const Step step = value_->push(c); step != Step::done)
          return step == Step::more ? CallStep::more : CallStep::failed;
        whole_ = true;
        word_ = LiteralMatch("<tool_call|>");
        state_ = State::close;
        return CallStep::more;
      case State::close:
        if (const Match m = word_.push(c); m != Match::found)
          return m == Match::more ? CallStep::more : CallStep::failed;
        return end_call(CallStep::ended_closed);
    }
    return CallStep::failed;
  }

 private:
  enum class State { call, name, arguments, close };
  State state_ = State::call;
  LiteralMatch word_{"call:"};
  std::string name_;
  std::optional<ValueReader> value_;
};

}  // namespace

std::unique_ptr<CallReader> make_gemma_calls(std::span<const ToolSpec> tools) {
  return std::make_unique<GemmaCalls>(tools);
}

}  // namespace hearth::text::tools
