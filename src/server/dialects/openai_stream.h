// What the streams of chat and raw completions share (spec server 3.3).
#pragma once
#include <string>
#include <vector>

#include "server/dialects/answer.h"

namespace hearth::server::openai {

class StreamWriter : public AnswerWriter {
 public:
  StreamWriter(bool include_usage, int64_t n, std::string id, const char* chunk_object)
      : include_usage_(include_usage),
        ended_(static_cast<size_t>(n)),
        id_(std::move(id)),
        chunk_object_(chunk_object) {}

  std::string end() override;  // the usage, if it is a chunk of its own, and [DONE]
  std::string failure(const Problem& problem, std::string_view request_id) override;
  std::string ping() override;

 protected:
  json::Object base(const char* object) const;  // id, object, created, model
  json::Object base() const { return base(chunk_object_); }
  static void put_usage(json::Object& o, const std::vector<Collected>& answers);

  bool include_usage_;
  std::vector<Collected> ended_;  // by answer, as far as their finish is known
  size_t finished_ = 0;
  AnswerHead head_;

 private:
  std::string id_;
  const char* chunk_object_;
};

}  // namespace hearth::server::openai
