#pragma once
// What each operating system does in a way of its own: system_linux.cpp, system_macos.cpp,
// system_freebsd.cpp. Rooms above name no system for any of it.

#include <cstddef>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <sys/socket.h>

#include "base/result.hpp"
#include "base/units.hpp"
#include "net/fd.hpp"

namespace zed::net {

/// For send(2): a peer that is gone is an error and no signal.
#ifdef MSG_NOSIGNAL
inline constexpr int no_signal = MSG_NOSIGNAL;
#else
inline constexpr int no_signal = 0;  // macOS before 15.4: the socket itself is told, quiet()
#endif

/// For openat(2): the place alone, neither read nor written, and no link followed at its end by
/// open_beneath().
#ifdef O_PATH
inline constexpr int place_only = O_PATH;
#else
inline constexpr int place_only = O_EVTONLY | O_NONBLOCK;  // macOS
#endif

/// Programs that we start do not inherit the socket, and a peer that is gone raises no signal.
void quiet(int socket);

/// What has connected to a listening socket, quiet() and not blocking; none, and errno says why.
Fd accept_now(int listener);

/// fsync(2) and fdatasync(2) that reach the medium on every system: macOS's own stop at the drive's
/// cache. 0, or -1 and errno.
int sync_file(int fd);
int sync_data(int fd);

/// Bytes that nobody can guess, of the kernel. Cannot fail.
void fill_random(std::span<std::byte> bytes);

/// The file of the program that this process runs. Errors: `unsupported`.
Result<std::filesystem::path> own_program();

/// Monotonic clocks: one goes on while the machine sleeps, one stands still. Only differences mean
/// something.
Instant clock_through_sleep();
Instant clock_while_awake();

}  // namespace zed::net
