// What any dialect asks of a model, and what comes back: the two sides of a submit frame (wire.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/wire.h"

namespace hearth::server {

// The parsed request. Ranges of single fields were checked where they were read; the worker checks what needs the
// model (ids, the template, lengths).
struct Generation {
  enum class Kind : uint8_t { chat, raw };
  uint64_t id = 0;
  Kind kind = Kind::chat;
  json::Value messages = json::Array{};  // in the shape of OpenAI's chat
  json::Value tools;                     // the same: [{type: function, function: {...}}]; null: none
  std::string prompt;                    // raw
  json::Object sampling;  // temperature, top_p, ..., logit_bias, seed by the names of spec server 3.2; absent: defaults
  std::optional<int64_t> max_tokens;
  std::vector<std::string> stops;
  int64_t n = 1;
  std::optional<int64_t> top_logprobs;  // set: logprobs are wanted, with so many of the likeliest beside each
  bool raw_pieces = false;              // their tokens are spelled as the vocabulary has them, not as text
  bool signal = false;                  // nothing is drawn: the answer is the distribution behind the prompt
  json::Value tool_choice;              // "none", "auto", "required", or the name of a function as {"name": ...}
  bool parallel_tool_calls = true;
  bool tool_grammar = true;
  json::Value
      format;  // {"kind": "json_object" | "json_schema" | "regex" | "grammar" | "choice", "value": ...}; or null
  std::string format_field;     // of the request, that the format stood in
  bool any_whitespace = false;  // of a JSON format: white space between its tokens is free
  json::Object template_kwargs;
  std::optional<bool> thinking;             // reasoning_effort none: false, others: true
  std::string reasoning_effort;             // for templates that read it
  std::optional<int64_t> reasoning_budget;  // tokens of reasoning, behind which its closing marker is forced
  std::string adapter;                      // id, stack "a+b"; empty: the default one, "none": none
  std::string owner;                        // whose request it is: owners take turns and share no prefixes
  bool stream = false;                      // the answer is wanted as it comes, not only as a whole
  bool strict_admission = false;            // max_tokens beyond the context is refused instead of lowered
};

json::Value to_json(const Generation& generation);
Generation generation_of(const json::Value& body);  // Error{corrupt_file} for a body that to_json does not make

struct Usage {
  int64_t prompt = 0, cached = 0, completion = 0, reasoning = 0;
  int64_t max_tokens = 0;  // the cap after lowering to the room in the context
  double queue_ms = 0, prefill_ms = 0, decode_ms = 0;
};

inline constexpr int64_t kWholeRequest = -1;  // Event::answer of an error that ends all answers

// One thing that happened to one answer of a request.
struct Event {
  enum class Kind : uint8_t { admitted, text, reasoning, tool_begin, tool_args, tool_end, finish, error };
  Kind kind{};
  uint64_t id = 0;
  int64_t answer = 0;      // of n
  std::string text;        // text, reasoning, tool_args; the sentence of an error
  int64_t tokens = 0;      // drawn since the last event of this answer that told of some
  int64_t index = 0;       // tool_*: of the call in its answer
  std::string call, name;  // tool_begin
  json::Value logprobs;    // text: [{token, bytes, id, logprob, top: [...]}]; null: none wanted
  std::string reason;      // finish: stop, length, tool_calls, cancelled; error: name of its ErrorKind
  std::string stop;        // finish: the stop string that was found
  json::Value signal;      // finish: {bins, entropy, top}, where that was asked for
  std::string code;        // error: context_length_exceeded, ...
  std::string param;       // error: the field at fault
  bool untaken = false;    // error worker_lost: it ended before it read the request, which may go to the next worker
  std::string limit;       // error: the name of the limit that was passed
  int64_t needed_bytes = 0, usable_bytes = 0;  // error of a load that memory is too short for
  Usage usage;  // admitted (prompt, cached, max_tokens), finish; error of a prompt that is too long: prompt, and
                // max_tokens is the context
};

Frame to_frame(const Event& event);
Event event_of(const Frame& frame);  // Error{corrupt_file} for a frame of another kind or shape

}  // namespace hearth::server
