"""What a person does every day, with zedctl: a command as a job, a look into it, copies by hand."""

import csv
import io
import json
import os
import signal
import subprocess
import unittest

from support import BINARIES, CLIENT, DONE, ERROR, NOT_FOUND, REFUSED, TWO, FleetCase, wait_for
from terminal import Terminal

TRAIN = """
import sys, time
import zed
rate = float(sys.argv[1])
zed.parameters(lr=rate)
for epoch in zed.epochs(int(sys.argv[2]), save=lambda name: save(name)):
    def save(name):
        path = zed.job_dir / f"{name}.txt"
        with zed.atomic_write(path, "w") as file:
            file.write(f"weights of {epoch} at {rate}\\n")
        return path
    zed.log(step=epoch, loss=1 / epoch, accuracy=epoch / 10)
    print("epoch", epoch, flush=True)
if len(sys.argv) > 3:
    time.sleep(600)
"""


class DailyCase(FleetCase):
    nodes = TWO

    def setUp(self):
        super().setUp()
        self.code = self.folder / "code"
        self.code.mkdir()
        (self.code / "train.py").write_text(TRAIN)
        (self.code / "notes.txt").write_text("not for the fleet")
        (self.code / ".zedignore").write_text("notes.txt\n")

    def run_job(self, *words, options=(), status=DONE):
        done = subprocess.run(
            [BINARIES / "zedctl", "run", "-e", f"PYTHONPATH={CLIENT}", "--checkpoint-every", "1 epoch", *options, "--",
             "python3", "train.py", *map(str, words)],
            env=self.fleet.environment, cwd=self.code, capture_output=True, text=True, timeout=90)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done


class ACommandAsAJob(DailyCase):
    def test_it_is_followed_to_its_end_and_what_it_left_can_be_looked_at(self):
        done = self.run_job("0.1", 3)
        self.assertEqual(done.stdout.splitlines()[:3], ["epoch 1", "epoch 2", "epoch 3"])
        self.assertIn("train has succeeded", done.stderr)
        self.run_job("0.2", 3)  # another job of the same script
        self.assertEqual([job["name"] for job in self.fleet.ask("jobs", "--all")["jobs"]], ["train", "train-2"])

        # Files, live and in a checkpoint; what .zedignore names did not travel.
        names = [entry["path"] for entry in self.fleet.ask("files", "train@epoch-2")["files"]]
        self.assertIn("train.py", names)
        self.assertNotIn("notes.txt", names)
        self.assertNotIn("epoch-3.txt", names)
        self.assertEqual(self.fleet.do("cp", "train@epoch-2:epoch-2.txt", "-").stdout, "weights of 2 at 0.1\n")
        self.fleet.do("cp", "train:.", self.folder / "out")
        self.assertEqual((self.folder / "out/train.py").read_text(), TRAIN)
        self.fleet.zedctl("cp", "train@epoch-9:x", "-", status=NOT_FOUND)

        # Metrics, as a curve and as rows.
        curve = self.fleet.do("metrics", "train", "loss")
        self.assert_says(curve, "loss 0.3333 at 3", "^ a checkpoint")
        rows = list(csv.reader(io.StringIO(self.fleet.do("metrics", "train", "loss", "-o", "csv").stdout)))
        self.assertEqual(rows[0], ["metric", "step", "value"])
        self.assertEqual(len(rows), 4)

        # What differs between two checkpoints, and between two jobs.
        same = self.fleet.ask("diff", "train@epoch-1", "@epoch-3")
        self.assertEqual({fact["name"]: (fact["a"], fact["b"]) for fact in same["facts"]}["epoch"], ("1", "3"))
        self.assertNotIn("lr", [fact["name"] for fact in same["facts"]])
        other = self.fleet.do("diff", "train@epoch-3", "train-2@epoch-3")
        self.assert_says(other, "parameter lr 0.1 0.2", "-weights of 3 at 0.1", "+weights of 3 at 0.2")

        # Copies by hand, and fewer checkpoints.
        (home,) = {job["node"] for job in self.fleet.ask("jobs", "--all")["jobs"] if job["name"] == "train"}
        target = "beta" if home == "alpha" else "alpha"
        self.fleet.do("replicate", "train", "--to", target)
        rows = {row["dataset"]: row for row in self.fleet.ask("datasets", "jobs")["datasets"]}
        self.assertEqual({copy["node"] for copy in rows["jobs/train"]["copies"]}, {"alpha", "beta"})
        self.assert_says(self.fleet.zedctl("replicate", "train", "--to", home, status=DONE), "has all of")
        self.fleet.zedctl("prune", "train", "--keep", "last=1", status=REFUSED)  # nobody said yes
        self.assertEqual(len(self.fleet.current("train")), 3)
        wait_for("copies to be done", lambda: not self.fleet.ask("transfers")["transfers"])
        self.fleet.do("prune", "train", "--keep", "last=1", "--yes")
        wait_for("two checkpoints to be gone", lambda: self.fleet.current("train") == ["epoch-3"])

    def test_its_status_is_the_jobs(self):
        (self.code / "train.py").write_text("import sys; print('no'); sys.exit(7)")
        done = self.run_job(status=ERROR)
        self.assertEqual(done.stdout.splitlines()[0], "no")
        self.assertIn("exit code 7", done.stdout)
        self.assertIn("train has failed", done.stderr)

    def test_ctrl_c_leaves_it_running(self):
        child = subprocess.Popen(
            [BINARIES / "zedctl", "run", "-e", f"PYTHONPATH={CLIENT}", "--", "python3", "train.py", "0.1", "2", "stay"],
            env=self.fleet.environment, cwd=self.code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.fleet.wait_line("epoch 2", "train")
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
        self.assertEqual(child.returncode, 130)
        self.assertIn("zedctl logs -f train", errors)
        self.assertEqual(self.fleet.state("train"), "running")


class BesideAJob(DailyCase):
    def setUp(self):
        super().setUp()
        self.run_job("0.1", 1, "stay", options=["-d"])
        self.fleet.wait_line("epoch 1", "train")

    def test_a_command_runs_in_its_folder_with_its_environment(self):
        done = self.fleet.zedctl("exec", "train", "--", "sh", "-c", "cat epoch-1.txt; echo $ZED_JOB; exit 3", status=3)
        self.assertEqual(done.stdout, "weights of 1 at 0.1\ntrain\n")
        done = self.fleet.do("exec", "train", "--", "tr", "a-z", "A-Z", stdin="some input\n")
        self.assertEqual(done.stdout, "SOME INPUT\n")
        self.fleet.do("exec", "train", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")
        missing = self.fleet.zedctl("exec", "train", "--", "no-such-program", status=NOT_FOUND)
        self.assert_says(missing, "no-such-program")

    def test_a_shell_at_a_terminal(self):
        with Terminal([BINARIES / "zedctl", "exec", "train", "--", "sh"], self.fleet.environment) as terminal:
            terminal.type("tty; echo sum $((40+2))\n")
            self.assertIn("/dev/pts/", terminal.says("sum 42"))
            terminal.type("exit 5\n")
            self.assertEqual(terminal.child.wait(20), 5)

    def test_it_ends_with_the_job(self):
        child = subprocess.Popen([BINARIES / "zedctl", "exec", "train", "--", "sleep", "600"],
                                 env=self.fleet.environment, stdin=subprocess.DEVNULL)
        wait_for("the command to run", lambda: len(self.fleet.job_processes("train")) > 1)
        self.fleet.do("cancel", "train")
        self.assertNotEqual(child.wait(30), 0)
        wait_for("its processes to be gone", lambda: not self.fleet.job_processes("train"))
        self.fleet.zedctl("exec", "train", "--", "true", status=REFUSED)


class Looking(FleetCase):
    nodes = TWO

    def test_every_list_has_three_forms(self):
        for command in ("gpus", "datasets", "nodes", "models", "jobs", "transfers", "events"):
            self.fleet.do(command)
            self.fleet.do(command, "-o", "wide")
            self.fleet.do(command, "-o", "csv")
            self.assertEqual(json.loads(self.fleet.do(command, "-o", "json").stdout)["schema"], 1)
        gpus = list(csv.DictReader(io.StringIO(self.fleet.do("gpus", "-o", "csv").stdout)))
        self.assertEqual(sorted(row["node"] for row in gpus), ["alpha", "beta", "beta"])
        self.assert_says(self.fleet.do("top"), "NODES", "GPUS", "JOBS")

    def test_the_manual_page(self):
        page = self.fleet.do("man").stdout
        self.assertTrue(page.startswith(".TH ZEDCTL 1"), page[:40])


class Completing(FleetCase):
    """Real shells, with what a person types before the tabulator and what the shell makes of it."""

    nodes = TWO
    TYPED = {
        "zedctl rollb": "zedctl rollback ",
        "zedctl token cr": "zedctl token create ",
        "zedctl jobs --wa": "zedctl jobs --watch ",
        "zedctl cordon al": "zedctl cordon alpha ",
        "zedctl resume train --on be": "zedctl resume train --on beta ",
    }

    def setUp(self):
        super().setUp()
        path = f"{BINARIES}:{os.environ['PATH']}"
        self.environment = dict(self.fleet.environment, PATH=path, HOME=str(self.folder), TERM="dumb", PS1="> ")

    def completes(self, words, setup):
        with Terminal(words, self.environment) as terminal:
            terminal.type(f"{setup}; echo rea''dy\n")
            terminal.says("ready")
            for typed, completed in self.TYPED.items():
                terminal.type(typed + "\t")
                terminal.says(completed)
                terminal.type("\x15")  # the line is taken back

    def test_bash(self):
        self.completes(["bash", "--norc", "--noprofile", "-i"],
                       "bind 'set enable-bracketed-paste off'; source <(zedctl completion bash)")  # fmt: skip

    def test_zsh(self):
        self.completes(["zsh", "-f", "-i"],
                       "unset zle_bracketed_paste; autoload -Uz compinit; compinit -u; "
                       "source <(zedctl completion zsh)")  # fmt: skip

    def test_fish(self):
        for typed, completed in self.TYPED.items():
            asked = f"zedctl completion fish | source; complete -C '{typed}'"
            done = subprocess.run(["fish", "--no-config", "-c", asked], env=self.environment, capture_output=True,
                                  text=True, timeout=60)  # fmt: skip
            offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
            self.assertEqual(offered, {completed.split()[-1]}, done.stderr)


if __name__ == "__main__":
    unittest.main()
