#include <fstream>

#include "base/error.h"
#include "base/fs.h"
#include "cli/input.h"
#include "cli/units.h"

namespace hearth::cli {

std::vector<int32_t> parse_ids(const std::string& text, std::string_view flag) {
  constexpr size_t kBytesMax = size_t{64} << 20;
  if (text == "@") fail(ErrorKind::invalid_argument, "{}: a file's name stands behind @", flag);
  const std::string list = text.starts_with('@') ? io::real_fs().read_file(text.substr(1), kBytesMax) : text;
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find_first_of(", \n\t", begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const auto id = parse_integer(word);
    if (!id || *id < 0 || *id > INT32_MAX)
      fail(ErrorKind::invalid_argument, "{}: '{}' is no token id", flag, word.substr(0, 40));
    ids.push_back(static_cast<int32_t>(*id));
  }
  if (ids.empty()) fail(ErrorKind::invalid_argument, "{}: there are no token ids", flag);
  return ids;
}

}  // namespace hearth::cli
