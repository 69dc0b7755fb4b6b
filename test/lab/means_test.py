"""What fleet.py does to machines really happens to them: each means shown by its effect, and by its end."""

import time
import unittest

from fleet import Fleet

MEGABYTES = 1
MEGABITS = 0.2  # slow beside anything that a busy host does to the machines
SHAPED_SECONDS = MEGABYTES * 8 / MEGABITS
PORT = 9000


class MeansTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet()
        cls.addClassCleanup(cls.fleet.close)
        cls.server = cls.fleet.machine("server", pool="nvme", wait=False)
        cls.workstation = cls.fleet.machine("workstation", pool="tank", wait=False)
        for machine in cls.fleet.machines:
            machine.wait_ready()

    def reaches(self, machine, other):
        return machine.status(f"ping -c 1 -W 2 {other.address}")[0] == 0

    def seconds_to_send(self):
        """From the workstation to the server, over TCP; the server says how much arrived."""
        self.server.run_soon(f"nc -l -p {PORT} -e wc -c")
        self.server.wait_for(f"grep -qi :{PORT:04X} /proc/net/tcp /proc/net/tcp6")
        begin = time.monotonic()
        received = self.workstation.run(f"head -c {MEGABYTES}000000 /dev/zero | nc {self.server.address} {PORT}")
        self.assertEqual(received.strip(), f"{MEGABYTES}000000")
        return time.monotonic() - begin

    def test_a_cut_link_carries_nothing_until_it_is_mended(self):
        self.assertTrue(self.reaches(self.workstation, self.server))
        self.server.cut_link()
        self.assertFalse(self.reaches(self.workstation, self.server))
        self.server.restore_link()
        self.workstation.wait_for(f"ping -c 1 -W 2 {self.server.address}")

    def test_a_shaped_link_is_as_slow_as_it_was_made(self):
        fast = self.seconds_to_send()
        self.server.shape(MEGABITS)
        shaped = self.seconds_to_send()
        self.server.shape(None)
        fast_again = self.seconds_to_send()
        self.assertGreater(shaped, 0.8 * SHAPED_SECONDS)
        self.assertLess(fast, shaped)
        self.assertLess(fast_again, shaped)

    def test_a_frozen_machine_answers_when_it_is_thawed(self):
        before = self.server.run("cat /proc/sys/kernel/random/boot_id")
        self.server.freeze()
        self.assertFalse(self.reaches(self.workstation, self.server))
        self.server.thaw()
        self.assertEqual(self.server.run("cat /proc/sys/kernel/random/boot_id"), before)
        self.workstation.wait_for(f"ping -c 1 -W 2 {self.server.address}")

    def test_an_orderly_restart_loses_nothing(self):
        before = self.server.run("echo kept > /nvme/ordered; zfs snapshot nvme@ordered; cat /proc/sys/kernel/random/boot_id")
        self.server.reboot()
        self.assertNotEqual(self.server.run("cat /proc/sys/kernel/random/boot_id"), before)
        self.assertEqual(self.server.run("cat /nvme/ordered; zfs list -H -o name nvme@ordered").split(),
                         ["kept", "nvme@ordered"])  # fmt: skip

    def test_a_power_cut_keeps_what_was_synced_and_nothing_else(self):
        self.server.run(
            "zpool sync nvme; echo 3600 > /sys/module/zfs/parameters/zfs_txg_timeout;"
            "echo 1 > /nvme/synced; zfs snapshot nvme@synced; echo 1 > /nvme/not-synced"
        )
        self.server.cut_power()
        self.server.start()
        self.assertEqual(self.server.run("ls /nvme; zfs list -H -o name -t snapshot nvme").split()[-2:],
                         ["synced", "nvme@synced"])  # fmt: skip
        self.assertEqual(self.server.status("cat /nvme/not-synced")[0], 1)
        self.assertIn("healthy", self.server.run("zpool status -x"))


if __name__ == "__main__":
    unittest.main()
