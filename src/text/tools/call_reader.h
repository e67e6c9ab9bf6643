// The markup of calls behind its opening marker, byte by byte, one class of dialects each.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tools/argument_writer.h"
#include "text/tools/dialect.h"
#include "text/tools/tool_spec.h"

namespace hearth::text::tools {

enum class CallStep {
  more,
  ended,         // a call is whole, the markup goes on: further calls, or its end
  ended_closed,  // a call is whole and the markup ends with this byte
  closed,        // the markup ends with this byte, behind a call that was whole before
  failed,        // no markup of this dialect, or no tool of this name
};

// One opening marker and what stands behind it; an object is not used again. Work a byte: constant, but for what a
// schema costs at a key.
class CallReader {
 public:
  virtual ~CallReader() = default;

  // Behind openers(dialect)[opener].
  virtual void begin(size_t opener) = 0;
  virtual CallStep push(char c) = 0;

  const ToolSpec* tool() const { return tool_; }    // of the call being read, once its name is known
  std::string take() { return arguments_.take(); }  // arguments that came since the last take
  bool in_call() const { return in_call_; }         // false between the calls of a list
  bool whole() const { return whole_; }             // nothing but the closing marker is missing
  // After `ended`: what was read already of the next call's markup.
  virtual std::string_view ahead() const { return {}; }

 protected:
  explicit CallReader(std::span<const ToolSpec> tools) : tools_(tools) {}

  void begin_call() {
    arguments_ = {};
    tool_ = nullptr;
    in_call_ = true;
    whole_ = false;
  }
  bool find(std::string_view name) { return (tool_ = find_tool(tools_, name)) != nullptr; }
  void no_arguments() {
    arguments_.begin_object();
    arguments_.end();
  }
  CallStep end_call(CallStep step) {
    in_call_ = false;
    return step;
  }

  std::span<const ToolSpec> tools_;
  ArgumentWriter arguments_;
  const ToolSpec* tool_ = nullptr;
  bool in_call_ = false, whole_ = false;
};

// Markers that open markup. "{" opens only what stands at the start of an answer or behind another call.
std::span<const std::string_view> openers(ToolDialect dialect);
// What is dropped directly behind a call; may be empty.
std::string_view dropped_after_call(ToolDialect dialect);

// The tools outlive the reader.
std::unique_ptr<CallReader> make_call_reader(ToolDialect dialect, std::span<const ToolSpec> tools);
std::unique_ptr<CallReader> make_json_calls(ToolDialect dialect, std::span<const ToolSpec> tools);
// {"name": NAME, "arguments": {...}}, from the brace on; ends with it.
std::unique_ptr<CallReader> make_strict_json_call(std::span<const ToolSpec> tools);
std::unique_ptr<CallReader> make_xml_calls(ToolDialect dialect, std::span<const ToolSpec> tools);
std::unique_ptr<CallReader> make_gemma_calls(std::span<const ToolSpec> tools);

}  // namespace hearth::text::tools
