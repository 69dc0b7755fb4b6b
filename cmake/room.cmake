# One static library a room, one test program a room.
#
#   zed_room(spec
#     SOURCES lex.cpp parse.cpp
#     DEPENDS core                 # rooms
#     LIBRARIES OpenSSL::SSL       # outside libraries, private to the room's sources
#     TESTS lex_test.cpp)
#
# makes zed_spec, and zed_spec_test run by ctest under the label `unit`.
function(zed_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_DEPENDS" ${ARGN})
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
  endif()
  if(ROOM_TESTS)
    set(test zed_${name}_test)
    add_executable(${test} ${ROOM_TESTS})
    target_link_libraries(${test} PRIVATE ${lib} fmt::fmt ${ROOM_LIBRARIES} GTest::gtest_main
      GTest::gmock zed_rapidcheck)
    foreach(room IN LISTS ROOM_TEST_DEPENDS)
      target_link_libraries(${test} PRIVATE zed_${room})
    endforeach()
    target_compile_definitions(${test} PRIVATE ZED_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME unit.${name} COMMAND ${test} --gtest_brief=1)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()
