// How the factors of adapters lie in memory, so that a kernel reads each of them in ascending order: A [K, R] in blocks
// of 16 columns, B [R, N] in blocks of 32, what is missing from the last block filled with zeros.
#pragma once
#include <cstdint>

namespace hearth::graph {

inline constexpr int64_t kLoraColumnsA = 16, kLoraColumnsB = 32;

constexpr int64_t lora_blocks_a(int64_t R) { return (R + kLoraColumnsA - 1) / kLoraColumnsA; }
constexpr int64_t lora_blocks_b(int64_t N) { return (N + kLoraColumnsB - 1) / kLoraColumnsB; }

// As loaded weights: rows of 16 values, [blocks, K, 16], and rows of 32, [blocks, R, 32].
constexpr int64_t lora_rows_a(int64_t K, int64_t R) { return lora_blocks_a(R) * K; }
constexpr int64_t lora_rows_b(int64_t R, int64_t N) { return lora_blocks_b(N) * R; }

// Index of A[k, r] and of B[r, n].
constexpr int64_t lora_index_a(int64_t K, int64_t k, int64_t r) {
  return (r / kLoraColumnsA * K + k) * kLoraColumnsA + r % kLoraColumnsA;
}
constexpr int64_t lora_index_b(int64_t R, int64_t r, int64_t n) {
  return (n / kLoraColumnsB * R + r) * kLoraColumnsB + n % kLoraColumnsB;
}

}  // namespace hearth::graph
