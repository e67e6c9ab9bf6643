#include "cli/data_flag.h"

#include "base/error.h"
#include "eval/data.h"

namespace hearth::cli {

std::vector<std::string> read_data(const Context& context) {
  const auto data = context.args().text("data");
  if (!data) fail(ErrorKind::invalid_argument, "{} needs --data FILE", context.command().name);
  return eval::read_documents(hub::expand_home(*data, context.env()));
}

}  // namespace hearth::cli
