// kv_append: k, v rows go to their pages, through the group's format.   in: k, v [M, Hkv * Dh]; out: none
// attention: z_j = scale (q . k_j); with a cap z = cap tanh(z / cap); y = r(sum over visible j of softmax(z)_j v_j).
//   in: q [M, H * Dh] and, without a cache, k, v [M, Hkv * Dh]; query head h reads KV head h / (H / Hkv)
// Visible j: BatchView.
#include <cmath>

#include "graph/ops/common.h"

namespace hearth::graph {
namespace {

// One visible column: reads row j of K or V of sequence b, whether it lies in the cache or in this step's operands.
struct Columns {
  const RefCall& c;
  int64_t b;
  bool cached;

  void read(KvPart part, int64_t head, int64_t j, float* out) const {
    const Attrs& a = c.op.attrs;
    if (cached) {
      const PageTable& table = c.batch.tables[static_cast<size_t>(c.kv->group_index(a.layer))];
      const int32_t page = table.pages[static_cast<size_t>(b * table.pages_max + j / kPagePositions)];
      HEARTH_CHECK(page >= 0, "{}: position {} has no page", c.op.name, j);
      c.kv->load(a.layer, part, page, head, j % kPagePositions, out);
    } else {
      const RefValue& source = c.in(part == KvPart::key ? 1 : 2);
      const float* row = source.row(c.batch.row_begin[static_cast<size_t>(b)] + j) + head * a.Dh;
      std::copy(row, row + a.Dh, out);
    }
  }
};

void append_reference(const RefCall& c) {
  const Attrs& a = c.op.attrs;
  const PageTable& table = c.batch.tables[static_cast<size_t>(c.kv->group_index(a.layer))];
  for (int64_t b = 0; b < c.batch.B(); ++b) {
    const int64_t begin = c.batch.row_begin[static_cast<size_t>(b)],
                  end = c.batch.row_begin[static_cast<size_t>(b + 1)];
    for (int64_t m = begin; m < end; ++m) {
      const int64_t j = c.batch.kv_len[static_cast<size_t>(b)] - (end - m);
      const int32_t page = table.pages[static_cast<size_t>(b * table.pages_max + j / kPagePositions)];
      for (int64_t h = 0; h < a.Hkv; ++h) {
        c.kv->store(a.layer, KvPart::key, page, h, j % kPagePositions, c.in(0).row(m) + h * a.Dh);
        c.kv->store(a.layer, KvPart::value, page, h, j % kPagePositions, c.in(1).row(m) + h * a.Dh);
      }
    }
  }
}

void attend_head(const RefCall& c, const Columns& columns, int64_t first, int64_t last, int64_t m, int64_t h) {
  const Attrs& a = c.op.attrs;
  const int64_t kv_head = h / (a.H / a.Hkv);
  const float* q = c.in(0).row(m) + h * a.Dh;
  std::vector<float> row(static_cast<size_t>(a.Dh));
  std::vector<double> z, y(static_cast<size_t>(a.Dh), 0.0);
  double top = -INFINITY, total = 0;
  for (int64_t j = first; j < last; ++j) {
    columns.read(KvPart::key, kv_head, j, row.data());
    double dot = 0;
    for (int64_t d = 0; d < a.Dh; ++d) dot += double{q[d]} * row[static_cast<size_t>(d)];
    dot *= a.scale;
    if (a.cap > 0) dot = a.cap * std::tanh(dot / a.cap);
    z.push_back(dot);
    top = std::max(top, dot);
  }
  for (double& v : z) total += v = std::exp(v - top);
  for (int64_t j = first; j < last; ++j) {
    columns.read(KvPart::value, kv_head, j, row.data());
    const double p = z[static_cast<size_t>(j - first)] / total;
    for (int64_t d = 0; d < a.Dh; ++d) y[static_cast<size_t>(d)] += p * row[static_cast<size_t>(d)];
  }
  for (int64_t d = 0; d < a.Dh; ++d) c.out().row(m)[h * a.Dh + d] = c.r(static_cast<float>(y[static_cast<size_t>(d)]));
}

void attention_reference(const RefCall& c) {
  const Attrs& a = c.op.attrs;
  const bool cached = a.layer >= 0;
  const int64_t window = cached ? c.kv->group_of(a.layer).window : a.width;
  for (int64_t b = 0; b < c.batch.B(); ++b) {
    const int64_t begin = c.batch.row_begin[static_cast<size_t>(b)],
                  end = c.batch.row_begin[static_cast<size_t>(b + 1)];
    const int64_t total = cached ? c.batch.kv_len[static_cast<size_t>(b)] : end - begin;
    for (int64_t m = begin; m < end; ++m) {
      const int64_t own = total - (end - m);
      const int64_t last = c.batch.mask(b) == MaskKind::full ? total : own + 1;
      const int64_t first = window > 0 ? std::max<int64_t>(0, own - window + 1) : 0;
      for (int64_t h = 0; h < a.H; ++h) attend_head(c, Columns{c, b, cached}, first, last, m, h);
    }
  }
}

void require_heads(const OpView& v, size_t operand, int64_t heads) {
  require(v.in(operand).cols == heads * v.attrs().Dh, v, "operand {} has {} columns, {} heads of {} are {}", operand,
          v.in(operand).cols, heads, v.attrs().Dh, heads * v.attrs().Dh);
}

int64_t kv_bytes_per_position(const OpView& v) {
  const KvLayer& layer = v.program.kv_layers[static_cast<size_t>(v.attrs().layer)];
  return 2 * v.attrs().Hkv * kv_row_bytes(v.program.kv_groups[static_cast<size_t>(layer.group)].format, v.attrs().Dh);
}

}  // namespace

const OpInfo kKvAppend = {
    .name = "kv_append",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      require_heads(v, 0, v.attrs().Hkv);
      require_heads(v, 1, v.attrs().Hkv);
      const KvLayer& layer = v.program.kv_layers[static_cast<size_t>(v.attrs().layer)];
      const KvFormat format = v.program.kv_groups[static_cast<size_t>(layer.group)].format;
      const bool quantized = format == KvFormat::q8 || format == KvFormat::q4;
      require(!quantized || v.attrs().Dh % kKvGroup == 0, v,
              "a quantized KV cache needs heads of a multiple of {}, not {}", kKvGroup, v.attrs().Dh);
      require(format != KvFormat::bf16 || v.attrs().Dh % 2 == 0, v,
              "a bf16 KV cache needs heads of an even width, not {}", v.attrs().Dh);
      return {};
    },
    .cost = [](const OpView& v, const Extents& e) { return Cost{.bytes = e.M * kv_bytes_per_position(v)}; },
    .reference = append_reference,
};

const OpInfo kAttention = {
    .name = "attention",
    .infer = [](const OpView& v) -> std::vector<ValueInfo> {
      const Attrs& a = v.attrs();
      require(a.Hkv > 0 && a.H % a.Hkv == 0, v, "{} query heads do not share {} KV heads evenly", a.H, a.Hkv);
      require_heads(v, 0, a.H);
      if (a.layer < 0) {
        require_heads(v, 1, a.Hkv);
        require_heads(v, 2, a.Hkv);
      }
      return {like(v, v.in(0), v.in(0).cols)};
    },
    .cost =
        [](const OpView& v, const Extents& e) {
          const Attrs& a = v.attrs();
          Cost c = streaming_cost(v, e, 0);
          int64_t S = e.S;
          if (a.layer >= 0) {
            const KvLayer& layer = v.program.kv_layers[static_cast<size_t>(a.layer)];
            const int64_t window = v.program.kv_groups[static_cast<size_t>(layer.group)].window;
            if (window > 0) S = std::min(S, window);
            c.bytes += e.B * S * kv_bytes_per_position(v);
          }
          c.flops = 4 * e.M * S * a.H * a.Dh;
          return c;
        },
    .reference = attention_reference,
};

}  // namespace hearth::graph
