#include "server/limits.h"

#include <algorithm>

#include "base/error.h"

namespace hearth::server {
namespace {

using enum LimitId;
using enum LimitUnit;
using enum LimitKind;

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kSecond = 1000, kHour = 3600 * kSecond;

constexpr std::array<Limit, kLimitCount> kTable = {{
    {request_line, "request-line", bytes, 8 * kKiB, 64, 64 * kKiB, "the first line of a request"},
    {head, "head", bytes, 16 * kKiB, kKiB, 256 * kKiB, "request line and headers"},
    {headers, "headers", number, 100, 8, 1000, "headers of a request"},
    {head_time, "head-time", milliseconds, 10 * kSecond, 50, kHour, "until a request's head is whole"},
    {body_idle, "body-idle", milliseconds, 30 * kSecond, 50, kHour, "between two pieces of a body"},
    {body, "body", bytes, 32 * kMiB, kKiB, 32 * kMiB, "a body of inference"},
    {control_body, "control-body", bytes, kMiB, kKiB, 32 * kMiB, "a body of control"},
    {json_depth, "json-depth", number, 96, 8, 96, "values of a body in each other"},
    {json_members, "json-members", number, 200'000, 100, 1'000'000, "members of all objects of a body"},
    {json_items, "json-items", number, 2'000'000, 100, 16'000'000, "items of all arrays of a body"},
    {connections, "connections", number, 1024, 4, 65'536, "connections at once; idle ones make room"},
    {streams_per_key, "streams-per-key", number, 64, 1, 65'536, "answers under way or waiting, of one key"},
    {queue, "queue", number, 256, 1, 65'536, "requests that wait for a model"},
    {stream_buffer, "stream-buffer", bytes, 256 * kKiB, kKiB, 4 * kMiB,
     "of a stream, not yet read by its client; then its row waits", pauses},
    {slow_reader, "slow-reader", milliseconds, 60 * kSecond, 50, kHour, "that a client may leave its stream unread"},
    {websocket_message, "websocket-message", bytes, kMiB, kKiB, kMiB, "a message of /ws/chat"},
    {websocket_ping, "websocket-ping", milliseconds, 20 * kSecond, 20, kHour, "between two pings", paces},
    {websocket_idle, "websocket-idle", milliseconds, 60 * kSecond, 50, kHour, "without a sign of a WebSocket's client"},
    {websockets, "websockets", number, 8, 1, 1024, "WebSockets of one credential"},
    {n, "n", number, 8, 1, 8, "answers to one prompt"},
    {stop, "stop", number, 16, 1, most::kStop, "stop strings"},
    {stop_bytes, "stop-bytes", bytes, 256, 1, most::kStopBytes, "a stop string"},
    {top_logprobs, "top-logprobs", number, 20, 0, 20, "likeliest tokens beside each one"},
    {logit_bias, "logit-bias", number, 1024, 0, most::kLogitBias, "entries of logit_bias"},
    {tools, "tools", number, 256, 0, 256, "functions of a request"},
    {messages, "messages", number, 8192, 1, most::kMessages, "messages of a conversation, items of input"},
    {raw_text, "raw-text", bytes, 4 * kMiB, kKiB, 32 * kMiB, "a raw prompt, a text to tokenize or to embed"},
    {grammar_bytes, text::kGrammarBytes, bytes, 256 * kKiB, 16, most::kGrammarBytes,
     "a grammar, an expression or a schema"},
    {grammar_depth, text::kGrammarDepth, number, 64, 1, 64, "groups, schemas or rules in each other"},
    {grammar_work, text::kGrammarWork, number, 8'000'000, 1000, 1'000'000'000,
     "steps of compiling a grammar; 8 M are about 500 ms and 64 MiB"},
    {template_steps, text::jinja::kStepsLimit, number, 2'000'000, 1000, 1'000'000'000, "steps of a chat template"},
    {template_output, text::jinja::kOutputLimit, bytes, 8 * kMiB, kKiB, 32 * kMiB,
     "what a chat template makes, besides the conversation's own text; and that text"},
    {template_range, text::jinja::kRangeLimit, number, 100'000, 10, 10'000'000, "items of a range in a chat template"},
    {template_recursion, text::jinja::kRecursionLimit, number, 100, 4, 100, "macros and loops in each other"},
    {template_time, text::jinja::kTimeLimit, milliseconds, 250, 10, 60 * kSecond, "that a chat template may take"},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<size_t>(kTable[i].id) != i || kTable[i].fallback < kTable[i].least ||
        kTable[i].fallback > kTable[i].most)
      return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const Limit, kLimitCount> limit_table() { return kTable; }

const Limit* find_limit(std::string_view name) {
  const auto* found = std::ranges::find(kTable, name, &Limit::name);
  return found == kTable.end() ? nullptr : found;
}

const Limit& row_of(LimitId id) { return kTable[static_cast<size_t>(id)]; }

Limits::Limits() : values_() {
  for (const Limit& row : kTable) values_[static_cast<size_t>(row.id)] = row.fallback;
}

void Limits::set(LimitId id, int64_t value) {
  const Limit& row = row_of(id);
  if (value < row.least || value > row.most)
    fail(ErrorKind::invalid_argument, "the limit {} is {}, it may be from {} to {}", row.name, value, row.least,
         row.most);
  values_[static_cast<size_t>(id)] = value;
}

net::HttpLimits Limits::http() const {
  net::HttpLimits out;
  out.request_line_bytes = size_of(request_line);
  out.head_bytes = size_of(head);
  out.headers_max = size_of(headers);
  out.head_time = net::Milliseconds((*this)[head_time]);
  out.body_idle = net::Milliseconds((*this)[body_idle]);
  out.connections_max = size_of(connections);
  out.stream_bytes = size_of(stream_buffer);
  out.slow_reader = net::Milliseconds((*this)[slow_reader]);
  return out;
}

void Limits::put(net::WebSocketOptions& options) const {
  options.message_bytes_max = size_of(websocket_message);
  options.ping = net::Milliseconds((*this)[websocket_ping]);
  options.idle = net::Milliseconds((*this)[websocket_idle]);
  options.send_bytes = size_of(stream_buffer);
  options.slow_reader = net::Milliseconds((*this)[slow_reader]);
}

text::GrammarLimits Limits::grammar() const {
  return {.bytes = size_of(grammar_bytes),
          .depth = static_cast<int>((*this)[grammar_depth]),
          .work = (*this)[grammar_work]};
}

text::jinja::RenderLimits Limits::rendering() const {
  text::jinja::RenderLimits out;
  out.steps = (*this)[template_steps];
  out.output_bytes = out.input_bytes = (*this)[template_output];
  out.range_max = (*this)[template_range];
  out.recursion = static_cast<int>((*this)[template_recursion]);
  out.wall_ms = (*this)[template_time];
  return out;
}

}  // namespace hearth::server
