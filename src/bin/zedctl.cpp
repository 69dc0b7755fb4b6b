// The command line.

#include "cli/run.hpp"

int main(int argc, char** argv) {
  return zed::cli::zedctl({argv + (argc > 0 ? 1 : 0), argv + argc});
}
