#include "cli/choose_model.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

constexpr double kComfortable = 0.6;  // of the budget: the rest is for other models and longer talks

struct Size {
  std::string name;
  bool embedding = false;
  int64_t weights = 0, needed = 0, usable = 0;
  bool fits() const { return needed <= usable; }
  bool comfortable() const { return static_cast<double>(needed) <= kComfortable * static_cast<double>(usable); }
};

Size size_of(const Candidate& model) {
  const json::Value facts = model.facts;
  const json::Value* fit = facts.get("fit");
  const json::Value* report = fit ? fit->get("report") : nullptr;
  const auto whole = [](const json::Value* from, const char* key) {
    const json::Value* value = from ? from->get(key) : nullptr;
    if (!value) fail(ErrorKind::corrupt_file, "the report of a model's headers lacks {}", key);
    return value->as_int(key);
  };
  const json::Value* embedding = facts.get("embedding");
  return {.name = model.name,
          .embedding = embedding && embedding->is_bool() && embedding->as_bool("embedding"),
          .weights = whole(report, "weights_bytes"),
          .needed = whole(fit, "typical_total_bytes"),
          .usable = whole(report, "usable_bytes")};
}

}  // namespace

std::string choose_model(const std::vector<Candidate>& models, const std::string& preferred) {
  std::vector<Size> sizes;
  for (const Candidate& model : models) sizes.push_back(size_of(model));
  for (const Size& size : sizes)
    if (size.name == preferred && size.fits()) return preferred;
  const auto rank = [](const Size& s) { return std::tuple(s.fits(), !s.embedding, s.comfortable(), s.weights); };
  const auto best =
      std::max_element(sizes.begin(), sizes.end(), [&](const Size& a, const Size& b) { return rank(a) < rank(b); });
  if (best->fits()) return best->name;
  const auto least =
      std::min_element(sizes.begin(), sizes.end(), [](const Size& a, const Size& b) { return a.needed < b.needed; });
  fail(ErrorKind::out_of_memory,
       "none of the {} models here fits the memory budget of {}: the smallest, {}, needs {}; raise --memory-budget, or "
       "name a model and a lower --context",
       sizes.size(), show_size(least->usable), least->name, show_size(least->needed));
}

}  // namespace hearth::cli
