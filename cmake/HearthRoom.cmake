# hearth_room(name DEPS rooms... PUBLIC libs... PRIVATE libs...)
# A room is src/<name>/**/*.cpp as the static library hearth_<name>, plus the test program test_<name> made of
# tests/<name>/**/*_test.cpp. The build fails when a file of the room includes a room that is not in DEPS.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_target(unit_tests)    # every test_<room>
add_custom_target(fuzz_targets)  # every fuzz_<target>

# A fuzzer is led by the coverage of what it calls; elsewhere counting costs time and tells nobody anything.
function(hearth_uncounted target)
  if(HEARTH_FUZZ)
    target_compile_options(
      ${target} PRIVATE -fno-sanitize-coverage=trace-cmp,indirect-calls,inline-8bit-counters,pc-table,stack-depth)
  endif()
endfunction()

# What the test programs are compiled with. Their code is worth no optimizer's time: half of it is assertions. Nor is it
# worth frames on the heap, which the sanitizer looks for ever longer where tens of thousands of exceptions leave some.
function(hearth_test_options target)
  target_compile_definitions(${target} PRIVATE HEARTH_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
  target_compile_options(${target} PRIVATE -O0)
  if(HEARTH_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    target_compile_options(${target} PRIVATE -fsanitize-address-use-after-return=never)
  endif()
  hearth_uncounted(${target})
endfunction()

function(hearth_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS;PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.h ${CMAKE_SOURCE_DIR}/src/${name}/*.inl)
  set(stamp ${CMAKE_BINARY_DIR}/includes/${name}.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/check-includes ${CMAKE_SOURCE_DIR}/src ${name} ${ROOM_DEPS}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/includes
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${sources} ${headers} ${CMAKE_SOURCE_DIR}/scripts/check-includes
    COMMENT "room ${name}: includes")
  add_custom_target(includes_${name} DEPENDS ${stamp})
  if(sources)
    add_library(hearth_${name} STATIC ${sources})
    target_precompile_headers(hearth_${name} REUSE_FROM hearth_pch)
    if(NOT name IN_LIST HEARTH_FUZZED_ROOMS)
      hearth_uncounted(hearth_${name})
    endif()
    set(kind PUBLIC)
    target_link_libraries(hearth_${name} PRIVATE ${ROOM_PRIVATE})
    add_dependencies(hearth_${name} includes_${name})
  else()
    add_library(hearth_${name} INTERFACE)
    set(kind INTERFACE)
  endif()
  target_include_directories(hearth_${name} ${kind} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hearth_${name} ${kind} ${ROOM_PUBLIC} Threads::Threads)
  foreach(dep ${ROOM_DEPS})
    target_link_libraries(hearth_${name} ${kind} hearth_${dep})
  endforeach()

  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_test.cpp)
  if(HEARTH_TESTS AND tests)
    add_executable(test_${name} ${tests})
    target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(test_${name} PRIVATE hearth_${name} GTest::gtest_main)
    target_precompile_headers(test_${name} REUSE_FROM hearth_test_pch)
    hearth_test_options(test_${name})
    include(GoogleTest)
    # A suite named ...Full belongs to the full tier. Kernel teams spin, so their rooms' tests have the machine alone.
    set(processors 1)
    if(name MATCHES "^(cpu|model|decode|eval|probe|cli)$")
      set(processors 2)
    endif()
    gtest_discover_tests(test_${name} TEST_FILTER "-*Full.*:*Full/*" TEST_LIST quick_${name} DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS quick TIMEOUT 300 PROCESSORS ${processors})
    gtest_discover_tests(test_${name} TEST_FILTER "*Full.*:*Full/*" TEST_LIST full_${name} DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS full TIMEOUT 1800 PROCESSORS ${processors})
    add_dependencies(unit_tests test_${name})
  endif()

  # tests/fuzz/<room>/<target>.cpp: one libFuzzer program each.
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}/*.cpp)
  if(HEARTH_FUZZ)
    foreach(source ${fuzzers})
      get_filename_component(target ${source} NAME_WE)
      add_executable(fuzz_${target} ${source})
      target_link_libraries(fuzz_${target} PRIVATE hearth_${name})
      target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
      add_dependencies(fuzz_targets fuzz_${target})
    endforeach()
  endif()
endfunction()
