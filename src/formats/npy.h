// Writes arrays in NumPy's format 1.0 (numpy.lib.format), little-endian, row-major.
#pragma once
#include <cstdint>
#include <span>

#include "base/fs.h"

namespace hearth::formats {

// A float32 matrix [rows, cols] written row by row; the file appears under its name at commit().
class NpyWriter {
 public:
  // Throws Error{io}; Error{invalid_argument} for a negative extent.
  NpyWriter(io::Fs& fs, const io::Path& path, int64_t rows, int64_t cols);

  // Whole rows. Error{invalid_argument} when the size is no multiple of cols or passes the announced rows.
  void write(std::span<const float> values);

  // Error{invalid_argument} when rows are missing; Error{io}.
  void commit();

 private:
  io::AtomicFile file_;
  std::string name_;
  int64_t rows_, cols_, written_ = 0;  // written_: rows
};

void write_npy(io::Fs& fs, const io::Path& path, std::span<const float> values, int64_t rows, int64_t cols);

}  // namespace hearth::formats
