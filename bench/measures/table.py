"""Rows of results, and how they are shown."""

from dataclasses import asdict, dataclass
from typing import Optional


@dataclass
class Row:
    """One number beside what it is held against. `met` is None where there is no budget."""

    measure: str
    what: str
    value: float
    unit: str
    peer: str
    peer_value: float
    budget: str = ""
    met: Optional[bool] = None

    @property
    def ratio(self):
        return self.value / self.peer_value if self.peer_value else float("inf")


def bound(measure, what, value, unit, budget, sign="<="):
    """A row that is held against its budget alone."""
    return Row(measure, what, value, unit, "bound of the budget", budget, f"{sign} {budget} {unit}", value <= budget)


def number(value):
    """Three digits that count: 0.0123, 1.23, 12.3, 123, 12,345."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    if value >= 1:
        return f"{value:.2f}"
    return f"{value:.3g}"


def verdict(row):
    if row.met is None:
        return ""
    return "met" if row.met else "NOT MET"


HEAD = ("measurement", "what", "ratio", "value", "against", "of", "budget", "")
RIGHT = {2, 3, 5}


def cells(row):
    return (row.measure, row.what, number(row.ratio), f"{number(row.value)} {row.unit}", row.peer,
            f"{number(row.peer_value)} {row.unit}", row.budget, verdict(row))


def head_of(machine, date):
    return (f"{date}  {machine['cores']} cores, {machine['cpu']}, {machine['memory_gib']:.0f} GiB, "
            f"{machine['fs']} on {machine['device']} ({machine['folder']}), {machine['os']}\n"
            f"load {machine['load_before']:.1f} before, {machine['load_after']:.1f} after")


def render(machine, date, rows):
    lines = [HEAD] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    text = [head_of(machine, date), ""]
    for line in lines:
        shown = [cell.rjust(widths[i]) if i in RIGHT else cell.ljust(widths[i]) for i, cell in enumerate(line)]
        text.append("  ".join(shown).rstrip())
    return "\n".join(text)


def as_json(machine, date, rows):
    return {"schema": 1, "date": date, "machine": machine, "rows": [dict(asdict(row), ratio=row.ratio) for row in rows]}
