"""One model to three machines with OpenZFS: passed on by each, against one after another."""

from .table import Row
from .zfs_lab import PATIENCE, machines, seconds_of, wait_for

POLICY = """deploy :lab do
  model :three do
    dataset "models/three"
  end
  replicate :three do
    from :server
    to [:workstation, :macbook, :laptop]
  end
end
"""


def measure(_bench):
    """A model to three machines by a policy, which makes a chain, against one target after another."""
    with machines("server", "workstation", "macbook", "laptop") as lab:
        targets = (lab.workstation, lab.macbook, lab.laptop)
        lab.model("one")
        lab.model("three")
        lab.shape()
        one = lab.replicate("one", targets[0])
        in_turn = one + sum(lab.replicate("one", target) for target in targets[1:])
        at_once = seconds_of(lambda: by_policy(lab))
        return [Row("zfs-fan", "3 targets by a policy", at_once, "s", "one after another", in_turn),
                Row("zfs-fan", "3 targets by a policy", at_once, "s", "one target", one)]


def by_policy(lab):
    lab.zed.apply(POLICY)

    def is_everywhere():
        rows = [row for row in lab.zed.ask("models")["models"] if row["name"] == "three"]
        return len([copy for row in rows for copy in row["copies"] if copy["up_to_date"]]) == 4

    wait_for("three to be everywhere", is_everywhere, PATIENCE)
