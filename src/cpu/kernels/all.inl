// The kernels of one instruction set, after its vec_*.inl.
#include "cpu/kernels/math.inl"
#include "cpu/kernels/elementwise.inl"
#include "cpu/kernels/lora.inl"
#include "cpu/kernels/norm.inl"
#include "cpu/kernels/rope.inl"
#include "cpu/kernels/attention.inl"

namespace hearth::cpu::HEARTH_ISA {

inline void exp_row(const float* x, float* y, int64_t n) noexcept {
  int64_t d = 0;
  for (; d + 16 <= n; d += 16) store(y + d, exp(load(x + d)));
  if (d < n) store_part(y + d, exp(load_part(x + d, n - d)), n - d);
}

constexpr KernelTable kTable = {
    .isa = Isa::HEARTH_ISA,
    .scale = scale,
    .add = add,
    .mul = mul,
    .round_row = round_row,
    .softcap = softcap,
    .act = act,
    .gated_act = gated_act,
    .accumulate_rows = accumulate_rows,
    .lora_down = lora_down,
    .lora_up = lora_up,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .rope = rope,
    .attend_chunk = attend_chunk,
    .merge_chunk = merge_chunk,
    .finish_row = finish_row,
    .store_bf16_row = store_bf16_row,
    .store_bf16_key = store_bf16_key,
    .exp = exp_row,
};

const KernelTable& table() { return kTable; }

}  // namespace hearth::cpu::HEARTH_ISA
