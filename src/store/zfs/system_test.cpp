// What the room does with true processes and files of this machine.

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "store/zfs/command.hpp"
#include "store/zfs/users_of.hpp"

namespace zed::store::zfs {
namespace {

// ---- real commands ------------------------------------------------------------------------------

TEST(SystemCommands, RunWithInputAndTellHowTheyEnded) {
  auto commands = make_system_commands();
  std::string long_text(300'000, 'x');
  EXPECT_EQ(commands->run({"cat"}, long_text)->out, long_text);
  auto failed = commands->run({"ls", "/no such folder"}, {}).value();
  EXPECT_FALSE(failed.ok);
  EXPECT_NE(failed.err.find("No such file"), std::string::npos);
  EXPECT_EQ(commands->run({"env"}, {})->out.find("LC_ALL=C"), 0U);
  EXPECT_EQ(commands->run({"no-such-program"}, {}).error().code, ErrorCode::unsupported);
  // Input that nobody reads is no failure.
  EXPECT_TRUE(commands->run({"true"}, long_text)->ok);
}

TEST(SystemCommands, PipesEndWhenTheyAreLeft) {
  auto commands = make_system_commands();
  std::vector<std::byte> buffer(1000);
  auto endless = commands->start({"yes"}, Commands::Pipe::from_it).value();
  EXPECT_GT(endless->read(buffer).value(), 0U);
  endless.reset();  // would hang if it did not end

  auto sink = commands->start({"cat"}, Commands::Pipe::to_it).value();
  EXPECT_TRUE(sink->write(buffer));
  EXPECT_TRUE(sink->finish()->ok);

  auto deaf = commands->start({"false"}, Commands::Pipe::to_it).value();
  Status written;
  for (int i = 0; i < 1000 && written; ++i)
    written = deaf->write(buffer);
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(deaf->finish()->ok);
}

TEST(SystemCommands, AreKilledWhileAnotherThreadReads) {
  auto commands = make_system_commands();
  auto silent = commands->start({"sleep", "1000"}, Commands::Pipe::from_it).value();
  std::thread reader([&silent] {
    std::array<std::byte, 10> buffer{};
    EXPECT_EQ(silent->read(buffer).value(), 0U);
  });
  silent->kill();
  reader.join();
}

// ---- who uses a folder --------------------------------------------------------------------------

TEST(UsersOf, NamesWhoHasAFileOpenOrMapped) {
  std::string folder = std::filesystem::temp_directory_path() / "zed-users-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  EXPECT_EQ(users_of(folder), "");
  std::string pid = "(pid " + std::to_string(::getpid()) + ")";
  int file = ::open((folder + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  EXPECT_NE(users_of(folder).find(pid), std::string::npos);
  void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  EXPECT_NE(users_of(folder).find(pid), std::string::npos);
  ::munmap(mapped, 4096);
  EXPECT_EQ(users_of(folder), "");
  EXPECT_EQ(users_of(folder.substr(0, folder.size() - 1)), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zed::store::zfs
