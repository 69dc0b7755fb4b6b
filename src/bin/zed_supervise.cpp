// zed-supervise: what `zed-agent supervise FOLDER` is. One runs beside each job for as long as the
// job lives, so it is a program of its own, linked with nothing but what it uses.

#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "proc/supervisor.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("zed-supervise %s\n", ZED_VERSION);
    return 0;
  }
  // Started by an agent its name and first argument are the command's: "zed-agent supervise
  // FOLDER".
  const bool is_command = argc == 3 && std::strcmp(argv[1], "supervise") == 0;
  if (argc != 2 && !is_command) {
    std::fprintf(stderr, "usage: zed-supervise FOLDER (of one attempt; used by zed-agent)\n");
    return 2;
  }
  zed::configure_log("zed-agent supervise", zed::LogLevel::info);
  return zed::proc::supervise(zed::proc::AttemptFolder(argv[argc - 1]));
}
