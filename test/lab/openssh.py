"""OpenSSH for lab machines: each can be reached by ssh as root from each other one.

OpenSSH's server comes from Debian's archive into build/lab, because the machine that builds has none.
"""

import pathlib
import shutil
import subprocess
import tempfile

from fleet import ROOT, libraries

KEEP = ROOT / "build" / "lab" / "openssh"
ADDRESSES = [f"10.9.0.{10 + number}" for number in range(8)]


def unpacked(keep, packages, complete):
    """The folder `keep` with those Debian packages in it, fetched where `complete` is not in it yet."""
    if not (keep / complete).exists():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["apt-get", "download", "-q", *packages], cwd=folder, check=True)
            for package in pathlib.Path(folder).glob("*.deb"):
                subprocess.run(["dpkg", "-x", package, keep], check=True)
    return keep


def with_ssh(made, folder):
    """Adds both ends of ssh, and a pair of keys made in `folder`, to what the machines get."""
    there = unpacked(KEEP, ["openssh-server", "libwrap0"], "usr/sbin/sshd")
    for name in ("client", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    made.program(shutil.which("ssh"))
    made.program(there / "usr" / "sbin" / "sshd")
    for library in there.rglob("libwrap.so.0*"):
        made.add(f"/lib/x86_64-linux-gnu/{library.name}", library.resolve())
        for needed in libraries(library):
            made.add(needed, pathlib.Path(needed).resolve())
    for name in ("client", "client.pub", "host"):
        made.add(f"/keys/{name}", folder / name)
    host_key = (folder / "host.pub").read_text()
    made.add("/keys/known", "".join(f"{address} {host_key}" for address in ADDRESSES))
    made.add(
        "/setup",
        "mkdir -p /root/.ssh /run/sshd /usr/bin; chmod 700 /root /root/.ssh; cp /keys/known /root/.ssh/known_hosts;"
        "cp /keys/client /root/.ssh/id_ed25519; cp /keys/client.pub /root/.ssh/authorized_keys;"
        "chmod 600 /root/.ssh/* /keys/*; chown -R 0:0 /root /keys; cp /zed/bin/ssh /bin/ssh;"
        "echo 'sshd:x:74:74::/run/sshd:/bin/false' >> /etc/passwd; echo 'sshd:x:74:' >> /etc/group;"
        "echo 10.9.0.11 workstation >> /etc/hosts\n",
    )
    return made


def start_sshd(machine):
    machine.run(
        "setsid /zed/bin/sshd -f /dev/null -h /keys/host -o UsePAM=no -o PidFile=/run/sshd.pid"
        " -o StrictModes=no -E /run/sshd.log; sleep 1; cat /run/sshd.log"
    )
    machine.wait_for("grep -qi :0016 /proc/net/tcp")
