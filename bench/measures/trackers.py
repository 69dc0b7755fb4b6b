"""What one call that logs metrics costs the training loop: zed.log against mlflow and wandb, offline, each in its own
process of the same Python."""

import json
import os
import subprocess
from pathlib import Path

from .machine import Skipped
from .table import Row

PYTHON = "python-trackers/bin/python"
BUDGET_US = 10
LOOP = Path(__file__).resolve().parent.parent / "log_loop.py"
CLIENT = Path(__file__).resolve().parents[2] / "clients/python"


def cost_of(bench, python, tracker, calls):
    """Microseconds a call: the median, all of the loop divided by its calls, the last flush included, and the CPU of
    that."""
    folder = bench.new_folder(f"log-{tracker}")
    env = dict(os.environ, PYTHONPATH=str(CLIENT), ZED_JOB_DIR=str(folder), HOME=str(folder), WANDB_MODE="offline",
               WANDB_SILENT="true", WANDB_DIR=str(folder), MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    env["ZED_SOCKET"] = str(folder / "no-agent")  # in a job; logging asks nobody
    done = subprocess.run([python, LOOP, tracker, str(calls), str(folder)], env=env, cwd=folder, capture_output=True,
                          text=True, timeout=600)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def measure(bench):
    """zed.log of four numbers a step, a call, against mlflow's (SQLite) and wandb's (offline)."""
    python = bench.build.parent / PYTHON
    if not python.exists():
        raise Skipped("mlflow and wandb are not installed: ./dev bench --peers does that")
    ours, trouble = cost_of(bench, python, "zed", bench.count(20_000, 200))
    if ours is None:
        raise OSError(trouble)
    rows = []
    for tracker, calls in (("wandb", 5_000), ("mlflow", 200)):
        theirs, trouble = cost_of(bench, python, tracker, bench.count(calls, 20))
        if theirs is None:
            bench.skips.append(f"{tracker} does not run here: {trouble}")
            continue
        name = f"{tracker} {theirs['version']}"
        rows.append(Row("trackers", "zed.log, p50 of a call", ours["p50_us"], "us", name, theirs["p50_us"]))
        rows.append(Row("trackers", "zed.log, a call, amortised", ours["mean_us"], "us", name, theirs["mean_us"]))
        # Of the process that trains; wandb does its work in another.
        rows.append(Row("trackers", "zed.log, CPU of a call, all threads", ours["cpu_us"], "us", name, theirs["cpu_us"]))
    rows.append(Row("trackers", "zed.log, a call, amortised", ours["mean_us"], "us", "bound of the budget", BUDGET_US,
                    f"<= {BUDGET_US} us", ours["mean_us"] <= BUDGET_US))
    rows.append(Row("trackers", "zed.log, CPU of a call, all threads", ours["cpu_us"], "us", "bound of the budget",
                    BUDGET_US))
    return rows
