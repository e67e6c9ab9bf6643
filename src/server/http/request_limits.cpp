#include "server/http/request_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "server/http/fields.h"
#include "server/request_error.h"

namespace hearth::server {
namespace {

enum class Measure : uint8_t { value, items, members, bytes };  // bytes: of a text, of the longest of several

struct Row {
  std::string_view field;
  LimitId limit;
  Measure measure;
  int64_t least = 0;
  std::string_view route = {};  // of this one alone
};
constexpr Row kRows[] = {
    {"n", LimitId::n, Measure::value, 1},
    {"top_logprobs", LimitId::top_logprobs, Measure::value, -1},
    {"logprobs", LimitId::top_logprobs, Measure::value, 0, "/v1/completions"},
    {"stop", LimitId::stop, Measure::items},
    {"stop_sequences", LimitId::stop, Measure::items},
    {"logit_bias", LimitId::logit_bias, Measure::members},
    {"tools", LimitId::tools, Measure::items},
    {"messages", LimitId::messages, Measure::items, 1},
    {"input", LimitId::messages, Measure::items, 0, "/v1/responses"},
    {"prompt", LimitId::raw_text, Measure::bytes},
    {"content", LimitId::raw_text, Measure::bytes},
    {"input", LimitId::raw_text, Measure::bytes, 0, "/v1/embeddings"},
};
constexpr std::string_view kStops[] = {"stop", "stop_sequences"};

bool is_of(const Row& row, std::string_view route) { return row.route.empty() || row.route == route; }

std::optional<int64_t> longest_text(const json::Value& value) {
  if (const std::string* text = value.string()) return static_cast<int64_t>(text->size());
  std::optional<int64_t> longest;
  if (const json::Array* texts = value.array())
    for (const json::Value& text : *texts)
      if (text.string()) longest = std::max(longest.value_or(0), static_cast<int64_t>(text.string()->size()));
  return longest;
}

// What counts of the value; nothing where it has another type, which is the dialect's to refuse.
std::optional<int64_t> measured(const Row& row, const json::Value& value) {
  switch (row.measure) {
    case Measure::value: return value.is_int() ? std::optional(value.as_int(row.field)) : std::nullopt;
    case Measure::items:
      return value.array() ? std::optional(static_cast<int64_t>(value.array()->size())) : std::nullopt;
    case Measure::members:
      return value.object() ? std::optional(static_cast<int64_t>(value.object()->size())) : std::nullopt;
    case Measure::bytes: return longest_text(value);
  }
  return std::nullopt;
}

void check(const Row& row, const json::Value& value, int64_t most) {
  const std::optional<int64_t> have = measured(row, value);
  if (!have || (*have >= row.least && *have <= most)) return;
  constexpr std::string_view kUnits[] = {"", " items", " entries", " bytes"};
  const bool is_value = row.measure == Measure::value;
  const std::string range =
      row.least == 0 ? fmt::format("at most {}", most) : fmt::format("between {} and {}", row.least, most);
  throw RequestError(std::string(row.field),
                     fmt::format("{} must {} {}{}, not {}", row.field, is_value ? "be" : "have", range,
                                 kUnits[static_cast<size_t>(row.measure)], *have),
                     *have > most ? std::string(row_of(row.limit).name) : "");
}

void check_stop(std::string_view field, const json::Value& stop, int64_t most) {
  if (stop.string() && stop.string()->size() > static_cast<size_t>(most))
    throw RequestError(
        std::string(field),
        fmt::format("{}: a stop string must have between 1 and {} bytes, not {}", field, most, stop.string()->size()),
        std::string(row_of(LimitId::stop_bytes).name));
}

}  // namespace

void check_request_limits(const json::Object& body, std::string_view route, const Limits& limits) {
  for (const Row& row : kRows)
    if (const json::Value* value = is_of(row, route) ? present(body, row.field) : nullptr)
      check(row, *value, limits[row.limit]);
  for (const std::string_view field : kStops) {
    const json::Value* stops = present(body, field);
    if (!stops) continue;
    check_stop(field, *stops, limits[LimitId::stop_bytes]);
    if (stops->array())
      for (const json::Value& stop : *stops->array()) check_stop(field, stop, limits[LimitId::stop_bytes]);
  }
}

void check_expanded_limits(const Generation& generation, std::string_view messages, const Limits& limits) {
  const auto count = [&](const json::Value& list, LimitId id, std::string_view field, std::string_view of) {
    const auto have = list.array() ? static_cast<int64_t>(list.array()->size()) : 0;
    if (have > limits[id])
      throw RequestError(std::string(field),
                         fmt::format("there may be at most {} {}, these are {}", limits[id], of, have),
                         std::string(row_of(id).name));
  };
  count(generation.tools, LimitId::tools, "tools", "functions");
  count(generation.messages, LimitId::messages, messages, "messages in a conversation");
}

void put_request_limits(json::Object& schema, std::string_view route, const Limits& limits) {
  const json::Value* found = schema.find("properties");
  if (!found || !found->object()) return;
  json::Object& properties = *schema["properties"].object();
  for (const Row& row : kRows) {
    if (!is_of(row, route) || !properties.contains(row.field)) continue;
    constexpr std::string_view kWords[] = {"maximum", "maxItems", "maxProperties", "maxLength"};
    (*properties[row.field].object())[kWords[static_cast<size_t>(row.measure)]] = limits[row.limit];
  }
}

}  // namespace hearth::server
