#include "cli/open_model.h"

#include "base/error.h"

namespace hearth::cli {

hub::FoundModel find_model(const Context& context, std::string_view positional) {
  hub::FoundModel found = hub::Store::from_env(context.env()).find(context.required(positional));
  if (!found.adapter.empty())
    fail(ErrorKind::invalid_argument, "{}:{}: this version cannot mount an adapter, name the model alone", found.name,
         found.adapter);
  context.detail("{} is {}", found.name, found.path.string());
  return found;
}

}  // namespace hearth::cli
