// GET /library, /fit (spec server 3.4)
#include <charconv>

#include "server/routes/routes.h"

namespace hearth::server {
namespace {

constexpr int64_t kPositionsMax = 1 << 28;

void library(Services& services, Call call) {
  services.library.list([call](const json::Value& document) { call.answer(200, document); },
                        [call](const Refusal& refusal) { call.refuse(problem_of(refusal)); });
}

std::optional<int64_t> positions_of(const Call& call) {
  const std::string text = call.query("ctx");
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kPositionsMax)
    throw RequestError("ctx", fmt::format("ctx must be an integer between 1 and {}", kPositionsMax));
  return value;
}

void fit(Services& services, Call call) {
  const std::optional<int64_t> positions = positions_of(call);
  services.library.fit(
      services.models.resolve(call.query("model")), positions,
      [call](const json::Value& document) { call.answer(200, document); },
      [call](const Refusal& refusal) { call.refuse(problem_of(refusal)); });
}

}  // namespace

const Route kLibrary = {
    .method = "GET", .path = "/library", .summary = "the models on this machine, and which fit", .handle = library};
const Route kFit = {
    .method = "GET", .path = "/fit", .summary = "what ?model=NAME needs for ?ctx=N positions", .handle = fit};

}  // namespace hearth::server
