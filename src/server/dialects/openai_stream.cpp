#include "server/dialects/openai_stream.h"

#include "net/sse.h"
#include "server/dialects/openai_chat.h"

namespace hearth::server::openai {

std::string StreamWriter::end() {
  std::string out;
  if (include_usage_) {
    json::Object o = base();
    o["choices"] = json::Array();
    put_usage(o, ended_);
    out = net::sse_event("", json::dump(o));
  }
  return out + net::sse_event("", "[DONE]");
}

std::string StreamWriter::failure(const Problem& problem, std::string_view request_id) {
  return net::sse_event("", json::dump(error_json(Dialect::openai, problem, request_id)));
}

std::string StreamWriter::ping() { return net::sse_comment("ping"); }

json::Object StreamWriter::base(const char* object) const {
  json::Object o;
  o["id"] = id_;
  o["object"] = object;
  o["created"] = head_.created;
  o["model"] = head_.model;
  return o;
}

void StreamWriter::put_usage(json::Object& o, const std::vector<Collected>& answers) {
  const Usage usage = total(answers);
  o["usage"] = usage_json(usage);
  o["timings"] = timings_json(usage);
}

}  // namespace hearth::server::openai
