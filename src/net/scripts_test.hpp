#pragma once
// Shell scripts that stand for programs, for tests of whatever runs some.

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace zed::net {

class Scripts : public ::testing::Test {
protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("zed-tool-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The path of a program that does this.
  std::string script(const std::string& body) {
    std::string path = (folder_ / ("t" + std::to_string(++count_))).string();
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  std::filesystem::path folder_;  ///< gone with the test

private:
  int count_ = 0;
};

}  // namespace zed::net
