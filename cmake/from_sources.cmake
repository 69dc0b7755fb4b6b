# In place of dependencies.cmake for targets that have no packages of the libraries: headers, and
# what must be compiled of them, from the folder that tools/cross.sh fills (ZED_CROSS_ROOT:
# include/, pugixml/, openssl/).

add_library(zed_threads INTERFACE)
if(CMAKE_SYSTEM_NAME STREQUAL "FreeBSD")
  target_link_options(zed_threads INTERFACE -pthread)
endif()
add_library(Threads::Threads ALIAS zed_threads)

set(cross_include ${ZED_CROSS_ROOT}/include)
foreach(name Boost::headers fmt::fmt tl::expected CLI11::CLI11)
  string(REGEX REPLACE "^.*::" "zed_" plain ${name})
  add_library(${plain} INTERFACE)
  target_include_directories(${plain} SYSTEM INTERFACE ${cross_include})
  add_library(${name} ALIAS ${plain})
endforeach()
target_compile_definitions(zed_fmt INTERFACE FMT_HEADER_ONLY)

file(WRITE ${PROJECT_BINARY_DIR}/boost_json.cpp "#include <boost/json/src.hpp>\n")
add_library(zed_boost_json STATIC ${PROJECT_BINARY_DIR}/boost_json.cpp)
target_include_directories(zed_boost_json SYSTEM PUBLIC ${cross_include})
add_library(Boost::json ALIAS zed_boost_json)

add_library(zed_pugixml STATIC ${ZED_CROSS_ROOT}/pugixml/src/pugixml.cpp)
target_include_directories(zed_pugixml SYSTEM PUBLIC ${ZED_CROSS_ROOT}/pugixml/src)
# After macOS's math.h, ziglang's float.h defines nothing any more.
target_compile_options(zed_pugixml PRIVATE -include float.h)
set(ZED_PUGIXML zed_pugixml)

set(cross_openssl ${ZED_CROSS_ROOT}/openssl)
foreach(library ssl crypto)
  add_library(zed_openssl_${library} INTERFACE)
  target_include_directories(zed_openssl_${library} SYSTEM INTERFACE ${cross_openssl}/include)
endforeach()
target_link_libraries(zed_openssl_ssl INTERFACE zed_openssl_crypto)
foreach(library ssl crypto)
  target_link_libraries(zed_openssl_${library}
    INTERFACE ${cross_openssl}/lib/lib${library}${CMAKE_SHARED_LIBRARY_SUFFIX})
endforeach()
add_library(OpenSSL::SSL ALIAS zed_openssl_ssl)
add_library(OpenSSL::Crypto ALIAS zed_openssl_crypto)

# Tests are not built for these targets: names are all that their folders ask for.
foreach(name GTest::gtest GTest::gtest_main GTest::gmock benchmark::benchmark)
  string(REGEX REPLACE "^.*::" "zed_no_" plain ${name})
  add_library(${plain} INTERFACE)
  add_library(${name} ALIAS ${plain})
endforeach()
add_library(zed_rapidcheck INTERFACE)
