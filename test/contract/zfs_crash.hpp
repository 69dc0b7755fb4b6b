#pragma once
// An agent that is killed (kill -9) before a change to the pool that the test chooses.

#include <functional>

#include "contract/zfs_subject.hpp"

namespace zed::contract {

enum class Ending { killed, done };

/// Ends the agent of `subject` and gives the store to another process, which does `work` and is
/// killed by SIGKILL before its command number `allowed` (from 0) that changes anything; `done` if
/// the work came to its end before. Afterwards the store is opened here again, as by the next
/// agent. The work's error is a failure of the test.
Ending until_killed(ZfsSubject& subject, int allowed,
                    const std::function<Status(env::Store&)>& work);

}  // namespace zed::contract
