// Memory of packed weights: long mappings on huge pages, handed out from front to back.
//
// Matrices are small (SmolLM2: 0.2-1.1 MB) and a huge page has 2 MiB, so each in a mapping of its own would lie on
// 4 KiB pages: under nested paging their misses cost a quarter of the read rate. In load order they also follow each
// other as a decode step reads them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hearth::cpu {

class WeightArena {
 public:
  struct Piece {
    std::span<std::byte> bytes;  // 64-aligned, zero where a mapping is new
    std::shared_ptr<const void> owner;
  };
  // Throws Error{out_of_memory}. Only what is written becomes resident (in huge pages: up to 2 MiB a mapping more).
  Piece take(int64_t bytes);

 private:
  std::shared_ptr<const void> mapping_;
  std::byte *next_ = nullptr, *end_ = nullptr;
};

}  // namespace hearth::cpu
