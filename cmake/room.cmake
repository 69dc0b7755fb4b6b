# One static library a room, one test program a room.
#
#   zed_room(spec
#     SOURCES lex.cpp parse.cpp
#     DEPENDS core                 # rooms
#     LIBRARIES OpenSSL::SSL       # outside libraries, private to the room's sources
#     TESTS lex_test.cpp
#     PRECOMPILE agent/machine.hpp)  # what nearly every source of the room includes
#
# makes zed_spec, and zed_spec_test run by ctest under the label `unit`.

# gtest and RapidCheck cost seconds a unit, so they are compiled once for all test programs. Tests
# are compiled without optimisation: what they test is not.
set(zed_test_options $<$<CONFIG:Release>:-O0>)
add_library(zed_test_headers STATIC ${PROJECT_SOURCE_DIR}/cmake/test_headers.cpp)
target_link_libraries(zed_test_headers PUBLIC zed_flags tl::expected fmt::fmt GTest::gtest_main
  GTest::gmock zed_rapidcheck)
target_compile_options(zed_test_headers PRIVATE ${zed_test_options})
target_compile_definitions(zed_test_headers PUBLIC ZED_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_precompile_headers(zed_test_headers PRIVATE <gtest/gtest.h> <rapidcheck/gtest.h>
  <algorithm> <filesystem> <functional> <map> <memory> <optional> <string> <variant> <vector>
  ${PROJECT_SOURCE_DIR}/src/base/describe.hpp)

# zed_test_program(zed_spec_test lex_test.cpp): an executable with the test headers, main() included.
function(zed_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE zed_test_headers)
  target_compile_options(${name} PRIVATE ${zed_test_options})
  target_precompile_headers(${name} REUSE_FROM zed_test_headers)
endfunction()

# Seconds that a test program of a room may take: an emulated processor is slow.
set(zed_test_patience 300)
if(CMAKE_CROSSCOMPILING)
  set(zed_test_patience 3000)
endif()

function(zed_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_DEPENDS;PRECOMPILE" ${ARGN})
  set(lib zed_${name})
  if(ROOM_SOURCES)
    add_library(${lib} STATIC ${ROOM_SOURCES})
    set(visibility PUBLIC)
  else()
    add_library(${lib} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_link_libraries(${lib} ${visibility} zed_flags tl::expected)
  foreach(room IN LISTS ROOM_DEPENDS)
    target_link_libraries(${lib} ${visibility} zed_${room})
  endforeach()
  if(ROOM_SOURCES)
    target_link_libraries(${lib} PRIVATE fmt::fmt ${ROOM_LIBRARIES})
    if(ROOM_PRECOMPILE)
      target_precompile_headers(${lib} PRIVATE ${ROOM_PRECOMPILE})
    endif()
  endif()
  if(ROOM_TESTS)
    set(test zed_${name}_test)
    zed_test_program(${test} ${ROOM_TESTS})
    target_link_libraries(${test} PRIVATE ${lib} ${ROOM_LIBRARIES})
    foreach(room IN LISTS ROOM_TEST_DEPENDS)
      target_link_libraries(${test} PRIVATE zed_${room})
    endforeach()
    add_test(NAME unit.${name} COMMAND ${test} --gtest_brief=1)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT ${zed_test_patience})
  endif()
endfunction()
