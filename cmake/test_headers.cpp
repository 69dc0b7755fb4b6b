// The unit that carries the precompiled headers of all test programs (room.cmake).
