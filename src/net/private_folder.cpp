#include "net/private_folder.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "net/fd.hpp"

namespace zed::net {

Status make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(system_error(error.value(), "make the folder " + folder.string()));
  if (::chmod(folder.c_str(), 0700) != 0)
    return fail(system_error(errno, "close the folder " + folder.string() + " to others"));
  return {};
}

}  // namespace zed::net
