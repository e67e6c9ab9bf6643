#include "formats/npy.h"

#include "base/error.h"

namespace hearth::formats {

NpyWriter::NpyWriter(io::Fs& fs, const io::Path& path, int64_t rows, int64_t cols)
    : file_(fs, path), name_(path.string()), rows_(rows), cols_(cols) {
  if (rows < 0 || cols < 1) fail(ErrorKind::invalid_argument, "{}: shape [{}, {}]", name_, rows, cols);
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  constexpr size_t kPreamble = 10, kAlignment = 64;  // magic, version, u16 length; data starts aligned after a newline
  const size_t whole = (kPreamble + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(whole - kPreamble - 1, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string preamble = "\x93NUMPY";
  for (const int byte : {1, 0, length & 255, length >> 8}) preamble += static_cast<char>(byte);
  file_.write(preamble + header);
}

void NpyWriter::write(std::span<const float> values) {
  const auto size = static_cast<int64_t>(values.size());
  if (size % cols_ != 0 || size / cols_ > rows_ - written_)
    fail(ErrorKind::invalid_argument, "{}: {} values after row {} of [{}, {}]", name_, size, written_, rows_, cols_);
  file_.write(std::as_bytes(values));
  written_ += size / cols_;
}

void NpyWriter::commit() {
  if (written_ != rows_)
    fail(ErrorKind::invalid_argument, "{}: {} rows of [{}, {}] were written", name_, written_, rows_, cols_);
  file_.commit();
}

void write_npy(io::Fs& fs, const io::Path& path, std::span<const float> values, int64_t rows, int64_t cols) {
  NpyWriter writer(fs, path, rows, cols);
  writer.write(values);
  writer.commit();
}

}  // namespace hearth::formats
