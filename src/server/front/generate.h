// From a parsed request to its answer: the model is found and loaded, the worker answers, the client reads. The same
// for every dialect.
#pragma once
#include <memory>
#include <string>

#include "server/dialects/answer.h"
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

// Returns at once; the call's exchange gets the answer, or an error in the dialect's shape. A client that goes away
// cancels its request. Any thread.
void generate(Services& services, GenerationCall run, Call call);

}  // namespace hearth::server
