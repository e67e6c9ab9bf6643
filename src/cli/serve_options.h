// The flags of `hearth serve`, and what they say to the front.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/serve_flags.h"
#include "cli/serve_workers.h"
#include "server/front/serve.h"

namespace hearth::cli {

std::span<const Flag> serve_flags();  // with those of the workers

// Key files are read. Throws Error{invalid_argument} for values that do not go together, Error{io} for files that
// cannot be read.
server::FrontOptions front_options(const Args& args, const hub::Env& env, const std::string& session_token,
                                   const std::shared_ptr<const Workers>& workers);

// Flags whose values differ, by when the new ones hold.
struct Changes {
  std::vector<std::string> now;         // as soon as the front has them,
  std::vector<std::string> next_load;   // when a model is loaded next,
  std::vector<std::string> next_start;  // or not while this server runs
};
Changes changes(const Args& before, const Args& after);

}  // namespace hearth::cli
