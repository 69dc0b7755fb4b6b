"""Machines with OpenZFS for tests: boots them, runs scripts in them, and does to them what happens to
machines: links are cut and slow, power goes, a lid is closed.

    with Fleet() as fleet:
        server = fleet.machine("server", pool="nvme")
        server.run("zfs create nvme/models")
        server.cut_power()
        server.start()

Needs root (network namespace, taps), qemu-system-x86 and the image that test/lab/image builds. Machines
run in software emulation: a `zfs` command takes about a fifth of a second.
"""

import atexit
import base64
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("ZED_LAB_BUILD", ROOT / "build" / "release"))
BOOT_SECONDS = 600
LONGEST_SCRIPT = 24_000
SAY_AGAIN_AFTER = (2, 4, 8, 16, 30, 60, 120)  # seconds without a "got"; what is said twice is done once
PATIENCE = 600  # seconds, for everything that takes seconds where nobody else wants the processor

signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to end, it still switches its machines off


class LabError(AssertionError):
    """A script in a machine failed, or a machine did."""


def image(branch="2.1"):
    """The folder of the machine image, built if it is not there."""
    done = subprocess.run([HERE / "image", branch], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


def libraries(program):
    """The shared libraries of a program, loader included, by their paths; none of a static one."""
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            check=False).stdout  # fmt: skip
    return [path for path in re.findall(r"(/\S+)", listed) if os.path.exists(path)]


class Payload:
    """Files that a test's machines get beside the image: programs with their libraries, texts."""

    def __init__(self):
        self.files = {}

    def add(self, path, content):
        """`content`: text, bytes, or the Path of a file of this machine. Executable."""
        path = path.lstrip("/")
        # /usr is a link to /: a second archive with a folder of that name would put one in its place, and
        # with it /usr/bin/env, by which the kernel mounts snapshots.
        self.files[path.removeprefix("usr/")] = content
        return self

    def program(self, path):
        """One of our programs; in the machine it is in PATH."""
        path = pathlib.Path(path)
        self.add(f"/zed/bin/{path.name}", path)
        for library in libraries(path):
            self.add(library, pathlib.Path(library).resolve())
        return self

    def write(self, base, target):
        """`base` and our files as one initramfs."""
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            top = pathlib.Path(folder)
            for path, content in self.files.items():
                place = top / path
                place.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, pathlib.Path):
                    shutil.copyfile(content, place)
                else:
                    place.write_bytes(content.encode() if isinstance(content, str) else content)
                place.chmod(0o755)
            for program in (top / "zed" / "bin").glob("*") if (top / "zed").exists() else []:
                subprocess.run(["strip", program], check=False, stderr=subprocess.DEVNULL)
            top.chmod(0o755)
            archive = subprocess.run(
                "find . | cpio -o -H newc --quiet", shell=True, cwd=top, stdout=subprocess.PIPE, check=True
            ).stdout
        with open(target, "wb") as out:
            with open(base, "rb") as image_file:
                shutil.copyfileobj(image_file, out)
            out.write(b"\0" * (-out.tell() % 512))  # the kernel looks for the second one at a border
            out.write(archive)


def make_disk(path, megabytes):
    """A disk with one partition: `zpool create` on a bare one waits for udev to make a partition."""
    sectors = megabytes * 2048
    first = 2048
    entry = bytes([0, 0, 0, 0, 0xBF, 0, 0, 0]) + first.to_bytes(4, "little") + (sectors - first).to_bytes(4, "little")
    with open(path, "wb") as disk:
        disk.write(b"\0" * 446 + entry + b"\0" * 48 + b"\x55\xaa")
        disk.truncate(sectors * 512)


class Machine:
    """One machine. Its disk survives start() after cut_power(), as a crashed disk would."""

    def __init__(self, fleet, name, number, pool, memory, disk, processors):
        self.fleet = fleet
        self.name = name
        self.pool = pool
        self.address = f"10.9.0.{10 + number}"
        self.number = number
        self.memory = memory
        self.processors = processors
        self.folder = fleet.folder / name
        self.folder.mkdir()
        make_disk(self.folder / "disk", disk)
        self.console = self.folder / "console"
        self.process = None
        self.control = None
        self.boots = 0
        self.lock = threading.Lock()
        self.answers = {}
        self.begun = set()
        self.changed = threading.Condition(self.lock)
        self.next_number = 0

    # ---- power

    def start(self, wait=True):
        """Switches it on; the pool is made the first time and imported later."""
        control = self.folder / "control"
        control.unlink(missing_ok=True)
        command = self.fleet.inside() + [
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35",
            "-smp", str(self.processors), "-m", str(self.memory), "-nographic", "-nodefaults",
            "-chardev", f"file,id=console,path={self.console},append=on", "-serial", "chardev:console",
            "-chardev", f"socket,id=control,path={control},server=on,wait=on", "-serial", "chardev:control",
            "-kernel", str(self.fleet.image / "vmlinuz"), "-initrd", str(self.fleet.initramfs),
            "-drive", f"file={self.folder / 'disk'},if=none,id=disk,format=raw",
            "-device", "virtio-blk-pci,drive=disk",
            # norandmaps: code that lies where it lay before is translated once, which halves what a command costs.
            "-append", "console=ttyS0 panic=-1 nokaslr norandmaps mitigations=off no_timer_check quiet "
                       f"lab.name={self.name} lab.address={self.address}",
            "-no-reboot",
        ]  # fmt: skip
        if self.fleet.networked:
            tap = self.fleet.tap(self.number)
            command += [
                "-netdev", f"tap,id=net,ifname={tap},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:{self.number:02x}",
            ]  # fmt: skip
        with open(self.folder / "qemu", "ab") as complaints:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=complaints)
        if self.control:
            self.control.close()
        self.control = self._connect(control)
        with self.lock:
            self.ready = False
            self.answers = {}
            self.begun = set()
        threading.Thread(target=self._listen, args=(self.control,), daemon=True).start()
        if wait:
            self.wait_ready()

    def wait_ready(self):
        with self.changed:
            if not self.changed.wait_for(lambda: self.ready or self._ended(), BOOT_SECONDS) or not self.ready:
                raise LabError(f"{self.name} did not start:\n{self.last_words()}")
        self.boots += 1
        if self.boots == 1 and self.pool:
            self.run(f"zpool create -O compression=lz4 -O atime=off -m /{self.pool} {self.pool} /dev/vda1")

    def cut_power(self):
        """Nothing is written any more, nothing is said goodbye to."""
        self.process.kill()
        self.process.wait()

    def freeze(self):
        """A closed lid: the machine stands still and answers nothing; thaw() wakes it."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def reboot(self):
        """An orderly restart."""
        self.run_soon("sync; zpool export -a; poweroff -f")
        self.process.wait(timeout=120)
        self.start()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.thaw()
            self.cut_power()
        if self.control:
            self.control.close()

    # ---- the wire

    def cut_link(self):
        self.fleet.ip("link", "set", self.fleet.tap_name(self.number), "down")

    def restore_link(self):
        self.fleet.ip("link", "set", self.fleet.tap_name(self.number), "up")

    def shape(self, megabits):
        """The link's rate, each way, in megabits a second; None: as fast as it goes."""
        for device in (self.fleet.tap_name(self.number), self.fleet.uplink_name(self.number)):
            tc = [*self.fleet.inside(), "tc", "qdisc"]
            subprocess.run([*tc, "del", "dev", device, "root"], check=False, stderr=subprocess.DEVNULL)
            if megabits:
                limits = ["tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "200ms"]
                subprocess.run([*tc, "add", "dev", device, "root", *limits], check=True)

    # ---- scripts

    def run(self, script, timeout=PATIENCE, check=True):
        """Runs a shell script as root to its end; what it printed. Raises LabError if it fails."""
        return self.answer(self.run_soon(script), timeout, check, script)

    def status(self, script, timeout=PATIENCE):
        """Runs a script; its exit status and what it printed."""
        number = self.run_soon(script)
        output = self.answer(number, timeout, False, script)
        return self.last_status, output

    def run_soon(self, script):
        """Starts a script; answer() waits for it."""
        encoded = base64.b64encode(script.encode()).decode()
        if len(encoded) > LONGEST_SCRIPT:
            raise LabError("the script is too long: put it into the payload")
        with self.lock:
            self.next_number += 1
            number = self.next_number
            for seconds in SAY_AGAIN_AFTER:
                # The first line end closes what was lost of a line before.
                self.control.sendall(f"\n{number} {len(encoded)} {encoded}\n".encode())
                if self.changed.wait_for(lambda: number in self.begun or self._ended(), seconds):
                    return number
        raise LabError(f"{self.name} does not listen: {script}\n{self.last_words()}")

    def answer(self, number, timeout=PATIENCE, check=True, script="a script"):
        with self.changed:
            self.changed.wait_for(lambda: number in self.answers or self._ended(), timeout)
            if number not in self.answers:
                why = "the machine is off" if self._ended() else f"no answer in {timeout} s"
                raise LabError(f"{self.name}: {why}: {script}\n{self.last_words()}")
            status, output = self.answers.pop(number)
            self.last_status = status
        if check and status != 0:
            raise LabError(f"{self.name}: exit status {status}: {script}\n{output}")
        return output

    def wait_for(self, script, timeout=PATIENCE):
        """Until the script succeeds; it is tried again and again inside the machine."""
        return self.run(f"n=0; while ! ( {script} ); do n=$((n+1)); "
                        f"[ $n -gt {timeout * 2} ] && exit 1; sleep 0.5; done", timeout + 60)  # fmt: skip

    # ---- inside

    def _ended(self):
        return self.process.poll() is not None

    def last_words(self):
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        return "\n".join(text.splitlines()[-25:])

    def _connect(self, path):
        channel = socket.socket(socket.AF_UNIX)
        for _ in range(2000):
            try:
                channel.connect(str(path))
                return channel
            except OSError:
                if self._ended():
                    raise LabError(f"qemu ended: {(self.folder / 'qemu').read_text()}") from None
                threading.Event().wait(0.01)
        raise LabError("qemu did not open its control port")

    def _listen(self, channel):
        buffer = b""
        while True:
            try:
                got = channel.recv(65536)
            except OSError:
                got = b""
            if not got:
                break
            buffer += got
            while b"\n" in buffer:
                line, buffer = buffer.split(b"\n", 1)
                self._take(line.decode(errors="replace").split(" "))
        with self.changed:
            self.changed.notify_all()

    def _take(self, words):
        with self.changed:
            if words[0] == "ready":
                self.ready = True
            elif words[0] == "got" and words[-1].isdigit():
                self.begun.add(int(words[-1]))
            elif len(words) == 3 and words[0].isdigit() and words[1].isdigit():
                text = base64.b64decode(words[2] or "").decode(errors="replace")
                self.answers[int(words[0])] = (int(words[1]), text)
            self.changed.notify_all()


class Fleet:
    """Machines and the network between them, gone when it is closed."""

    def __init__(self, branch="2.1", payload=None, networked=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="zed-lab-"))
        self.machines = []
        self.closed = False
        atexit.register(self.close)  # unittest runs no cleanups after Ctrl-C
        self.networked = networked
        self.namespace = f"zed-lab-{os.getpid()}"
        self.taps = set()
        self.image = image(branch)
        self.initramfs = self.folder / "initramfs"
        (payload or Payload()).write(self.image / "machine.cpio.gz", self.initramfs)
        if networked:
            subprocess.run(["ip", "netns", "add", self.namespace], check=True)
            self.ip("link", "set", "lo", "up")
            self.ip("link", "add", "bridge", "type", "bridge")
            self.ip("addr", "add", "10.9.0.254/24", "dev", "bridge")
            self.ip("link", "set", "bridge", "up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.closed:
            return
        self.closed = True
        for machine in self.machines:
            machine.stop()
        if self.networked:
            subprocess.run(["ip", "netns", "del", self.namespace], check=False)
        if os.environ.get("ZED_LAB_KEEP"):
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def machine(self, name, pool=None, memory=768, disk=2048, processors=1, wait=True):
        """Boots a machine of that name with a pool of its own on a disk of so many megabytes."""
        made = Machine(self, name, len(self.machines), pool, memory, disk, processors)
        self.machines.append(made)
        made.start(wait)
        return made

    def inside(self):
        return ["ip", "netns", "exec", self.namespace] if self.networked else []

    def ip(self, *arguments):
        subprocess.run(["ip", "-n", self.namespace, *arguments], check=True)

    @staticmethod
    def tap_name(number):
        return f"tap{number}"

    @staticmethod
    def uplink_name(number):
        return f"up{number}"

    def tap(self, number):
        """The machine's end of its wire. Rates are of what leaves a device, so the way up has one too: a
        switch of its own with a pair of devices to the common one."""
        tap, own, up, down = self.tap_name(number), f"switch{number}", self.uplink_name(number), f"down{number}"
        if tap not in self.taps:
            self.ip("tuntap", "add", tap, "mode", "tap")
            self.ip("link", "add", own, "type", "bridge")
            self.ip("link", "add", up, "type", "veth", "peer", "name", down)
            for device, switch in ((tap, own), (up, own), (down, "bridge")):
                self.ip("link", "set", device, "master", switch)
            for device in (own, up, down, tap):
                self.ip("link", "set", device, "up")
            self.taps.add(tap)
        return tap
