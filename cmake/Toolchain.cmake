# Flags of our own code: strict warnings, a faster linker and compiler cache where they are installed.
# Instruction sets are chosen inside the sources (target regions), never by flags here.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # With precompiled headers ccache works only if it may ignore their macros and times.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
                                  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Designated initializers leave the rest at its defaults on purpose.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-psabi -Wno-missing-field-initializers -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # GCC 12 reports false overlaps and lengths in std::string (bug 105651); Clang looks too
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # with it, std::stable_sort of GCC 12's library warns about a helper of its own
  add_compile_options(-Wno-deprecated-declarations)
endif()
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
