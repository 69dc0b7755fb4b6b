"""Every recorded output of test/fixtures/gpu, through the real command.

A fake tool on PATH answers from the record, a fake libnvidia-ml.so plays NVML's transcripts, and sysfs is a
folder. What `zed-agent probe --json` prints is compared with golden files (ZED_UPDATE_GOLDEN=1 writes them) and
with what INDEX.tsv says that a correct detector concludes.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIXTURES = ROOT / "test/fixtures/gpu"
GOLDEN = HERE / "golden"
AGENT = Path(os.environ.get("ZED_AGENT", ROOT / "build/release/src/bin/zed-agent"))
FAKE_NVML = Path(os.environ.get("ZED_FAKE_NVML", ROOT / "build/release/test/gpu/libnvidia-ml.so.1"))

with open(FIXTURES / "INDEX.tsv", encoding="utf-8") as index_file:
    INDEX = {row["file"]: row for row in csv.DictReader(index_file, delimiter="\t")}

HEALTHS = {"ok", "degraded", "reset-required", "lost", "stale", "no-driver"}
KINDS = {"dedicated", "unified", "slice", "coherent"}
KEYS = ["index", "uuid", "bus_id", "vendor", "model", "memory_kind", "vram_reported_mib", "vram_nominal_gb",
        "health", "why", "sources"]


def tool_of(row):
    """The tool that a record came from, and what of its arguments makes it answer."""
    words = [w for w in row["tool_and_arguments"].split() if "=" not in w or w.startswith("--")]
    tool = Path(words[0]).name
    for mode in ("--query-gpu", "--query-compute-apps", "-q", "-L", "topo"):
        if any(word.startswith(mode) for word in words[1:]):
            return tool, mode
    return tool, "always"


class Machine:
    """A folder that stands for a machine: a PATH of fake tools, and a root for sysfs."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.bin = self.folder / "bin"
        self.root = self.folder / "root"
        self.asks = self.folder / "asks"
        self.asks.touch()
        self.environment = {"HOME": folder, "LC_ALL": "de_DE.UTF-8"}
        for made in (self.bin, self.root / "sys", self.root / "proc"):
            made.mkdir(parents=True)
        self.file("/proc/meminfo", "MemTotal:       127602000 kB\nMemAvailable:   100000000 kB\n")
        (self.bin / "python3").symlink_to(sys.executable)

    def file(self, path, text):
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            target.symlink_to(text[3:])
        else:
            target.write_bytes(text.replace("\\0", "\0").encode() + b"\n")

    def tool(self, name, text, status=0, mode="always", columns=None):
        script = self.bin / name
        shutil.copy(HERE / "fake_tool.py", script)
        script.chmod(0o755)
        record = {"text": text, "status": status, "mode": mode, "columns": columns, "asks": str(self.asks)}
        (self.bin / (name + ".record.json")).write_text(json.dumps(record))

    def nvml(self, transcript):
        lines = "\n".join(flat_transcript(transcript))
        (self.folder / "nvml.txt").write_text(lines + "\n")
        self.environment["FAKE_NVML"] = str(self.folder / "nvml.txt")
        self.environment["LD_LIBRARY_PATH"] = str(FAKE_NVML.parent)
        if "meminfo_MemTotal_kB" in transcript:
            self.file("/proc/meminfo", f"MemTotal: {transcript['meminfo_MemTotal_kB']} kB\n")

    def probe(self, *arguments):
        done = subprocess.run([str(AGENT), "probe", "--root", str(self.root), *arguments], capture_output=True,
                              text=True, timeout=60, check=False, env=dict(self.environment, PATH=str(self.bin)))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asked(self):
        return self.asks.read_text().splitlines()


def flat_transcript(transcript):
    """NVML's transcript as lines: "<device> <function> <code> <values…>"; instances are "<device>/<n>"."""

    def numbers(value):
        if isinstance(value, dict):
            order = ("total", "reserved", "free", "used", "bar1Total")
            return [value[key] for key in order if key in value]
        return value if isinstance(value, list) else [] if value is None else [value]

    def of(device, name):
        for key, value in device.items():
            if key in ("index", "error", "mig"):
                continue
            if key == "handle":
                yield f"{name} handle {value}"
            elif key in ("name", "uuid", "pci"):
                yield f"{name} {key} 0 {value}"
            elif key == "memory":
                yield f"{name} nvmlDeviceGetMemoryInfo {value[0]} {value[1]} {value[1]} 0"
            else:
                yield " ".join(map(str, [name, key, value[0], *numbers(value[1])]))

    yield f"- nvmlInit_v2 {transcript['nvmlInit_v2']}"
    yield f"- nvmlDeviceGetCount_v2 {transcript['nvmlDeviceGetCount_v2'][0]} {transcript['nvmlDeviceGetCount_v2'][1]}"
    for i, device in enumerate(transcript["devices"]):
        yield from of(device, str(i))
        for instance in device.get("mig", []):
            yield from of(instance, f"{i}/{instance['index']}")


def play(machine, name):
    """Sets a machine up as one record tells."""
    row = INDEX[name]
    text = (FIXTURES / name).read_bytes().decode()
    if name.startswith("sysfs_"):
        for line in text.splitlines():
            path, _, content = line.partition("\t")
            machine.file(path, content)
        return
    if name.startswith("nvml_"):
        machine.nvml(json.loads(text))
        return
    tool, mode = tool_of(row)
    status = int(row["exit_status"]) if row["exit_status"].isdigit() else 0
    if row["exit_status"].startswith("timeout"):
        machine.tool(tool, "", mode="hang")
    elif mode == "--query-gpu" and status == 0:
        columns = re.search(r"--query-gpu=(\S+)", row["tool_and_arguments"]).group(1).split(",")
        machine.tool(tool, text, mode="csv", columns=columns)
    else:
        machine.tool(tool, text, status, "always" if status else mode)


class EveryRecord(unittest.TestCase):
    maxDiff = None

    def probe(self, name, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(folder)
            play(machine, name)
            return json.loads(machine.probe("--json", *(arguments or ["--timeout", "1" if "hang" in name else "20"])))

    def check_schema(self, document):
        self.assertEqual(sorted(document), ["gpus", "problems", "schema"])
        self.assertEqual(document["schema"], 1)
        for gpu in document["gpus"]:
            self.assertEqual(list(gpu), KEYS)
            self.assertIn(gpu["health"], HEALTHS)
            self.assertIn(gpu["memory_kind"], KINDS)
            for number in ("index", "vram_reported_mib", "vram_nominal_gb"):
                self.assertIsInstance(gpu[number], (int, type(None)))
            self.assertTrue(gpu["uuid"] and gpu["model"])
            if gpu["vram_reported_mib"] is not None:
                self.assertIn("vram_reported_mib", gpu["sources"])
        for problem in document["problems"]:
            self.assertEqual(sorted(problem), ["do", "what"])
            self.assertTrue(problem["what"] and problem["do"])
        identities = [gpu["uuid"] for gpu in document["gpus"]]
        self.assertEqual(len(identities), len(set(identities)), "two GPUs with one identity")

    def check_golden(self, name, document):
        golden = GOLDEN / (name + ".json")
        text = json.dumps(document, indent=1) + "\n"
        if os.environ.get("ZED_UPDATE_GOLDEN"):
            GOLDEN.mkdir(exist_ok=True)
            golden.write_text(text)
        self.assertEqual(text, golden.read_text())

    def check_index(self, row, gpus):
        """The columns of INDEX.tsv that are figures; the goldens hold the rest."""
        counts = {"3 full + 4 MIG": 7, "2 MIG": 2, "3 (1 iGPU, 1 NVIDIA, 1 AMD)": 3}
        expected = counts.get(row["gpus"], int(row["gpus"]) if row["gpus"].isdigit() else None)
        if expected is not None and not row["file"].startswith(("nvidia_topo", "nvidia_table")):
            self.assertEqual(len(gpus), expected)
        sizes = row["vram_mib"].split(";")
        if len(sizes) == len(gpus) and row["unified"] == "no":
            for gpu, size in zip(gpus, sizes):
                if size.isdigit() or size == "?":
                    self.assertEqual(gpu["vram_reported_mib"], int(size) if size.isdigit() else None)
        if row["unified"] in ("yes", "no") and gpus:
            for gpu in gpus:
                self.assertEqual(gpu["memory_kind"] == "unified", row["unified"] == "yes", gpu["model"])
        if row["health"].startswith("ok"):
            self.assertEqual({gpu["health"] for gpu in gpus}, {"ok"})


def add_test(name, row):
    def test(self):
        document = self.probe(name)
        self.check_schema(document)
        self.check_index(row, document["gpus"])
        self.check_golden(name, document)

    setattr(EveryRecord, "test_" + name.replace(".", "_"), test)


for _name, _row in INDEX.items():
    add_test(_name, _row)


class Behaviour(unittest.TestCase):
    """What one record alone cannot show."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.machine = Machine(self.folder.name)

    def document(self, *arguments):
        return json.loads(self.machine.probe("--json", *arguments))

    def remember(self):
        last = Path(self.folder.name) / "last.json"
        last.write_text(self.machine.probe("--full"))
        return str(last)

    def test_every_record_is_played(self):
        recorded = {path.name for path in FIXTURES.iterdir()} - {"INDEX.tsv"}
        self.assertEqual(recorded, set(INDEX))
        self.assertEqual(len(recorded), 67)

    def test_a_hang_leaves_the_last_inventory_stale(self):
        play(self.machine, "nvidia_csv_ok_2x4090.txt")
        last = self.remember()
        self.machine.tool("nvidia-smi", "", mode="hang")
        document = self.document("--last", last, "--timeout", "1")
        self.assertEqual([gpu["health"] for gpu in document["gpus"]], ["stale", "stale"])
        self.assertEqual(document["gpus"][1]["vram_reported_mib"], 24564)
        self.assertTrue(document["gpus"][1]["uuid"].startswith("GPU-be5eb9d8"))
        self.assertEqual(sum("nvidia-smi" in line for line in self.machine.asked()[-1:]), 1)

    def test_a_lost_gpu_keeps_its_name(self):
        play(self.machine, "nvidia_csv_gpu_lost_row.txt")
        lost = (FIXTURES / "nvidia_csv_gpu_lost_row.txt").read_text().splitlines()
        whole = lost[:1] + [lost[0].replace("0, GPU-43fb1dc9", "1, GPU-11111111").replace("09:00", "0a:00")] + lost[2:]
        columns = json.loads((self.machine.bin / "nvidia-smi.record.json").read_text())["columns"]
        self.machine.tool("nvidia-smi", "\n".join(whole) + "\n", mode="csv", columns=columns)
        last = self.remember()
        play(self.machine, "nvidia_csv_gpu_lost_row.txt")
        gpus = self.document("--last", last)["gpus"]
        self.assertEqual([gpu["index"] for gpu in gpus], [0, 1, 2, 3])
        self.assertTrue(gpus[1]["uuid"].startswith("GPU-11111111"))
        self.assertEqual(gpus[1]["model"], "NVIDIA GeForce RTX 2080 Ti")
        self.assertEqual(gpus[1]["health"], "lost")
        self.assertEqual(gpus[1]["sources"]["uuid"], "last inventory")

    def test_a_gpu_that_sleeps_is_not_woken(self):
        play(self.machine, "sysfs_nvidia_rtd3_suspended.txt")
        self.machine.nvml({"nvmlInit_v2": 0, "nvmlDeviceGetCount_v2": [0, 0], "devices": []})
        self.machine.tool("nvidia-smi", "", status=1)
        gpus = self.document()["gpus"]
        self.assertEqual((gpus[0]["health"], gpus[0]["vram_reported_mib"]), ("ok", None))
        self.assertEqual(self.machine.asked(), [])
        del self.machine.environment["FAKE_NVML"], self.machine.environment["LD_LIBRARY_PATH"]
        self.document("--wake")
        self.assertTrue(any(line.startswith("nvidia-smi") for line in self.machine.asked()))

    def test_several_vendors_in_one_machine(self):
        play(self.machine, "nvidia_csv_ok_2x4090.txt")
        play(self.machine, "amd_smi_static_6x.json")
        play(self.machine, "xpu_smi_discovery_b60.json")
        gpus = self.document()["gpus"]
        self.assertEqual([(gpu["vendor"], gpu["index"]) for gpu in gpus],
                         [("nvidia", 0), ("nvidia", 1), ("amd", 0), ("intel", 0)])

    def test_kfd_tells_who_uses_what(self):
        play(self.machine, "sysfs_amdgpu_strix_halo_gtt.txt")
        self.machine.file("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4711")
        self.machine.file("/sys/class/kfd/kfd/proc/812/vram_4711", "1073741824")
        self.machine.file("/sys/class/kfd/kfd/proc/813/vram_99", "5")
        device = json.loads(self.machine.probe("--full"))["devices"][0]
        self.assertEqual([(p["pid"], p["used"]) for p in device["processes"]], [(812, 1 << 30)])

    def test_missing_drivers_are_told(self):
        self.machine.file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de")
        self.machine.file("/sys/bus/pci/devices/0000:01:00.0/device", "0x2684")
        self.machine.file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000")
        document = self.document()
        self.assertEqual(document["gpus"][0]["health"], "no-driver")
        self.assertIn("RTX 4090", document["gpus"][0]["model"])
        self.assertIn("modprobe nvidia", document["problems"][0]["do"])

    def test_a_container_without_its_gpus(self):
        card = "/sys/bus/pci/devices/0000:01:00.0/"
        self.machine.file(card + "vendor", "0x10de")
        self.machine.file(card + "device", "0x2684")
        self.machine.file(card + "class", "0x030000")
        self.machine.file(card + "driver", "-> ../../../bus/pci/drivers/nvidia")
        gpu = self.document()["gpus"][0]
        self.assertEqual(gpu["health"], "no-driver")
        self.assertIn("container", gpu["why"])
        # One of two is given to it.
        play(self.machine, "nvidia_csv_wsl_ok.txt")
        self.machine.file(card.replace("01:", "02:") + "vendor", "0x10de")
        self.machine.file(card.replace("01:", "02:") + "device", "0x2684")
        self.machine.file(card.replace("01:", "02:") + "driver", "-> ../../../bus/pci/drivers/nvidia")
        self.assertEqual([gpu["health"] for gpu in self.document()["gpus"]], ["ok", "no-driver"])

    def test_a_dead_driver_leaves_the_hardware_seen(self):
        for name in ("nvidia_text_driver_mismatch.txt", "nvidia_text_no_driver.txt"):
            play(self.machine, name)
            self.machine.file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de")
            self.machine.file("/sys/bus/pci/devices/0000:01:00.0/device", "0x2684")
            document = self.document()
            self.assertEqual([gpu["health"] for gpu in document["gpus"]], ["no-driver"], name)
            self.assertTrue(document["problems"][0]["do"])

    def test_one_lost_gpu_that_silences_the_rest(self):
        play(self.machine, "nvidia_text_unable_handle_lost.txt")
        for bus in ("01", "02"):
            self.machine.file(f"/sys/bus/pci/devices/0000:{bus}:00.0/vendor", "0x10de")
            self.machine.file(f"/sys/bus/pci/devices/0000:{bus}:00.0/device", "0x2684")
        gpus = self.document()["gpus"]
        self.assertEqual({gpu["bus_id"]: gpu["health"] for gpu in gpus},
                         {"0000:01:00.0": "stale", "0000:02:00.0": "lost"})

    def test_an_old_driver_is_asked_again_without_the_new_column(self):
        old = self.machine.bin / "nvidia-smi"
        old.write_text("""#!/bin/sh
case "$1" in
*addressing_mode*) echo 'Field "addressing_mode" is not a valid field to query.'; exit 2;;
--query-gpu=*) echo '0, GPU-1, 00000000:01:00.0, 8192, 0, 8000, 0, 30, [N/A], 470.1, 8.6, [N/A], NVIDIA RTX A2000';;
*) exit 1;;
esac
""")
        old.chmod(0o755)
        gpus = self.document()["gpus"]
        self.assertEqual([(gpu["uuid"], gpu["vram_reported_mib"]) for gpu in gpus], [("GPU-1", 8192)])

    def test_what_else_the_machine_is(self):
        self.machine.file("/etc/os-release", 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"')
        self.machine.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9004\nflags\t: x")
        self.machine.file("/opt/rocm/.info/version", "6.3.1-48")
        supplies = "/sys/class/power_supply/"
        facts = json.loads(self.machine.probe("--facts"))
        self.assertEqual(facts["power"], "")
        self.assertEqual((facts["cpu_model"], facts["rocm"]), ("AMD EPYC 9004", "6.3.1-48"))
        self.assertTrue(facts["os_version"].startswith("Debian GNU/Linux 12 (bookworm), kernel "))
        self.machine.file(supplies + "hidpp_battery_0/type", "Battery")
        self.machine.file(supplies + "hidpp_battery_0/scope", "Device")
        self.assertEqual(json.loads(self.machine.probe("--facts"))["power"], "", "a mouse's battery")
        self.machine.file(supplies + "BAT0/type", "Battery")
        self.machine.file(supplies + "AC/type", "Mains")
        self.machine.file(supplies + "AC/online", "0")
        self.assertEqual(json.loads(self.machine.probe("--facts"))["power"], "battery")
        self.machine.file(supplies + "AC/online", "1")
        self.assertEqual(json.loads(self.machine.probe("--facts"))["power"], "mains")

    def test_people_get_words(self):
        play(self.machine, "nvidia_xml_recovery_action_reset.xml")
        text = self.machine.probe()
        self.assertIn("reset-required: the driver asks for: Reset", text)
        self.assertIn("-> end what uses it", text)


if __name__ == "__main__":
    unittest.main()
