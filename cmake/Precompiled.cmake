# Headers that nearly every file includes, parsed once: hearth_pch for the program, hearth_test_pch for the tests. Sources
# still include what they use; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without.
set(empty ${CMAKE_BINARY_DIR}/empty.cpp)
file(CONFIGURE OUTPUT ${empty} CONTENT "")

set(standard <algorithm> <array> <cmath> <cstddef> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <optional>
             <span> <string> <string_view> <utility> <vector> <fmt/format.h>)

add_library(hearth_pch OBJECT ${empty})
target_link_libraries(hearth_pch PRIVATE fmt::fmt Threads::Threads)
target_precompile_headers(hearth_pch PRIVATE ${standard})

if(HEARTH_TESTS)
  add_library(hearth_test_pch OBJECT ${empty})
  target_link_libraries(hearth_test_pch PRIVATE fmt::fmt GTest::gtest Threads::Threads)
  hearth_test_options(hearth_test_pch)
  target_precompile_headers(hearth_test_pch PRIVATE ${standard} <fstream> <random> <gtest/gtest.h>)
endif()
