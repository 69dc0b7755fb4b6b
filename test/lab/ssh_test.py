"""A model goes by ssh to a machine without an agent, properties and all: full, incremental, resumed.

    Zed.ZFS.Replicate.sync_to_remote("nvme/models/llama-finetune@v1", "root@workstation",
                                     "tank/models/llama-finetune")

The workstation has OpenZFS, OpenSSH and nothing of Zed's.
"""

import json
import pathlib
import tempfile
import unittest

from daemons import Daemons, payload
from fleet import Fleet
from lab_case import wait_for
from openssh import start_sshd, with_ssh

MODEL = "nvme/models/llama-finetune"
TARGET = "tank/models/llama-finetune"
PATIENCE = 600  # an emulated machine takes seconds for each handshake, and more on a busy one
SLOW_LINK = 2  # megabits a second: the wide increment takes 8 s
WIDE_BYTES = 2_000_000


class SshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.fleet = Fleet(payload=with_ssh(payload(), pathlib.Path(cls.folder.name)))
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.fleet.close)
        cls.server = cls.fleet.machine("server", pool="nvme", memory=1024)
        cls.workstation = cls.fleet.machine("workstation", pool="tank")
        start_sshd(cls.workstation)
        cls.daemons = Daemons(cls.server)
        cls.addClassCleanup(cls.daemons.close)
        cls.daemons.start_controller()
        cls.daemons.start_agent(cls.server)
        wait_for("the agent joins", lambda: any(row["joined"] for row in cls.daemons.ask("nodes")["nodes"]))

    def sync(self, word, host="root@10.9.0.11"):
        return self.daemons.zedctl(f"sync {MODEL}@{word} {host} {TARGET}", PATIENCE)

    def must(self, word):
        status, output = self.sync(word)
        self.assertEqual(status, 0, f"{output}\n{self.daemons.logs()}")
        return output

    def moved(self, word):
        """The bytes that it took."""
        lines = self.daemons.do(f"sync {MODEL}@{word} root@10.9.0.11 {TARGET} --json", PATIENCE).splitlines()
        return json.loads(next(line for line in lines if line.startswith("{")))["moved"]

    def there(self, name, of=TARGET):
        """A property's value and source on the workstation."""
        return self.workstation.run(f"zfs get -Hp -o value,source com.zed:{name} {of}").split("\t")

    def test_1_a_person_s_snapshot_arrives_with_its_properties(self):
        self.server.run(
            f"zfs create -p {MODEL}; dd if=/dev/urandom of=/{MODEL}/weights bs=1M count=2 2>/dev/null;"
            f"zfs set com.zed:trained_on=a100 com.zed:epochs=50 com.zed:loss=0.0023 {MODEL};"
            f"zfs set com.zed:note=\"it's 50 \\\\ done!\" {MODEL}; zfs snapshot {MODEL}@v1"
        )
        # The agent notices by itself what a person made.
        wait_for("the snapshot is seen", lambda: "@v1" in self.daemons.zedctl(f"sync {MODEL}@none a b/c")[1])
        output = self.must("v1")
        self.assertIn("by ssh", output)
        self.assertEqual(self.there("trained_on"), ["a100", "local\n"])
        self.assertEqual(self.there("loss"), ["0.0023", "local\n"])
        options = self.workstation.run(f"zfs get -H -o value readonly,canmount {TARGET}").split()
        self.assertEqual(options, ["on", "noauto"])
        same = "zfs list -Hp -o guid -t snapshot"
        self.assertEqual(self.workstation.run(f"{same} {TARGET}@v1"), self.server.run(f"{same} {MODEL}@v1"))
        self.assertEqual(self.there("id", f"{TARGET}@v1")[1], "local\n")
        self.assertEqual(self.there("sync")[0], "-")
        sums = [machine.run(f"zfs mount {name} 2>/dev/null; md5sum < /{name}/weights")
                for machine, name in ((self.server, MODEL), (self.workstation, TARGET))]  # fmt: skip
        self.assertEqual(*sums)
        self.assertIn("was there already", self.must("v1"))

    def test_2_an_increment_carries_only_what_is_new(self):
        self.server.run(f"echo more > /{MODEL}/more; zfs snapshot {MODEL}@v2")
        wait_for("@v2 is seen", lambda: "@v2" in self.daemons.zedctl(f"sync {MODEL}@none a b/c")[1])
        self.assertLess(self.moved("v2"), 1_000_000)
        self.assertEqual(self.workstation.run(f"zfs list -H -o name -t snapshot -d 1 {TARGET} | wc -l").strip(), "2")

    def test_3_a_cut_stream_goes_on_where_it_was(self):
        self.server.run(
            f"dd if=/dev/urandom of=/{MODEL}/wide bs=1000 count={WIDE_BYTES // 1000} 2>/dev/null;"
            f"zfs snapshot {MODEL}@v3"
        )
        wait_for("@v3 is seen", lambda: "@v3" in self.daemons.zedctl(f"sync {MODEL}@none a b/c")[1])
        received = "cat /sys/class/net/eth0/statistics/rx_bytes"
        enough = int(self.workstation.run(received)) + WIDE_BYTES * 0.6
        self.workstation.shape(SLOW_LINK)
        command = self.daemons.begin(f"sync {MODEL}@v3 root@10.9.0.11 {TARGET}")
        self.workstation.wait_for(f"[ $({received}) -gt {enough:.0f} ]", PATIENCE)
        self.workstation.run("kill $(ps | grep 'zfs receive' | grep -v grep | sed 's/^ *//; s/ .*//')")
        status, output = self.daemons.finish(command, PATIENCE)
        self.assertNotEqual(status, 0, output)
        self.assertNotEqual(self.workstation.run(f"zfs get -H -o value receive_resume_token {TARGET}").strip(), "-")
        self.workstation.shape(None)
        self.assertLess(self.moved("v3"), WIDE_BYTES * 0.9, "it began anew")
        self.workstation.run(f"zfs list {TARGET}@v3")

    def test_4_what_cannot_be_done_says_what_to_do(self):
        status, output = self.sync("v3", "root@10.9.0.99")
        self.assertEqual(status, 1, output)
        self.assertIn("ssh to root@10.9.0.99", output)
        self.workstation.run("mv /root/.ssh/authorized_keys /root/.ssh/away")
        status, output = self.sync("v3")
        self.assertEqual(status, 5, output)
        self.assertIn("ssh-copy-id root@10.9.0.11", output)
        self.workstation.run("mv /root/.ssh/away /root/.ssh/authorized_keys")
        self.workstation.run("zfs create tank/mine; touch /tank/mine/precious")
        status, output = self.daemons.zedctl(f"sync {MODEL}@v3 root@10.9.0.11 tank/mine")
        self.assertEqual(status, 1, output)
        self.assertIn("is there already", output)
        self.workstation.run("[ -e /tank/mine/precious ]")


if __name__ == "__main__":
    unittest.main()
