"""The contract suite, and what a person does by hand, on real OpenZFS."""

import unittest

from fleet import BUILD, Fleet, Payload

PROGRAM = BUILD / "test" / "contract" / "zed_contract_test"
FILTER = "*zfs*:ByHand.*:ZfsStreams.*"
SHARDS = 2
PATIENCE = 1500


class ContractTest(unittest.TestCase):
    def test_the_zfs_store_keeps_the_contract(self):
        with Fleet(payload=Payload().program(PROGRAM), networked=False) as fleet:
            machines = [fleet.machine(f"shard{i}", pool="tank", memory=1536, wait=False) for i in range(SHARDS)]
            for machine in machines:
                machine.wait_ready()
            # The two count the tests in the same order and take every other one.
            runs = [
                machine.run_soon(
                    f"export ZED_TEST_ZFS_ROOT=tank GTEST_TOTAL_SHARDS={SHARDS} GTEST_SHARD_INDEX={i};"
                    f"zed_contract_test --gtest_filter='{FILTER}' --gtest_print_time=0 2>&1"
                )
                for i, machine in enumerate(machines)
            ]
            for machine, run in zip(machines, runs):
                output = machine.answer(run, PATIENCE, check=False)
                self.assertEqual(machine.last_status, 0, output)
                self.assertIn("[  PASSED  ]", output)
                self.assertNotIn("SKIPPED", output)
                print("\n".join(line for line in output.splitlines() if "tests ran" in line or "PASSED" in line))


if __name__ == "__main__":
    unittest.main()
