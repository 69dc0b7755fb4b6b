#include "beam/node.hpp"
#include <gtest/gtest.h>
TEST(A, B) {}
