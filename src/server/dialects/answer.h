// How a dialect writes an answer: as one document, or as events of a stream.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/generation.h"
#include "server/http/problem.h"

namespace hearth::server {

struct AnswerHead {
  std::string request_id;  // x-request-id
  std::string model;       // the resolved id
  int64_t created = 0;     // seconds since 1970
};

// All of one answer, for a document.
struct Collected {
  struct Call {
    std::string id, name, arguments;
    bool whole = false;  // its end was seen: a call that the token limit cut is none
  };
  // A run of what came in this order: bytes [begin, end) of text or reasoning, or the call `begin` (tool_begin).
  struct Part {
    Event::Kind kind{};
    size_t begin = 0, end = 0;
  };
  std::string text, reasoning;
  std::vector<Call> calls;
  std::vector<Part> parts;
  json::Array logprobs;
  std::string reason, stop;  // of finish
  json::Value signal;        // the same
  Usage usage;

  void add(const Event& event);
  // Events that add up to the same, each run in one piece; log-probabilities stand at the first text. finish is last.
  std::vector<Event> events() const;

 private:
  void grow(Event::Kind kind, size_t at, size_t bytes);
};

// One request's answer in one dialect; one thread at a time. Strings are whole server-sent events.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string begin(const AnswerHead& head, const Usage& admitted) = 0;  // what goes out at admission
  virtual std::string event(const Event& event) = 0;  // text ... finish, of any answer; may be empty
  virtual std::string end() = 0;                      // behind the last finish
  virtual std::string failure(const Problem& problem, std::string_view request_id) = 0;  // in place of what is missing
  virtual std::string ping() = 0;
  virtual json::Value document(const AnswerHead& head, const std::vector<Collected>& answers) = 0;
};

// Usages of n answers to one prompt, together.
Usage total(const std::vector<Collected>& answers);

// "event: NAME" and the object {type: NAME, ...body}, as the dialects with named events write them.
std::string named_event(std::string_view name, json::Object body);

std::string random_id(std::string_view prefix);  // "chatcmpl-" and 24 letters and digits

}  // namespace hearth::server
