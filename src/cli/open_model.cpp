#include "cli/open_model.h"

#include "base/error.h"
#include "cli/foreign_words.h"

namespace hearth::cli {

hub::FoundModel find_model(const Context& context, std::string_view positional) {
  const std::string name = context.required(positional);
  refuse_address(name);
  hub::FoundModel found = hub::Store::from_env(context.env()).find(name);
  if (!found.adapter.empty())
    fail(ErrorKind::invalid_argument, "{} has no file that is called '{}'; an adapter is put on by --adapter DIR",
         found.name, found.adapter);
  context.detail("{} is {}", found.name, found.path.string());
  return found;
}

}  // namespace hearth::cli
