// The requests behind the editor of transfer curves: the distribution behind a prompt, and samples that a curve draws
// (spec server 3.2). Neither streams.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "server/dialects/answer.h"
#include "server/http/fields.h"

namespace hearth::server::lab {

std::span<const Field> prompt_fields();    // of both
std::span<const Field> generate_fields();  // of /generate besides

struct LabRequest {
  std::string model, keep_alive;
  Generation generation;
};

// Throw RequestError naming the field.
LabRequest parse_signal(const json::Object& body);
LabRequest parse_generate(const json::Object& body);

// {object: "signal", model, bins, entropy, top, usage, timings}
std::unique_ptr<AnswerWriter> signal_writer();
// {object: "samples", model, seed, samples: [{index, text, reasoning?, finish_reason}], usage, timings}
std::unique_ptr<AnswerWriter> samples_writer(const LabRequest& request);

}  // namespace hearth::server::lab
