// The frames of /ws/chat (spec web 3.1): JSON objects with a `type`, one a text message. A client's carries an `id` and
// is answered by ack or error; the server's carry a `seq`, which is put in where they are sent (front/frame_log.h).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/dialects/answer.h"
#include "server/http/fields.h"
#include "server/http/problem.h"
#include "server/limits.h"
#include "server/model_view.h"

namespace hearth::server::frames {

inline constexpr size_t kFrameBytes = size_t{1} << 20;

struct ClientFrame {
  std::string type;
  json::Value id;  // a string of 1 to 64 bytes or a whole number; null where the frame has none
  json::Object body;
};

// Throws RequestError for what is no JSON object within the limits of JSON.
ClientFrame read_frame(std::string_view text, const Limits& limits);

enum class Standing { taken, not_yet };
// not_yet: a frame of the web app that this server does not take. Throws RequestError for a frame without id, an
// unknown type, and a field that is missing, of a wrong type or out of range.
Standing check(const ClientFrame& frame);
// set_sampling's fields: those of every generation, max_tokens and stop.
std::vector<std::span<const Field>> sampling_tables();

// The server's frames.
std::string ack(const json::Value& id, bool repeated = false);
std::string error(const json::Value& id, const Problem& problem, int64_t turn = 0);
std::string not_yet(const ClientFrame& frame);
// `model` null: the name of none that can be had. What is not known before it is loaded is null.
std::string ready(const ModelView* model, std::string_view conversation, const std::string& build);
std::string history(std::string_view conversation, json::Array messages, const std::string& head);
std::string queue_update(const std::vector<std::string>& follow_up);
std::string context(int64_t tokens, const json::Value& window);

// One turn: what it answers, and what has come of it. Written by its writer alone.
struct Turn {
  int64_t number = 0;
  std::string message, parent;  // ids: the answer's, and that of the message that it answers
  std::string model;            // the resolved id
  Collected answer;
  Usage admitted;
  int64_t tokens = 0;  // told of so far
  Usage usage() const;
};
std::string turn_start(const Turn& turn);
std::string turn_end(const Turn& turn, std::string_view reason);

// Frames of a turn, each with a line feed behind it. turn_start is not among them: it goes out when the turn is asked
// for, not when it is admitted.
std::unique_ptr<AnswerWriter> turn_writer(std::shared_ptr<Turn> turn);

}  // namespace hearth::server::frames
