#include "cli/data_flag.h"

#include "base/error.h"
#include "cli/input.h"
#include "eval/data.h"

namespace hearth::cli {

std::vector<std::string> read_data(const Context& context) {
  const auto data = context.args().text("data");
  if (!data) fail(ErrorKind::invalid_argument, "{} needs --data FILE", context.command().name);
  std::vector<std::string> documents = eval::read_documents(hub::expand_home(*data, context.env()));
  for (size_t i = 0; i < documents.size(); ++i)
    require_utf8(documents[i], documents.size() == 1 ? *data : fmt::format("{}, text {},", *data, i + 1));
  return documents;
}

}  // namespace hearth::cli
