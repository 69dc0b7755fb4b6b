"""On a machine with an NVIDIA GPU: our NVML reading against nvidia-smi's, field by field. Skipped aloud elsewhere."""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
AGENT = Path(os.environ.get("ZED_AGENT", ROOT / "build/release/src/bin/zed-agent"))
SMI = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
COLUMNS = ["index", "uuid", "pci.bus_id", "memory.total", "memory.used", "temperature.gpu", "driver_version",
           "compute_cap", "mig.mode.current", "name"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                          env=dict(os.environ, LC_ALL="C"))


def why_not():
    if SMI is None:
        return "there is no nvidia-smi on this machine"
    listed = run(SMI, "-L")
    if listed.returncode != 0 or "GPU 0" not in listed.stdout:
        return f"nvidia-smi shows no GPU: {(listed.stdout + listed.stderr).strip()[:200]}"
    return None


WHY_NOT = why_not()
if WHY_NOT:
    print(f"SKIPPED: no NVIDIA GPU to compare readings on: {WHY_NOT}", file=sys.stderr)


def value(field):
    return field["value"] if field["state"] == "value" else None


def short_bus(text):
    domain, rest = text.lower().split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


@unittest.skipIf(WHY_NOT, f"no NVIDIA GPU: {WHY_NOT}")
class RealDevice(unittest.TestCase):
    def setUp(self):
        asked = run(SMI, "--query-gpu=" + ",".join(COLUMNS), "--format=csv,noheader,nounits")
        self.assertEqual(asked.returncode, 0, asked.stdout + asked.stderr)
        self.rows = [dict(zip(COLUMNS, line.split(", ", len(COLUMNS) - 1))) for line in asked.stdout.splitlines()]

    def test_nvml_and_nvidia_smi_read_the_same(self):
        ours = run(str(AGENT), "probe", "--nvml")
        self.assertEqual(ours.returncode, 0, ours.stderr)
        devices = [d for d in json.loads(ours.stdout)["devices"] if not d["mig_parent"]]
        self.assertEqual(len(devices), len(self.rows))
        for device, row in zip(devices, self.rows):
            with self.subTest(gpu=row["index"]):
                self.compare(device, row)

    def compare(self, device, row):
        self.assertEqual(device["index"], int(row["index"]))
        self.assertEqual(value(device["uuid"]), row["uuid"])
        self.assertEqual(value(device["bus_id"]), short_bus(row["pci.bus_id"]))
        self.assertEqual(value(device["model"]), row["name"])
        self.assertEqual(value(device["driver"]), row["driver_version"])
        self.assertEqual(value(device["arch"]), row["compute_cap"])
        self.assertEqual(device["mig_enabled"], row["mig.mode.current"] == "Enabled")
        if row["memory.total"].isdigit():
            self.assertEqual(value(device["total"]) >> 20, int(row["memory.total"]))
            # Both are read at different moments.
            self.assertLess(abs((value(device["used"]) >> 20) - int(row["memory.used"])), 2048)
        else:
            self.assertIsNone(value(device["total"]))
        if row["temperature.gpu"].isdigit():
            self.assertLess(abs(value(device["temperature"]) - int(row["temperature.gpu"])), 20)

    def test_both_ways_give_the_same_gpus(self):
        document = json.loads(run(str(AGENT), "probe", "--json").stdout)
        nvidia = [gpu for gpu in document["gpus"] if gpu["vendor"] == "nvidia"]
        whole = {row["uuid"] for row in self.rows if row["mig.mode.current"] != "Enabled"}
        self.assertEqual({gpu["uuid"] for gpu in nvidia if gpu["uuid"].startswith("GPU-")}, whole)
        for gpu in nvidia:
            self.assertEqual(gpu["sources"]["vram_reported_mib"], "nvml")


if __name__ == "__main__":
    unittest.main()
