"""An agent of an ordinary user on OpenZFS: it holds copies, as `zfs allow` lets it, and nothing else.

Also what `doctor` says to that user, before and after root gave it the rights; and a dataset that a person
made, adopted.
"""

import json
import re
import unittest

from daemons import Daemons, payload
from fleet import Fleet
from lab_case import wait_for

USER = "zed"  # of the image, uid 1000
PATIENCE = 600


class UserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(payload=payload(with_python=True))
        cls.addClassCleanup(cls.fleet.close)
        cls.server = cls.fleet.machine("server", pool="nvme", memory=1024)
        cls.laptop = cls.fleet.machine("laptop", pool="data", memory=1024)
        cls.daemons = Daemons(cls.server)
        cls.addClassCleanup(cls.daemons.close)
        cls.daemons.start_controller()
        cls.daemons.start_agent(cls.server)

    def as_user(self, script):
        return self.laptop.status(f"su {USER} -c '{script}'")

    def doctor(self):
        status, output = self.as_user("PATH=/zed/bin:/bin:/sbin HOME=/tmp zed-agent doctor --pool data --store zfs")
        findings = json.loads(output)["findings"]
        return status, {finding["subject"]: finding for finding in findings}

    def node(self, name):
        rows = self.daemons.ask("nodes")["nodes"]
        return next((row for row in rows if row["node"]["name"] == name and row["joined"]), None)

    def test_1_the_doctor_names_the_rights_that_are_missing(self):
        status, found = self.doctor()
        self.assertEqual(status, 1)
        self.assertEqual(found["zfs"]["level"], "ok", found)
        self.assertEqual(found["pool data"]["level"], "ok", found)
        todo = found["zfs allow data"]["todo"]
        self.assertIn("as root: zfs allow -u zed", todo)
        self.laptop.run(re.sub("^as root: ", "", todo))
        status, found = self.doctor()
        self.assertEqual(found["zfs allow data"]["level"], "ok", found)

    def test_2_it_holds_copies(self):
        self.laptop.run(
            f"mkdir -p /run/own; chown {USER} /run/own; cp /zed/cookie /run/own/cookie; chown {USER} /run/own/cookie;"
            f"chmod 600 /run/own/cookie; chmod 755 /zed /zed/bin"
        )
        self.daemons.agents["laptop"] = self.laptop
        self.laptop.run(
            f"setsid su {USER} -c 'PATH=/zed/bin:/bin:/sbin exec zed-agent run --state /run/own/agent --name laptop"
            " --store zfs --pool data --gpus none --cookie-file /run/own/cookie"
            f" --listen {self.laptop.address} --controller server@{self.server.address}:4371"
            " --dangerously-allow-plain-tcp' > /run/laptop.log 2>&1 &"
        )
        row = wait_for("the user's agent joins", lambda: self.node("laptop"))
        self.assertFalse(row["node"]["facts"]["may_run_jobs"])
        self.assertIn("copies only", self.daemons.do("nodes"))
        self.server.run(
            "zfs create -p nvme/models/llama;"
            "dd if=/dev/urandom of=/nvme/models/llama/weights bs=1M count=1 2>/dev/null"
        )
        adopt = "adopt nvme/models/llama"
        wait_for("the dataset is seen", lambda: "would adopt" in self.daemons.zedctl(f"{adopt} --dry-run")[1])
        self.assertIn("adopted models/llama", self.daemons.do(f"{adopt} --as model llama", PATIENCE))
        self.assertEqual(self.server.run("zfs get -H -o value com.zed:type nvme/models/llama").strip(), "model")
        self.daemons.do("replicate models/llama --to laptop", PATIENCE)
        guids = [
            machine.run(f"zfs list -Hp -o guid -t snapshot {pool}/models/llama@v1")
            for machine, pool in ((self.server, "nvme"), (self.laptop, "data"))
        ]
        self.assertEqual(*guids)
        name = self.laptop.run("zfs get -H -o value,source com.zed:name data/models/llama").split()
        self.assertEqual(name, ["llama", "local"])
        self.server.run("echo more > /nvme/models/llama/more; zfs snapshot nvme/models/llama@v2")

        def has_increment():
            self.daemons.zedctl("replicate models/llama --to laptop", PATIENCE)
            return self.laptop.status("zfs list data/models/llama@v2")[0] == 0

        wait_for("the increment arrives", has_increment)

    def test_3_jobs_are_refused_with_the_reason(self):
        status, output = self.daemons.zedctl("match --requires gpus=0")
        self.assertIn("an agent for replication only", output, f"{status}")


if __name__ == "__main__":
    unittest.main()
