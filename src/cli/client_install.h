// Coding agents in a folder of ours, put there by npm: `hearth launch --install`, undone by `--remove`.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/clients.h"
#include "cli/context.h"

namespace hearth::cli {

// Where it stands once it is installed by us.
std::filesystem::path installed_program(const Context& context, const Client& client);

// The client's program: on PATH, else in our folder; empty: neither.
std::filesystem::path find_client(const Context& context, const Client& client);

// The command that installs it into our folder. Throws Error{not_found} where npm is not on PATH.
std::vector<std::string> install_command(const Context& context, const Client& client);

// Says what it does, has npm do it, and returns the program. Throws Error{not_found} without npm, Error{io} where npm
// fails: no network, no room, no right to write.
std::filesystem::path install_client(const Context& context, const Client& client);

// Takes away what install_client() put there. Throws Error{not_found} where there is nothing.
void remove_client(const Context& context, const Client& client);

}  // namespace hearth::cli
