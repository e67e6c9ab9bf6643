# Flags of our own code: strict warnings, a faster linker and compiler cache where they are installed.
# Instruction sets are chosen inside the sources (target regions), never by flags here.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Designated initializers leave the rest at its defaults on purpose. -Wno-restrict: GCC 12 reports false overlaps in std::string concatenation (bug 105651).
# -Wno-deprecated-declarations: with Clang, std::stable_sort of GCC 12's library warns about a helper of its own.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
                    -Wno-missing-field-initializers -ffp-contract=off)
if(HEARTH_WERROR)
  add_compile_options(-Werror)
endif()
if(HEARTH_SANITIZE)
  add_compile_options(-fsanitize=${HEARTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEARTH_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # GCC says by itself which sanitizers are on
    if(HEARTH_SANITIZE MATCHES address)
      add_compile_definitions(__SANITIZE_ADDRESS__)
    elseif(HEARTH_SANITIZE MATCHES thread)
      add_compile_definitions(__SANITIZE_THREAD__)
    endif()
  endif()
endif()
if(HEARTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
find_package(Threads REQUIRED)
