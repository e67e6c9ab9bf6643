// The one table of limits (reliability.md section 3): what strangers may ask of a server. Each row is a name of
// `--limit NAME=VALUE`, a label of hearth_limit_refusals_total, a line of docs/operations.md and a case of
// tests/server/limits_test.py. Parsers of model files have bounds of their own, which belong to their formats.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http.h"
#include "net/websocket.h"
#include "text/grammar/grammar.h"
#include "text/template/template.h"

namespace hearth::server {

enum class LimitId : uint8_t {
  request_line,
  head,
  headers,
  head_time,
  body_idle,
  body,
  control_body,
  json_depth,
  json_members,
  json_items,
  connections,
  streams_per_key,
  queue,
  stream_buffer,
  slow_reader,
  websocket_message,
  websocket_ping,
  websocket_idle,
  websockets,
  n,
  stop,
  stop_bytes,
  top_logprobs,
  logit_bias,
  tools,
  messages,
  raw_text,
  grammar_bytes,
  grammar_depth,
  grammar_work,
  template_steps,
  template_output,
  template_range,
  template_recursion,
  template_time,
  count
};
inline constexpr auto kLimitCount = static_cast<size_t>(LimitId::count);

enum class LimitUnit : uint8_t { number, bytes, milliseconds };

// What passing it means for the client.
enum class LimitKind : uint8_t {
  refuses,  // an error, or the end of the connection; counted
  pauses,   // it waits; counted
  paces     // something happens so often; nothing to count
};

struct Limit {
  LimitId id;
  std::string_view name;
  LimitUnit unit;
  int64_t fallback, least, most;
  std::string_view what;
  LimitKind kind = LimitKind::refuses;
};

std::span<const Limit, kLimitCount> limit_table();  // in the order of LimitId
const Limit* find_limit(std::string_view name);     // null: none is called so
const Limit& row_of(LimitId id);

// Values of one server. Set at its start; then read by any thread.
class Limits {
 public:
  Limits();  // the defaults

  int64_t operator[](LimitId id) const { return values_[static_cast<size_t>(id)]; }
  size_t size_of(LimitId id) const { return static_cast<size_t>((*this)[id]); }
  // Throws Error{invalid_argument} outside of the row's range.
  void set(LimitId id, int64_t value);

  net::HttpLimits http() const;
  void put(net::WebSocketOptions& options) const;
  text::GrammarLimits grammar() const;
  text::jinja::RenderLimits rendering() const;

 private:
  std::array<int64_t, kLimitCount> values_;
};

// As far as the limits of request fields may be raised: what the code behind them takes.
namespace most {
inline constexpr int64_t kStop = 64, kStopBytes = 4096, kLogitBias = 65'536, kMessages = 65'536,
                         kGrammarBytes = 1 << 20;
}

}  // namespace hearth::server
