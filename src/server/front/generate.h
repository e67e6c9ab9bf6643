// From a parsed request to its answer: the model is found and loaded, the worker answers, the client reads. The same
// for every dialect.
#pragma once
#include <memory>
#include <string>

#include "server/dialects/answer.h"
#include "server/front/answer_sink.h"
#include "server/front/services.h"
#include "server/http/route.h"

namespace hearth::server {

struct GenerationCall {
  std::string model;  // as the client named it
  Generation generation;
  bool stream = false;
  std::unique_ptr<AnswerWriter> writer;
  std::string keep_alive;                                      // "" or as the request said: seconds or "10m"
  std::function<void(const json::Value& document)> keep = {};  // sees the finished document, streamed or not
};

struct Asker {
  std::string owner;  // Auth::owner
  std::string request_id;
  std::string_view route;  // its path in the table
};

// Returns at once; the sink gets the answer, or why there is none. A client that goes away cancels its request. Any
// thread.
void generate(Services& services, GenerationCall run, Asker asker, std::shared_ptr<AnswerSink> sink);

// The same; the call's exchange gets the answer, or an error in the dialect's shape.
void generate(Services& services, GenerationCall run, Call call);

}  // namespace hearth::server
