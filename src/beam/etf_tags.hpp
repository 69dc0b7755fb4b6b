#pragma once
// The tags of the external term format, by the names of the ERTS user's guide. Internal to beam.

#include <cstdint>

namespace zed::beam::tag {

inline constexpr std::uint8_t new_float = 70, bit_binary = 77, compressed = 80, new_pid = 88,
                              new_port = 89, newer_reference = 90, small_integer = 97, integer = 98,
                              old_float = 99, latin1_atom = 100, old_reference = 101,
                              old_port = 102, old_pid = 103, small_tuple = 104, large_tuple = 105,
                              nil = 106, string = 107, list = 108, binary = 109, small_big = 110,
                              large_big = 111, new_function = 112, exported = 113,
                              new_reference = 114, small_latin1_atom = 115, map = 116,
                              utf8_atom = 118, small_utf8_atom = 119, v4_port = 120;

}  // namespace zed::beam::tag
