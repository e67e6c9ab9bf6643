// The person's browser, for the server's page.
#pragma once
#include <string>
#include <vector>

#include "hub/paths.h"

namespace hearth::cli {

// The command that opens a page: $BROWSER, which is one program's name or path, else xdg-open. Empty: there is none on
// PATH.
std::vector<std::string> page_opener(const hub::Env& env, const std::string& url);

// Somebody sits before a graphical session that a browser could show itself in.
bool has_display(const hub::Env& env);

}  // namespace hearth::cli
