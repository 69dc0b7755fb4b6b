#include "net/spawn.hpp"

#include <fcntl.h>
#include <signal.h>

#include "net/exec.hpp"

namespace zed::net {

Spawn::Spawn() {
  ::posix_spawn_file_actions_init(&actions_);
  ::posix_spawnattr_init(&attributes_);
  sigset_t none;
  sigemptyset(&none);
  note(::posix_spawnattr_setsigmask(&attributes_, &none));
}

Spawn::~Spawn() {
  ::posix_spawn_file_actions_destroy(&actions_);
  ::posix_spawnattr_destroy(&attributes_);
}

void Spawn::give(const Fd& from, int to) {
  note(::posix_spawn_file_actions_adddup2(&actions_, from.get(), to));
}

void Spawn::give_null(int to) {
  const int mode = to == 0 ? O_RDONLY : O_WRONLY;
  note(::posix_spawn_file_actions_addopen(&actions_, to, "/dev/null", mode, 0));
}

void Spawn::lead_group() {
  note(::posix_spawnattr_setpgroup(&attributes_, 0));
  flags_ |= POSIX_SPAWN_SETPGROUP;
}

void Spawn::die_of_sigpipe() {
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  note(::posix_spawnattr_setsigdefault(&attributes_, &defaults));
  flags_ |= POSIX_SPAWN_SETSIGDEF;
}

Result<pid_t> Spawn::start(const std::string& what, const std::string& program,
                           std::vector<std::string> command) {
  return start(what, program, std::move(command), environ);
}

Result<pid_t> Spawn::start(const std::string& what, const std::string& program,
                           std::vector<std::string> command, std::vector<std::string> environment) {
  return start(what, program, std::move(command), pointers_to(environment).data());
}

Result<pid_t> Spawn::start(const std::string& what, const std::string& program,
                           std::vector<std::string> command, char* const* environment) {
  note(::posix_spawnattr_setflags(&attributes_, flags_));
  pid_t pid = -1;
  if (failure_ == 0)
    note(::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, pointers_to(command).data(),
                       environment));
  if (failure_ != 0) return fail(system_error(failure_, what));
  return pid;
}

void Spawn::note(int error) {
  if (failure_ == 0) failure_ = error;
}

}  // namespace zed::net
