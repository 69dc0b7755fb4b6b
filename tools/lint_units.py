#!/usr/bin/env python3
"""Has clang look at every translation unit, on all cores.

    lint_units.py build/clang [PATH…]

The product's units go through clang-tidy (.clang-tidy), which compiles them with our warnings as errors
as well; tests and benchmarks are only compiled. PATHs, where given, are the files to look at.

What passed is remembered in build/clang/passed by the text of the unit and of all headers of ours that it
includes, so a second run looks only at what changed.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOISE = ("warnings generated", "warning generated", "Suppressed ", "Use -header-filter", "Use -system-headers")


INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def includes(file):
    """What of ours a file includes itself; ours are found from src/, test/, bench/ or beside the file."""
    text = file.read_text(errors="replace")
    folders = (file.parent, ROOT / "src", ROOT / "test", ROOT / "bench")
    found = [next((folder / name for folder in folders if (folder / name).is_file()), None)
             for name in INCLUDE.findall(text)]
    return [path.resolve() for path in found if path]


def fingerprint(entry):
    seen, rest = set(), [pathlib.Path(entry["file"]).resolve()]
    while rest:
        file = rest.pop()
        if file not in seen:
            seen.add(file)
            rest += includes(file)
    digest = hashlib.sha256(RULES + entry["command"].encode())
    for file in sorted(seen):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def is_product(file):
    return file.startswith(f"{ROOT}/src/") and not file.endswith("_test.cpp")


def syntax_command(entry):
    words = [word for word in shlex.split(entry["command"])]
    start = next(i for i, word in enumerate(words) if word.endswith(("clang++-14", "clang++")))
    kept, skip = [], False
    for word in words[start + 1:]:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        elif word not in ("-MD", "-c"):
            kept.append(word)
    return ["clang++-14", "-fsyntax-only", *kept]


def look_at(entry):
    file = entry["file"]
    passed = PASSED / fingerprint(entry)
    if passed.exists():
        return file, 0, ""
    command = ["clang-tidy-14", "--quiet", "-p", str(BUILD), file] if is_product(file) else syntax_command(entry)
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    lines = [line for line in (done.stdout + done.stderr).splitlines()
             if not any(word in line for word in NOISE)]
    if done.returncode == 0:
        passed.touch()
    return file, done.returncode, "\n".join(lines)


BUILD = pathlib.Path(sys.argv[1]).resolve()
PASSED = BUILD / "passed"
RULES = (ROOT / ".clang-tidy").read_bytes() + pathlib.Path(__file__).read_bytes()
WANTED = {str(pathlib.Path(path).resolve()) for path in sys.argv[2:]}


def main():
    units = json.loads((BUILD / "compile_commands.json").read_text())
    units = [unit for unit in units if unit["file"].endswith(".cpp") and "/CMakeFiles/" not in unit["file"]
             and (not WANTED or unit["file"] in WANTED)]
    PASSED.mkdir(exist_ok=True)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, output in pool.map(look_at, units):
            if status != 0:
                failures += 1
                print(f"--- {os.path.relpath(file, ROOT)}\n{output}", flush=True)
    print(f"{len(units)} units, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
