#include "cpu/steps.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cpu/linear/heuristics.h"
#include "graph/op_info.h"

namespace hearth::cpu {
namespace {

// Operands of a step, rows apart.
struct Operands {
  float *x, *z, *y;
  int64_t sx, sz, sy;
};
Operands operands(const Run& run, const Step& s, int member) {
  return {pointer(run, s.x, member),
          pointer(run, s.z, member),
          pointer(run, s.y, member),
          s.x.stride,
          s.z.stride,
          s.y.stride};
}

const float* dense(const Run& run, int32_t weight) {
  return weight < 0 ? nullptr : run.weights[static_cast<size_t>(weight)]->dense.data();
}

void embed(const Run& run, const Step& s, int member) {
  const Weight& table = *run.weights[static_cast<size_t>(s.weight)];
  const Part p = part_of_step(run, s, member);
  float* y = pointer(run, s.y, member);
  for (int64_t m = p.m_begin; m < p.m_end; ++m) {
    float* row = y + m * s.y.stride;
    const int64_t id = graph::embed_row(s.attrs, run.batch(), m);
    if (table.matrix.N() > 0) table.matrix.row(id, row);
    else decode_row(table.view, id, {row, static_cast<size_t>(table.K)});
    if (s.r != DType::f32) run.kernels.round_row(row, row, s.y.cols, s.r);
  }
}

// x (+ or *) z; z like x, a vector (stride 0) or one number a row.
void binary(const Run& run, const Step& s, int member) {
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  const bool column = s.z.cols != s.y.cols;
  float* constant = run.space.members[static_cast<size_t>(member)].temp.floats();
  for (int64_t m = p.m_begin; m < p.m_end; ++m) {
    const float *x = o.x + m * o.sx + p.c_begin, *z = o.z + m * o.sz + (column ? 0 : p.c_begin);
    float* y = o.y + m * o.sy + p.c_begin;
    if (s.kind == StepKind::mul && column) {
      run.kernels.scale(x, *z, y, p.cols(), s.r);
      continue;
    }
    if (column) {
      std::fill_n(constant, p.cols(), *z);
      z = constant;
    }
    (s.kind == StepKind::add ? run.kernels.add : run.kernels.mul)(x, z, y, p.cols(), s.r);
  }
}

void elementwise(const Run& run, const Step& s, int member) {
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  const KernelTable& k = run.kernels;
  const int64_t n = p.cols();
  if (n <= 0) return;
  const float* bias = dense(run, s.bias);
  for (int64_t m = p.m_begin; m < p.m_end; ++m) {
    const float* x = o.x + m * o.sx + p.c_begin;
    float* y = o.y + m * o.sy + p.c_begin;
    switch (s.kind) {
      case StepKind::scale: k.scale(x, s.attrs.scale, y, n, s.r); break;
      case StepKind::act: k.act(s.attrs.act, x, y, n, s.r); break;
      case StepKind::gated_act: k.gated_act(s.attrs.act, x, o.z + m * o.sz + p.c_begin, y, n, s.r); break;
      case StepKind::softcap: k.softcap(x, s.attrs.cap, y, n, s.r); break;
      case StepKind::bias_round:
        k.round_row(x, y, n, s.r);
        if (bias) k.add(y, bias + p.c_begin, y, n, s.r);
        break;
      default: std::copy_n(x, n, y); break;
    }
  }
}

void norm(const Run& run, const Step& s, int member) {
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  const float *w = dense(run, s.weight), *b = dense(run, s.bias);
  const int64_t width = s.attrs.width;
  for (int64_t m = p.m_begin; m < p.m_end; ++m) {
    const float* x = o.x + m * o.sx;
    float* y = o.y + m * o.sy;
    if (s.kind == StepKind::layer_norm) run.kernels.layer_norm(x, w, b, y, s.y.cols, s.attrs.eps, s.r);
    else
      for (int64_t d = 0; d < s.y.cols; d += width) run.kernels.rms_norm(x + d, w, y + d, width, s.attrs.eps, s.r);
  }
}

std::byte* activations(const Run& run, const Step& s, int member) {
  const MemberSpace& own = run.space.members[static_cast<size_t>(member)];
  return &run.list == &run.plan.few() ? own.activations.data() + s.slot * own.slot_bytes
                                      : run.space.activations.data() + s.slot * run.space.slot_bytes;
}

Core core_of(const Run& run, const Step& s, int32_t weight) {
  const Matrix& w = run.weights[static_cast<size_t>(weight)]->matrix;
  const Core core = run.plan.core(s.rows);
  return w.supports(core) ? core : Core::f32;
}

void quantize(const Run& run, const Step& s, int member) {
  if (std::ranges::all_of(s.readers, [&](int32_t w) { return core_of(run, s, w) == Core::f32; })) return;
  const int64_t M = run.rows(s.rows), n = run.team.size();
  const int64_t begin = s.share == Share::own ? 0 : M * member / n;
  const int64_t end = s.share == Share::own ? M : M * (member + 1) / n;
  quantize_rows({.core = run.plan.core(s.rows),
                 .K = s.x.cols,
                 .x = pointer(run, s.x, member),
                 .ldx = s.x.stride,
                 .act = activations(run, s, member),
                 .isa = run.kernels.isa},
                begin, end);
}

void linear_step(const Run& run, const Step& s, int member) {
  const Core core = core_of(run, s, s.weight);
  linear({.w = &run.weights[static_cast<size_t>(s.weight)]->matrix,
          .core = core,
          .M = run.rows(s.rows),
          .x = pointer(run, s.x, member),
          .ldx = s.x.stride,
          .act = core == Core::f32 ? nullptr : activations(run, s, member),
          .y = pointer(run, s.y, member),
          .ldy = s.y.stride,
          .bias = dense(run, s.bias),
          .accumulate = s.accumulate,
          .scratch = run.space.members[static_cast<size_t>(member)].linear.data(),
          .isa = run.kernels.isa},
         member, run.team.size());
}

// y = r(y_in + r(s ((x A) B))); rows of sequences without an adapter slot (-1) are copied.
void lora(const Run& run, const Step& s, int member) {
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  const Weight &a = *run.weights[static_cast<size_t>(s.weight)], &b = *run.weights[static_cast<size_t>(s.bias)];
  const int64_t R = a.K, n = p.cols();
  float* t = run.space.members[static_cast<size_t>(member)].temp.floats();
  float* u = t + (R + 15) / 16 * 16;
  const graph::BatchView& batch = run.batch();
  size_t sequence = 0;
  for (int64_t m = p.m_begin; m < p.m_end; ++m) {
    const float* in = o.x + m * o.sx + p.c_begin;
    float* y = o.y + m * o.sy + p.c_begin;
    if (s.rows == graph::Rows::sequences) sequence = static_cast<size_t>(m);
    else {
      const int64_t row = s.rows == graph::Rows::gathered ? batch.out_rows[static_cast<size_t>(m)] : m;
      while (batch.row_begin[sequence + 1] <= row) ++sequence;
    }
    if (!batch.adapter.empty() && batch.adapter[sequence] < 0) {
      std::copy_n(in, n, y);
      continue;
    }
    std::fill_n(t, R, 0.0f);
    run.kernels.accumulate_rows(o.z + m * o.sz, a.dense.data(), R, t, s.z.cols, R);
    std::fill_n(u, n, 0.0f);
    run.kernels.accumulate_rows(t, b.dense.data() + p.c_begin, b.K, u, R, n);
    run.kernels.scale(u, s.attrs.scale, u, n, s.r);
    run.kernels.add(in, u, y, n, s.r);
  }
}

// fp32 angle, sine and cosine in fp64 from the C library, so the same for every instruction set.
void rope_angles(const Run& run, const Step& s, int member) {
  const graph::RopeSpec& spec = run.program().ropes[static_cast<size_t>(s.attrs.rope)];
  const Part p = part_of_step(run, s, member);
  const int64_t half = spec.rot / 2;
  float* y = pointer(run, s.y, member);
  for (int64_t m = p.m_begin; m < p.m_end; ++m) {
    const int32_t position = run.batch().positions[static_cast<size_t>(m)];
    for (int64_t i = 0; i < half; ++i) {
      const double angle = double{static_cast<float>(position) * graph::rope_inv_freq(spec, position, i)};
      y[m * s.y.stride + i] = static_cast<float>(std::cos(angle)) * spec.attention_factor;
      y[m * s.y.stride + half + i] = static_cast<float>(std::sin(angle)) * spec.attention_factor;
    }
  }
}

void rope(const Run& run, const Step& s, int member) {
  const graph::RopeSpec& spec = run.program().ropes[static_cast<size_t>(s.attrs.rope)];
  const RopeShape shape{.Dh = s.attrs.Dh, .rot = spec.rot, .pair_stride = spec.pair_stride};
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  for (int64_t m = p.m_begin; m < p.m_end; ++m)
    for (int64_t d = 0; d < s.y.cols; d += shape.Dh)
      run.kernels.rope(o.x + m * o.sx + d, o.z + m * o.sz, o.z + m * o.sz + spec.rot / 2, o.y + m * o.sy + d, shape,
                       s.r);
}

void gather_rows(const Run& run, const Step& s, int member) {
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  for (int64_t m = p.m_begin; m < p.m_end; ++m)
    std::copy_n(o.x + run.batch().out_rows[static_cast<size_t>(m)] * o.sx, s.y.cols, o.y + m * o.sy);
}

void pool(const Run& run, const Step& s, int member) {
  const Part p = part_of_step(run, s, member);
  const Operands o = operands(run, s, member);
  const int64_t D = s.y.cols;
  for (int64_t b = p.m_begin; b < p.m_end; ++b) {
    const int64_t begin = run.batch().row_begin[static_cast<size_t>(b)];
    const int64_t end = run.batch().row_begin[static_cast<size_t>(b + 1)];
    float* y = o.y + b * o.sy;
    std::copy_n(o.x + (s.attrs.pooling == graph::Pooling::last ? end - 1 : begin) * o.sx, D, y);
    if (s.attrs.pooling == graph::Pooling::mean) {
      for (int64_t m = begin + 1; m < end; ++m) run.kernels.add(y, o.x + m * o.sx, y, D, DType::f32);
      for (int64_t d = 0; d < D; ++d) y[d] /= static_cast<float>(end - begin);
    }
    if (!s.attrs.normalize) continue;
    double squares = 0;
    for (int64_t d = 0; d < D; ++d) squares += double{y[d]} * y[d];
    const double norm = std::max(std::sqrt(squares), 1e-12);
    for (int64_t d = 0; d < D; ++d) y[d] = static_cast<float>(y[d] / norm);
  }
}

void execute(const Run& run, const Step& s, int member, int& lora_turn) {
  switch (s.kind) {
    case StepKind::embed: return embed(run, s, member);
    case StepKind::add:
    case StepKind::mul: return binary(run, s, member);
    case StepKind::scale:
    case StepKind::act:
    case StepKind::gated_act:
    case StepKind::softcap:
    case StepKind::bias_round:
    case StepKind::copy: return elementwise(run, s, member);
    case StepKind::rms_norm:
    case StepKind::layer_norm: return norm(run, s, member);
    case StepKind::quantize: return quantize(run, s, member);
    case StepKind::linear: return linear_step(run, s, member);
    case StepKind::lora: return lora(run, s, member);
    case StepKind::lora_slots: return lora_slots_step(run, s, member, lora_turn);
    case StepKind::rope_angles: return rope_angles(run, s, member);
    case StepKind::rope: return rope(run, s, member);
    case StepKind::kv_append: return kv_append_step(run, s, member);
    case StepKind::attention: return attention_step(run, s, member);
    case StepKind::gather_rows: return gather_rows(run, s, member);
    case StepKind::pool: return pool(run, s, member);
  }
}

}  // namespace

Part part_of_step(const Run& run, const Step& s, int member) {
  const int64_t M = run.rows(s.rows), cols = s.y.cols, n = run.team.size();
  switch (s.share) {
    case Share::rows: return {M * member / n, M * (member + 1) / n, 0, cols};
    case Share::blocks: {
      const LinearPart p = part_of(s.share_N, M, split_linear(s.share_N, M, run.team.size()), member);
      return {p.m_begin, p.m_end, std::min(cols, p.block_begin * 32), std::min(cols, p.block_end * 32)};
    }
    case Share::own:
    case Share::any: break;
  }
  return {0, M, 0, cols};
}

int64_t Run::rows(graph::Rows kind) const {
  switch (kind) {
    case graph::Rows::packed: return batch().M();
    case graph::Rows::gathered: return static_cast<int64_t>(batch().out_rows.size());
    case graph::Rows::sequences: return batch().B();
    case graph::Rows::fixed: break;
  }
  return 1;
}

float* pointer(const Run& run, const Ref& ref, int member) {
  switch (ref.place) {
    case Place::none: break;
    case Place::shared: return run.space.shared.floats() + ref.offset;
    case Place::own: return run.space.members[static_cast<size_t>(member)].own.floats() + ref.offset;
    case Place::result: return run.bindings.results[static_cast<size_t>(ref.index)].data() + ref.offset;
    case Place::weight:  // only ever read
      return const_cast<float*>(run.weights[static_cast<size_t>(ref.index)]->dense.data()) + ref.offset;
  }
  return nullptr;
}

void run_steps(const Run& run, int member) noexcept {
  using Clock = std::chrono::steady_clock;
  const bool timed = run.seconds && member == 0;
  Clock::time_point before = timed ? Clock::now() : Clock::time_point();
  int lora_turn = 0;
  for (const Step& s : run.list.steps) {
    if (s.barrier) run.team.barrier(member);
    execute(run, s, member, lora_turn);
    if (timed) {
      const Clock::time_point now = Clock::now();
      run.seconds[s.op] += std::chrono::duration<double>(now - before).count();
      before = now;
    }
  }
}

}  // namespace hearth::cpu
