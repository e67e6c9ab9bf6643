// Server-sent events as text (WHATWG HTML, 9.2); for Exchange::write on a stream of type kEventStream.
#pragma once
#include <string>
#include <string_view>

namespace hearth::net {

inline constexpr std::string_view kEventStream = "text/event-stream; charset=utf-8";

// event: NAME, one data: line for each line of data, an empty line. An empty name leaves its line out. CR, LF and CRLF
// in data all end a line, so data cannot end the event or begin another field. Throws Error{invalid_argument} for a
// name or id with a line end.
std::string sse_event(std::string_view name, std::string_view data, std::string_view id = {});

// A line that clients ignore, e.g. sse_comment("ping") while there is nothing to say.
std::string sse_comment(std::string_view text);

}  // namespace hearth::net
