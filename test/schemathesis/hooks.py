"""What generated requests may not do to the machine that runs them, and names that lead somewhere."""

import zlib

import schemathesis

# Members that name something on a machine's disk: everything generated lies where nothing is.
PATHS = ("path", "folder")
# What the fleet of run.py has: half of the requests name it, so that more than "not found" is seen.
THERE = {"job": "finetune", "node": "beta", "on": "beta", "to": "beta", "model": "weights"}


@schemathesis.hook
def before_call(context, case, kwargs):
    if not isinstance(case.body, dict):
        return
    for member in PATHS:
        if isinstance(case.body.get(member), str):
            case.body[member] = "/nonexistent/" + case.body[member]
    if zlib.crc32(repr(case.body).encode(errors="replace")) % 2:
        for member, name in THERE.items():
            if isinstance(case.body.get(member), str):
                case.body[member] = name
