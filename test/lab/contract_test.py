"""The contract suite, what a person does by hand, and the cases that cost other tools' users data, on
real OpenZFS. Each test is a process of its own in one of a few machines, and a line with its seconds.

ZED_LAB_QUICK=1 leaves out what takes minutes; ZED_LAB_OPENZFS=2.3 takes the other machine;
ZED_LAB_MACHINES=4 takes so many; ZED_LAB_FILTER='ZfsStreams.*' runs only some.
"""

import collections
import os
import subprocess
import threading
import time
import unittest

from fleet import BUILD, Fleet, LabError, Payload

PROGRAM = BUILD / "test" / "contract" / "zed_contract_test"
BRANCH = os.environ.get("ZED_LAB_OPENZFS", "2.1")
ALL = "*zfs*:*Zfs*:ByHand.*"
SLOW = ("ZfsCrash.BeforeEachChange*FilesStream", "ZfsScale.*")
MACHINES = int(os.environ.get("ZED_LAB_MACHINES") or min(4, max(2, os.cpu_count() or 2)))
# For one test. Most take a few seconds where nobody else wants the processor.
PATIENCE = 1500


def chosen():
    """The filter of this run."""
    if "ZED_LAB_FILTER" in os.environ:
        return os.environ["ZED_LAB_FILTER"]
    return ALL + "-" + ":".join(SLOW) if os.environ.get("ZED_LAB_QUICK") else ALL


def tests_of(program, wanted):
    """The full names of the tests that the filter lets through."""
    listed = subprocess.run(
        [program, "--gtest_list_tests", f"--gtest_filter={wanted}"],
        env={**os.environ, "ZED_TEST_ZFS_ROOT": "tank"}, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    names = []
    suite = ""
    for line in listed.splitlines():
        word = line.split("#")[0].rstrip()
        if word.startswith("  "):
            names.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return names


class Run:
    """Deals tests to machines, one at a time each."""

    def __init__(self, names):
        self.left = collections.deque(names)
        self.lock = threading.Lock()
        self.failures = []

    def work(self, machine):
        while True:
            with self.lock:
                if not self.left:
                    return
                name = self.left.popleft()
            begun = time.monotonic()
            failure = self._one(machine, name)
            with self.lock:
                took = time.monotonic() - begun
                print(f"{took:7.1f} s  {'ok    ' if failure is None else 'FAILED'}  {name}", flush=True)
                if failure is not None:
                    print(failure, flush=True)
                    self.failures.append(name)

    @staticmethod
    def _one(machine, name):
        """What went wrong; None: nothing."""
        try:
            status, output = machine.status(
                f"ZED_TEST_ZFS_ROOT=tank zed_contract_test --gtest_filter='{name}' --gtest_brief=1 2>&1", PATIENCE
            )
        except LabError as error:  # the machine itself: it begins anew, with its pool
            machine.stop()
            machine.start()
            return str(error)
        passed = status == 0 and "[  PASSED  ] 1 test" in output and "SKIPPED" not in output
        return None if passed else f"exit status {status}\n{output}"


class ContractTest(unittest.TestCase):
    def test_the_zfs_store_keeps_the_contract(self):
        run = Run(tests_of(PROGRAM, chosen()))
        self.assertTrue(run.left, "the filter lets no test through")
        count = len(run.left)
        with Fleet(BRANCH, payload=Payload().program(PROGRAM), networked=False) as fleet:
            begun = time.monotonic()
            machines = [fleet.machine(f"m{i}", pool="tank", memory=1024, wait=False) for i in range(MACHINES)]
            for machine in machines:
                machine.wait_ready()
            print(f"\nOpenZFS {BRANCH}: {count} tests on {MACHINES} machines, "
                  f"which took {time.monotonic() - begun:.0f} s to start", flush=True)  # fmt: skip
            threads = [threading.Thread(target=run.work, args=(machine,)) for machine in machines]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        print(f"{count - len(run.left) - len(run.failures)} of {count} passed "
              f"in {time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
        self.assertEqual(run.failures, [])
        self.assertEqual(list(run.left), [])


if __name__ == "__main__":
    unittest.main()
