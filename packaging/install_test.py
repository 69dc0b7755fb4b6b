"""What `cmake --install` leaves: programs that run from there, and services that systemd takes."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CMAKE, BUILD = sys.argv[1:3]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = Path(tempfile.mkdtemp(prefix="zed-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    def test_the_programs_run(self):
        for program in ("zedctl", "zed-agent", "zed-controller"):
            subprocess.run([self.prefix / "bin" / program, "--help"], check=True, stdout=subprocess.DEVNULL)
        self.assertTrue((self.prefix / "bin/zed-supervise").exists(), "the agent looks for it beside itself")

    def test_nothing_is_named_as_the_event_daemon_of_openzfs(self):
        names = {path.name for path in self.prefix.rglob("*")}
        self.assertFalse(names & {"zed", "zed.8", "zed.service", "zfs-zed.service", "zed.d"})

    def test_services_start_the_programs_that_were_installed(self):
        for name in ("zed-agent", "zed-controller"):
            text = (self.prefix / f"lib/systemd/system/{name}.service").read_text()
            self.assertIn(f"ExecStart={self.prefix}/bin/{name} run", text)
            self.assertNotIn("@", text)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "SKIPPED: systemd-analyze is not installed (systemd)")
    def test_systemd_finds_no_fault_in_them(self):
        services = sorted((self.prefix / "lib/systemd/system").glob("*.service"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *services], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
