# Warnings, sanitizers, ccache and mold: everything that is about how code is compiled.

# Warnings are errors for the compilers that every change meets (and for whoever says so): what a newer one
# thinks of besides must not keep a person from building.
set(zed_strict OFF)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  set(zed_strict ON)
endif()
option(ZED_WARNINGS_ARE_ERRORS "compiler warnings stop the build" ${zed_strict})
set(zed_errors $<$<BOOL:${ZED_WARNINGS_ARE_ERRORS}>:-Werror>)

add_library(zed_flags INTERFACE)
target_include_directories(zed_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(zed_flags INTERFACE ZED_VERSION="${PROJECT_VERSION}")
target_compile_options(zed_flags INTERFACE
  -Wall -Wextra -Wpedantic ${zed_errors} -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wimplicit-fallthrough -Wswitch)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 warns falsely about moved-from std::variant and std::string in optimised builds.
  target_compile_options(zed_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)  # lets ccache see through a precompiled header
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # lets ccache see that one is the same
endif()

if(ZED_SANITIZE)
  string(REPLACE "," ";" zed_sanitizers "${ZED_SANITIZE}")
  foreach(name IN LISTS zed_sanitizers)
    add_compile_options(-fsanitize=${name})
    add_link_options(-fsanitize=${name})
  endforeach()
  add_compile_options(-fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()

find_program(ZED_CCACHE ccache)
if(ZED_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need the first two; build folders of one tree share results by the third.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
    ${ZED_CCACHE})
endif()

find_program(ZED_MOLD mold)
if(ZED_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
