// The files of the page at /, as they stand beside this header; the build puts them into the program.
#pragma once
#include <string_view>

namespace hearth::server {

// "page.html", "page.js", "page.css"; empty for any other name. Lives as long as the program.
std::string_view page_file(std::string_view name);

}  // namespace hearth::server
