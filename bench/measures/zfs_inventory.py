"""What very many snapshots cost an agent that starts, and one that looks for changes, against `zfs list`."""

from .table import Row
from .zfs_lab import PATIENCE, machines, seconds_of, wait_for

COLUMNS = "name,guid,createtxg"
WHOLE = COLUMNS + ",creation,used,referenced,com.zed:id"
# One transaction group a round: `zfs snapshot -r` looks at every dataset and its snapshots first.
ROUND = """
args = ...
argv = args["argv"]
zfs.sync.snapshot("nvme/models/many@s" .. argv[1])
for i = 1, argv[2] - 1 do zfs.sync.snapshot("nvme/models/many/" .. i .. "@s" .. argv[1]) end
"""


def measure(bench):
    """An agent's first look at 10,000 snapshots (--smoke: 1,000), and how soon it notices one more, against `zfs list`."""
    # OpenZFS takes one snapshot of a dataset in a transaction group, of many datasets at once.
    datasets, each = bench.count(100, 40), bench.count(100, 25)
    with machines("server") as lab:
        lab.model("many")
        lab.zed.kill_agent("server")  # it would follow each of them
        lab.server.run(
            f"cat > /run/round.lua << 'END'{ROUND}END\n"
            f"i=1; while [ $i -lt {datasets} ]; do zfs create -u nvme/models/many/$i; i=$((i + 1)); done; i=0;"
            f"while [ $i -lt {each} ]; do zfs program nvme /run/round.lua $i {datasets} > /dev/null || exit 1;"
            f"i=$((i + 1)); done", PATIENCE)  # fmt: skip
        count = int(lab.server.run("zfs list -H -t snapshot -o name -r nvme | wc -l", PATIENCE))
        names = seconds_of(lambda: listing(lab, COLUMNS))
        whole = seconds_of(lambda: listing(lab, WHOLE))
        first = seconds_of(lambda: start_again(lab))
        lab.wait_up({"server"})
        wait_for("all to be known", lambda: lab.is_known("models/many", f"s{each - 1}"), PATIENCE)
        noticed = seconds_of(lambda: take_one_more(lab))
        what = f"first look at {count:,} snapshots"
        return [Row("zfs-inventory", what, first, "s", "zfs list of the same columns", whole),
                Row("zfs-inventory", what, first, "s", "zfs list of names and guids", names),
                Row("zfs-inventory", "one more noticed", noticed, "s", "zfs list of names and guids", names)]


def listing(lab, columns):
    lab.server.run(f"zfs list -Hp -t snapshot -o {columns} -r nvme > /run/listing", PATIENCE)


def start_again(lab):
    lab.zed.start_agent(lab.server)
    lab.server.wait_for("grep -q 'is ready' /run/server.log", PATIENCE)


def take_one_more(lab):
    lab.server.run("zfs snapshot nvme/models/many@one-more")
    wait_for("the snapshot to be noticed", lambda: lab.is_known("models/many", "one-more"), pause=0.1)
