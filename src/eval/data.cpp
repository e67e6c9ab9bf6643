#include "eval/data.h"

#include <bit>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"

namespace hearth::eval {

std::vector<std::string> read_documents(const std::filesystem::path& path) {
  constexpr size_t kBytesMax = size_t{1} << 30;
  std::string text = io::real_fs().read_file(path, kBytesMax);
  std::vector<std::string> documents;
  if (path.extension() != ".jsonl") {
    if (!text.empty()) documents.push_back(std::move(text));
  } else {
    size_t line = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      ++line;
      const std::string_view record(text.data() + begin, end - begin);
      begin = end + 1;
      if (record.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string where = fmt::format("{}:{}", path.string(), line);
      const json::Value value = json::parse(record, where);
      const json::Value* field = value.get("text");
      if (!field) fail(ErrorKind::corrupt_file, "{}: the record has no text", where);
      documents.push_back(field->as_string(where + ": text"));
    }
  }
  if (documents.empty()) fail(ErrorKind::invalid_argument, "{}: there is no text in it", path.string());
  return documents;
}

std::vector<size_t> permutation(size_t n, uint32_t seed) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(seed);
  for (size_t i = n; i-- > 1;) {
    const uint32_t max = static_cast<uint32_t>(i), mask = std::bit_ceil(max + 1) - 1;
    uint32_t j = 0;
    do j = random() & mask;
    while (j > max);
    std::swap(order[i], order[j]);
  }
  return order;
}

}  // namespace hearth::eval
