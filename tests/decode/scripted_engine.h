// An engine whose logits are a hash of the ids that the cache holds for a position: microseconds a step, and a page
// that is not what the ids say shows in every token after it.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/engine.h"
#include "support/tiny_model.h"

namespace hearth::decode {

// Logits behind a position that sees these ids.
inline void scripted_logits(std::span<const int32_t> seen, std::span<float> logits) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const int32_t id : seen) hash = (hash ^ static_cast<uint64_t>(id + 1)) * 0xff51afd7ed558ccdu, hash ^= hash >> 29;
  Random random(hash);
  for (float& z : logits) z = static_cast<float>(random.below(1 << 20)) * 0x1p-17f;  // 0 to 8
}

// A page is kv_page_bytes(group) bytes; the first P words are the ids.
class ScriptedKv final : public graph::KvStorage {
 public:
  ScriptedKv(std::vector<graph::KvGroup> groups, std::span<const int64_t> pages) : groups_(std::move(groups)) {
    for (const int64_t n : pages) ids_.emplace_back(static_cast<size_t>(n * graph::kPagePositions), -1);
  }
  int64_t pages(int32_t group) const override {
    return static_cast<int64_t>(ids_[static_cast<size_t>(group)].size()) / graph::kPagePositions;
  }
  int64_t bytes() const override { return 0; }
  void copy_page(int32_t group, int32_t from, int32_t to) override {
    for (int64_t i = 0; i < graph::kPagePositions; ++i) at(group, to, i) = at(group, from, i);
  }
  void read_page(int32_t group, int32_t page, std::span<std::byte> to) const override {
    std::memset(to.data(), 0, to.size());
    std::memcpy(to.data(), &const_cast<ScriptedKv*>(this)->at(group, page, 0), kIdBytes);
  }
  void write_page(int32_t group, int32_t page, std::span<const std::byte> from) override {
    std::memcpy(&at(group, page, 0), from.data(), kIdBytes);
  }
  void populate(int32_t, int32_t) noexcept override {}
  int32_t& at(int32_t group, int32_t page, int64_t slot) {
    return ids_[static_cast<size_t>(group)][static_cast<size_t>(page * graph::kPagePositions + slot)];
  }
  const std::vector<graph::KvGroup>& groups() const { return groups_; }

 private:
  static constexpr size_t kIdBytes = 4 * graph::kPagePositions;
  std::vector<graph::KvGroup> groups_;
  std::vector<std::vector<int32_t>> ids_;
};

class ScriptedExecutor final : public graph::Executor {
 public:
  graph::WeightHandle load(const PackedTensor& w, graph::LayoutHint hint, std::string_view name) override {
    return inner_->load(w, hint, name);
  }
  void unload(graph::WeightHandle weight) override { inner_->unload(weight); }
  std::unique_ptr<graph::Plan> prepare(const graph::Program& p, const graph::Limits& l) override {
    return inner_->prepare(p, l);
  }
  std::unique_ptr<graph::KvStorage> make_kv(const graph::Program& p, std::span<const int64_t> pages) override {
    return std::make_unique<ScriptedKv>(p.kv_groups, pages);
  }
  void run(graph::Plan&, const graph::Bindings& bindings) override {
    if (fail_next) {
      fail_next = false;
      fail(ErrorKind::device_lost, "the device is lost");
    }
    auto& kv = static_cast<ScriptedKv&>(*bindings.kv);
    const graph::BatchView& batch = bindings.batch;
    size_t out = 0;
    for (int64_t b = 0; b < batch.B(); ++b) {
      const int32_t begin = batch.row_begin[static_cast<size_t>(b)], end = batch.row_begin[static_cast<size_t>(b) + 1];
      for (int32_t row = begin; row < end; ++row) {
        const int64_t position = batch.positions[static_cast<size_t>(row)];
        for (size_t g = 0; g < batch.tables.size(); ++g)
          slot(kv, batch, g, b, position) = batch.ids[static_cast<size_t>(row)];
        if (out >= batch.out_rows.size() || batch.out_rows[out] != row) continue;
        const int64_t window = kv.groups()[0].window;
        seen_.clear();
        for (int64_t i = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0; i <= position; ++i)
          seen_.push_back(slot(kv, batch, 0, b, i));
        const size_t V = bindings.results[0].size() / batch.out_rows.size();
        scripted_logits(seen_, bindings.results[0].subspan(out++ * V, V));
      }
    }
  }
  void wait() override {}
  graph::DeviceInfo info() const override { return inner_->info(); }
  int64_t weight_bytes() const override { return inner_->weight_bytes(); }
  int64_t working_bytes() const override { return inner_->working_bytes(); }
  std::span<const graph::BadWeight> bad_weights() const override { return inner_->bad_weights(); }
  int64_t weight_need(const WeightExtent& w, graph::LayoutHint hint) const override {
    return inner_->weight_need(w, hint);
  }
  int64_t working_need(std::span<const PlanExtent> plans) const override { return inner_->working_need(plans); }
  void set_timing(bool on) override { inner_->set_timing(on); }
  std::span<const graph::OpTime> timing() const override { return inner_->timing(); }

  bool fail_next = false;

 private:
  static int32_t& slot(ScriptedKv& kv, const graph::BatchView& batch, size_t g, int64_t b, int64_t position) {
    const graph::PageTable& table = batch.tables[g];
    const int32_t page = table.pages[static_cast<size_t>(b * table.pages_max + position / graph::kPagePositions)];
    HEARTH_CHECK(page >= 0, "position {} of sequence {} has no page", position, b);
    return kv.at(static_cast<int32_t>(g), page, position % graph::kPagePositions);
  }

  std::unique_ptr<graph::Executor> inner_ = graph::make_reference_executor(1);
  std::vector<int32_t> seen_;
};

struct ScriptedEngine {
  ScriptedEngine(int64_t window, EngineOptions options) {
    const test::TempDir dir;
    auto owned = std::make_unique<ScriptedExecutor>();
    executor = owned.get();
    options.memory_budget = 1'000'000'000;
    engine = std::make_unique<Engine>(test::open_tiny_model({.window = window}, dir), std::move(owned), options);
  }
  ScriptedExecutor* executor;
  std::unique_ptr<Engine> engine;
};

}  // namespace hearth::decode
