/* The no-op job of the benchmarks: the first thing it does is to read the monotonic clock; then it
 * leaves the time in the file that it was given, and ends. Plain C and linked statically, so that
 * what lies between exec and the reading is as little as can be. */

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (argc != 2) return 2;
  char text[64];
  int length = snprintf(text, sizeof text, "%lld\n",
                        (long long)now.tv_sec * 1000000000LL + (long long)now.tv_nsec);
  int file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return 1;
  return write(file, text, (size_t)length) == length ? 0 : 1;
}
