#!/usr/bin/env python3
"""House rules that a compiler does not hold: which room may include which, and what no file may do.

The direction is docs/architecture.md's:

    base <- core <- {spec, plan, sched, repl, model, env} <- {agent, controller}
    {store, gpu, proc, beam, stream, journal} see net, env and below; net stands on pki
    modelio sees net and model; http and cli see net, api, core, spec, cli the models too; bin and
    test see all
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

PURE = {"base", "core"}
EFFECT = PURE | {"env", "net", "pki"}
SEES = {
    "base": {"base"},
    "core": PURE,
    "spec": PURE | {"spec"},
    "plan": PURE | {"plan"},
    "sched": PURE | {"sched"},
    "repl": PURE | {"repl"},
    "model": PURE | {"model"},
    # Files of this machine, as the readers of models want them.
    "modelio": PURE | {"net", "model", "modelio"},
    "env": PURE | {"env"},
    "api": PURE | {"model", "api"},
    "pki": {"base", "pki"},
    "net": {"base", "pki", "net"},
    "agent": PURE | {"env", "agent"},
    "controller": PURE | {"api", "spec", "plan", "sched", "repl", "model", "controller"},
    "journal": EFFECT | {"journal"},
    "store": EFFECT | {"store"},
    "gpu": EFFECT | {"gpu"},
    "proc": EFFECT | {"proc"},
    "beam": EFFECT | {"beam"},
    "stream": EFFECT | {"stream"},
    "http": PURE | {"net", "pki", "api", "spec", "http"},
    # zedctl's development fleets start and find processes.
    "cli": PURE | {"net", "pki", "api", "spec", "http", "proc", "model", "modelio", "cli"},
    "bin": None,
}
# Rooms that read no clock, roll no dice, log nothing and touch nothing.
NO_EFFECTS = {"core", "spec", "plan", "sched", "repl", "model", "api", "agent", "controller"}
FORBIDDEN_IN_PURE = re.compile(
    r"std::chrono::\w*_clock|std::random_device|\brand\(|#include \"base/log\.hpp\"|#include <thread>"
    r"|#include <fstream>|#include <unistd\.h>|std::this_thread"
)
HEAVY = re.compile(r"#include <(boost/(asio|beast|json)|openssl/)")
HEAVY_ALLOWED = {"src/net/asio.hpp"}

FIXED_WIDTH = re.compile(r"\bstd::u?int(8|16|32|64|ptr)_t\b")
ALGORITHM = re.compile(
    r"\bstd::(copy(_n|_if|_backward)?|(stable_|partial_)?sort|nth_element|find(_if)?(_not)?|(any|all|none)_of"
    r"|count(_if)?|min|max|minmax|min_element|max_element|clamp|remove(_if)?|unique|reverse|rotate|shuffle"
    r"|(lower|upper)_bound|equal(_range)?|binary_search|mismatch|search|transform|fill(_n)?|generate|for_each"
    r"|replace|is_sorted|includes|merge|adjacent_find|lexicographical_compare|partition)\s*[(<]"
)

NO_OTHER_HEADER = "(newer compilers bring it by no other header)"

INCLUDE = re.compile(r'^#include "([a-z]+)/', re.MULTILINE)
LONGEST_FILE = 800


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    return [ROOT / name for name in names if (ROOT / name).exists()]


def check_source(path, complain):
    name = str(path.relative_to(ROOT))
    text = path.read_text()
    room = path.relative_to(ROOT / "src").parts[0]
    is_test = path.stem.endswith("_test") or path.stem in ("testing", "harness", "test_terms")
    if room not in SEES:
        complain(name, f"the room {room} has no rule in tools/check_tree.py")
        return
    allowed = SEES[room]
    for other in INCLUDE.findall(text):
        if allowed is not None and other not in allowed and not is_test:
            complain(name, f"{room} may not include {other}/")
    if room in NO_EFFECTS and not is_test:
        for found in FORBIDDEN_IN_PURE.findall(text):
            complain(name, f"{room} is pure: no {found or 'clock, dice, log or files'}")
    if path.suffix == ".hpp":
        if not text.startswith("#pragma once\n"):
            complain(name, "a header begins with #pragma once")
        if re.search(r"^using namespace", text, re.MULTILINE):
            complain(name, "no using-namespace in a header")
        if FIXED_WIDTH.search(text) and "#include <cstdint>" not in text:
            complain(name, f"std::intN_t needs <cstdint> {NO_OTHER_HEADER}")
        if HEAVY.search(text) and name not in HEAVY_ALLOWED and not name.endswith("_impl.hpp"):
            complain(name, "the heavy headers of Boost and OpenSSL stay inside .cpp files")
    if text.count("\n") > LONGEST_FILE:
        complain(name, f"longer than {LONGEST_FILE} lines: two matters in one file?")


def check_algorithm(path, complain):
    text = path.read_text()
    if ALGORITHM.search(text) and "#include <algorithm>" not in text:
        complain(str(path.relative_to(ROOT)), f"std's algorithms need <algorithm> {NO_OTHER_HEADER}")


def check_tests_do_not_sleep(path, complain):
    """A test may poll in steps of at most 20 ms; a longer sleep is a guess at how long something takes."""
    text = path.read_text()
    steps = [int(n.replace("'", "")) / 1000 for n in re.findall(r"\busleep\(([\d']+)\)", text)]
    steps += [int(n) for n in re.findall(r"sleep_for\(std::chrono::milliseconds\((\d+)\)\)", text)]
    steps += [1000 * int(n) for n in re.findall(r"sleep_for\(std::chrono::seconds\((\d+)\)\)", text)]
    if any(step > 20 for step in steps):
        complain(str(path.relative_to(ROOT)), "a test waits for what it needs; it never sleeps")


def main():
    complaints = []

    def complain(name, what):
        complaints.append(f"{name}: {what}")

    for path in tracked("src/**/*.cpp", "src/**/*.hpp", "src/*.cpp"):
        check_source(path, complain)
    for path in tracked("src/*_test.cpp", "test/**/*.cpp"):
        check_tests_do_not_sleep(path, complain)
    for path in tracked("*.cpp", "*.hpp"):
        check_algorithm(path, complain)
    print("\n".join(complaints) or "the rooms are in order")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
