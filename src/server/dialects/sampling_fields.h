// The fields that every dialect of generation shares (spec server 3.2).
#pragma once
#include <span>

#include "server/generation.h"
#include "server/http/fields.h"

namespace hearth::server {

std::span<const Field> sampling_fields();

// Copies the sampling fields of a checked body, and adapter and thinking's fields, into the generation. Throws
// RequestError.
void read_sampling(const json::Object& body, Generation& generation);

// reasoning_effort, by whatever name it came: none turns thinking off, any other turns it on.
void set_effort(Generation& generation, const std::string& effort);

// Throws RequestError(param) for a curve {points} that cannot draw.
void check_curve(const json::Value& curve, std::string_view param);

// stop: a string or a list, as long as any server takes them.
std::vector<std::string> read_stops(const json::Value& value, std::string_view param);

// "Text" of content that is a string or a list of text parts. Throws RequestError naming the part's type where it is of
// another kind.
void check_content(const json::Value& content, std::string_view param);

}  // namespace hearth::server
