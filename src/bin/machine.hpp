#pragma once
// What the operating system tells of the machine, in a way of its own: machine_linux.cpp,
// machine_macos.cpp, machine_freebsd.cpp.

#include <filesystem>
#include <string>

#include "base/units.hpp"

namespace zed::bin {

/// "Debian GNU/Linux 12 (bookworm), kernel 6.1.0-18-amd64". Empty if nothing is told. `root` as in
/// machine_facts(); only Linux has files to be read below it.
std::string os_version(const std::filesystem::path& root);
/// "AMD Ryzen 9 7950X 16-Core Processor", "Apple M3 Max".
std::string cpu_model(const std::filesystem::path& root);
/// "mains" or "battery" where there is a battery that powers the machine, else empty.
std::string power_source(const std::filesystem::path& root);
/// What a program could take now without another one being swapped out: caches count as free.
Bytes free_memory();

/// A text of this machine's as a fact: one line, trimmed, UTF-8, at most 120 bytes; empty if it
/// cannot be one.
std::string fact(std::string_view text);

}  // namespace zed::bin
