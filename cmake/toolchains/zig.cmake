# macOS or FreeBSD from another machine, by the compilers that tools/cross.sh makes of ziglang:
# ZED_ZIG is their folder, ZED_ZIG_TARGET is aarch64-macos or x86_64-freebsd.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZED_ZIG ZED_ZIG_TARGET)
if(ZED_ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_OSX_SYSROOT "" CACHE STRING "ziglang brings its own")
  set(CMAKE_INSTALL_NAME_TOOL true)
else()
  set(CMAKE_SYSTEM_NAME FreeBSD)
endif()
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${ZED_ZIG_TARGET}")

set(CMAKE_C_COMPILER ${ZED_ZIG}/cc)
set(CMAKE_CXX_COMPILER ${ZED_ZIG}/c++)
set(CMAKE_AR ${ZED_ZIG}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${ZED_ZIG}/ranlib CACHE FILEPATH "")

# A test program would cost the C++ library of the target before it is wanted.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ZED_MOLD "" CACHE FILEPATH "ziglang's own linker is used")
set(ZED_CCACHE "" CACHE FILEPATH "ziglang keeps what it compiled itself")
