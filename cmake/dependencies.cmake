# Every library the project stands on, found by version range and never vendored.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(OpenSSL 3 REQUIRED)
find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(pugixml REQUIRED)
# Within the programs where there is an archive of it: only the agent's helper reads XML.
if(TARGET pugixml::static)
  set(ZED_PUGIXML pugixml::static)
else()
  set(ZED_PUGIXML pugixml::pugixml)
endif()
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

# RapidCheck ships no CMake package in Debian.
find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
add_library(zed_rapidcheck INTERFACE)
target_include_directories(zed_rapidcheck SYSTEM INTERFACE ${RAPIDCHECK_INCLUDE})
target_link_libraries(zed_rapidcheck INTERFACE ${RAPIDCHECK_LIBRARY})
