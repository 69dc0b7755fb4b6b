# Programs that are linked for a small memory: libraries become part of the program, and of those
# only what is used. What a shared library costs each process is its relocated tables and the pages
# around each function that is called.

# Whether a program may be linked so here: sanitizers want the shared libraries.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT ZED_SANITIZE)
  set(zed_slim ON)
endif()

# zed_static_program(zed-supervise SOURCES main.cpp ROOMS proc core env net base): wholly static, if
# the static libraries are there. The rooms come from lowest to highest and are named one by one,
# because what others of their sources want (a shared library) must not come along.
function(zed_static_program target)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;ROOMS" ${ARGN})
  add_executable(${target} ${PROGRAM_SOURCES})
  target_link_libraries(${target} PRIVATE zed_flags tl::expected)
  find_library(ZED_STATIC_BOOST_JSON libboost_json.a HINTS ${Boost_LIBRARY_DIRS})
  find_library(ZED_STATIC_C libc.a)
  if(zed_slim AND ZED_STATIC_BOOST_JSON AND ZED_STATIC_C)
    set(archives)
    foreach(room IN LISTS PROGRAM_ROOMS)
      add_dependencies(${target} zed_${room})
      list(APPEND archives $<TARGET_FILE:zed_${room}>)
    endforeach()
    target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} ${ZED_STATIC_BOOST_JSON}
      -Wl,--end-group)
    # By the system's linker: mold takes members of archives for inline functions alone, and with
    # them what those need.
    target_link_options(${target} PRIVATE -static -Wl,--gc-sections -fuse-ld=bfd)
  else()
    foreach(room IN LISTS PROGRAM_ROOMS)
      target_link_libraries(${target} PRIVATE zed_${room})
    endforeach()
  endif()
endfunction()
