"""Time as the agent reads it: CLOCK_MONOTONIC, which both sides of the socket share.

Deadlines never use the wall clock: it jumps.
"""

from __future__ import annotations

import time


if hasattr(time, "CLOCK_MONOTONIC"):

    def now() -> float:
        """Seconds on CLOCK_MONOTONIC."""
        return time.clock_gettime(time.CLOCK_MONOTONIC)

else:

    def now() -> float:
        return time.monotonic()


def to_ms(seconds: float) -> int:
    return int(seconds * 1000)
