#include "server/http/read_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/too_deep.h"
#include "server/request_error.h"

namespace hearth::server {
namespace {

// A member or an item costs many times its bytes once it is a Value, so what may have too many of them is counted
// first.
constexpr size_t kMemberBytes = 5, kItemBytes = 2;  // "":0, and 0, at least

class Counter final : public json::Visitor {
 public:
  Counter(std::string_view what, const Limits& limits) : what_(what), limits_(limits) {}

  void begin_object() override { begin(Container::object); }
  void end_object() override { open_.pop_back(); }
  void begin_array() override { begin(Container::array); }
  void end_array() override { open_.pop_back(); }
  void key(std::string_view) override { count(LimitId::json_members, members_, "members of objects"); }
  void scalar(json::Value) override { value(); }
  void string(std::string_view) override { value(); }

 private:
  enum class Container : uint8_t { object, array };

  void begin(Container container) {
    value();
    open_.push_back(container);
  }
  void value() {
    if (!open_.empty() && open_.back() == Container::array) count(LimitId::json_items, items_, "items of arrays");
  }
  void count(LimitId id, size_t& counted, std::string_view of) {
    const size_t most = limits_.size_of(id);
    if (++counted > most)
      throw RequestError("", fmt::format("{} may have {} {}, it has more", what_, most, of),
                         std::string(row_of(id).name));
  }

  const std::string_view what_;
  const Limits& limits_;
  std::vector<Container> open_;
  size_t members_ = 0, items_ = 0;
};

}  // namespace

json::Object read_json_object(std::string_view text, std::string_view what, const Limits& limits) {
  const json::ParseLimits parsing{.depth = static_cast<int>(limits[LimitId::json_depth]), .bytes_max = text.size()};
  json::Value value;
  try {
    if (text.size() / kMemberBytes > limits.size_of(LimitId::json_members) ||
        text.size() / kItemBytes > limits.size_of(LimitId::json_items)) {
      Counter counter(what, limits);
      json::visit(text, what, counter, parsing);
    }
    value = json::parse(text, what, parsing);
  } catch (const RequestError&) {
    throw;
  } catch (const json::TooDeep& error) {
    throw RequestError("", fmt::format("{} is not valid JSON: {}", what, error.what()),
                       std::string(row_of(LimitId::json_depth).name));
  } catch (const Error& error) {
    throw RequestError("", fmt::format("{} is not valid JSON: {}", what, error.what()));
  }
  if (!value.object()) throw RequestError("", fmt::format("{} must be a JSON object", what));
  return std::move(*value.object());
}

}  // namespace hearth::server
