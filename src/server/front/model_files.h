// The files of a model as the front sees them: their names, sizes and times. It opens none.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace hearth::server {

// What a repetition of reading them may be spared by: path, sizes and times of all of them.
std::string files_state(const std::filesystem::path& model);

// When the model came to be what it is: the newest of their times, in seconds since 1970; 0: they are gone.
int64_t modified_s(const std::filesystem::path& model);

}  // namespace hearth::server
