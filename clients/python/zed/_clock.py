"""Time as the agent reads it: CLOCK_MONOTONIC, which both sides of the socket share.

Deadlines never use the wall clock: it jumps.
"""

from __future__ import annotations

import time


def now() -> float:
    """Seconds on CLOCK_MONOTONIC."""
    if hasattr(time, "CLOCK_MONOTONIC"):
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


def to_ms(seconds: float) -> int:
    return int(seconds * 1000)
