// How routes of adapters answer with several.
#pragma once
#include <utility>

#include "base/json.h"
#include "server/http/route.h"

namespace hearth::server {

// 200 {object: "list", data}. Any thread.
inline void answer_list(const Call& call, json::Array data) {
  json::Object o;
  o["object"] = "list";
  o["data"] = std::move(data);
  call.answer(200, o);
}

}  // namespace hearth::server
