#pragma once
// Events and effects in one line each, for traces; "" for those that say nothing (ticks, calls that
// only read).

#include <string>

#include "agent/effects.hpp"
#include "controller/effects.hpp"

namespace zed::sim {

std::string describe(const agent::Event& event);
std::string describe(const agent::Effect& effect);
std::string describe(const controller::Event& event);
std::string describe(const controller::Effect& effect);

}  // namespace zed::sim
