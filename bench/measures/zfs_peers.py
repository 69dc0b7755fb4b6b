"""What replication on OpenZFS is held against: a bare pipe, and syncoid of Debian's sanoid package."""

import shutil
import subprocess
from pathlib import Path

from .zfs_lab import LAB, PATIENCE, seconds_of
from openssh import unpacked, with_ssh  # of test/lab, which zfs_lab has found

PORT = 9000
KEEP = LAB.parents[1] / "build" / "lab" / "syncoid"
PACKAGES = ["sanoid", "libconfig-inifiles-perl", "libcapture-tiny-perl"]
# Prints the files that perl loads for syncoid, its shared objects included.
LOADED = """use Data::Dumper; use Getopt::Long qw(:config auto_version auto_help); use Pod::Usage;
use Time::Local; use Sys::Hostname; use Capture::Tiny ":all"; capture { system("true") };
print "$_\\n" for values %INC, @DynaLoader::dl_shared_objects"""


def with_syncoid(made, folder):
    """Adds syncoid, what perl loads for it, and ssh with keys made in `folder`, to what the machines get."""
    made = with_ssh(made, Path(folder))
    there = unpacked(KEEP, PACKAGES, "usr/sbin/syncoid")
    for program in ("perl", "ps"):
        made.program(shutil.which(program))
    made.add("/zed/bin/syncoid", there / "usr/sbin/syncoid")
    modules = there / "usr/share/perl5"
    ask = ["perl", f"-I{modules}", "-e", LOADED]
    for path in map(Path, subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()):
        ours = path.is_relative_to(modules)
        made.add(f"/zed/perl/{path.relative_to(modules)}" if ours else str(path), path)
    return made


def pipe(source, send, target, dataset):
    """Seconds of `zfs send | zfs recv` through a bare socket. `send`: what follows the flags."""
    target.run_soon(f"nc -l -p {PORT} -e zfs recv -u {target.pool}/{dataset}")
    target.wait_for(f"grep -qi :{PORT:04X} /proc/net/tcp /proc/net/tcp6")
    # nc ends when the other side has closed, which is when the receive is done.
    return seconds_of(lambda: source.run(f"zfs send -L -e -c {send} | nc {target.address} {PORT}", PATIENCE))


def syncoid(source, dataset, target, place):
    """Seconds of a run of syncoid, by ssh."""
    command = ("perl -I/zed/perl /zed/bin/syncoid --no-sync-snap --no-privilege-elevation"
               f" {dataset} root@{target.address}:{place}")  # fmt: skip
    or_says_why = "> /run/syncoid.log 2>&1 || (cat /run/syncoid.log; false)"
    return seconds_of(lambda: source.run(f"{command} {or_says_why}", PATIENCE))
