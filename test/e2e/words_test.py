"""What a person may type wrong, and what the answer is: message, exit status, JSON."""

import json
import unittest

from support import DONE, ERROR, NOT_FOUND, ONE, PENDING_CHANGES, REFUSED, RUNNING, TWO, UNPLACEABLE, FleetCase

BROKEN = {
    "an unknown verb": (
        "deploy :x do\n  modle :llama do\n  end\nend\n",
        ["2:3", "unknown verb", "did you mean `model`"],
    ),
    "two jobs of one name": (
        'deploy :x do\n  job :a do\n    run "true"\n  end\n  job :a do\n    run "false"\n  end\nend\n',
        ["5:", "a"],
    ),
    "a dataset that climbs out": (
        'deploy :x do\n  job :a do\n    dataset "jobs/../../../etc"\n    run "true"\n  end\nend\n',
        ["3:", "jobs/../../../etc"],
    ),
    "an absolute dataset": ('deploy :x do\n  model :a do\n    dataset "/etc"\n  end\nend\n', ["3:", "/etc"]),
    "a program in it": ("deploy :x do\n  job :a do\n    run System.cmd(\"id\", [])\n  end\nend\n", ["3:"]),
    "an end that is missing": ("deploy :x do\n  job :a do\n    run \"true\"\n", ["end"]),
    "binary": ("\x00\x01\x7fELF\n", [":1:"]),
}

UNUSUAL = '''
# No defmodule, parentheses, `do:`, semicolons, quoted names, a heredoc-free file with odd layout
deploy(:"odd-fleet", [pool: "tank"]) do
  node(:alpha, do: (gpu("RTX 4090", [vram: 24]); dataset("models"); dataset("jobs")))
  node :"zed@beta" do gpu "A100", vram: "80GB", count: 2 end


  job(:"odd-job") do run(["/bin/sh", "-c", "echo \\"a  b\\"; exit 0"]); requires(vram: 8, gpus: 1)
    retries 0; keep(last: 2, best: 1, metric: "loss", mode: :min) end # the end
end
'''


class CheckAndApply(FleetCase):
    nodes = ONE

    def test_a_broken_file_is_refused_by_check_and_apply_and_changes_nothing(self):
        before = self.fleet.ask("status")["revision"]
        for what, (text, parts) in BROKEN.items():
            with self.subTest(what):
                path = self.files / "broken.exs"
                path.write_text(text)
                self.assert_says(self.fleet.zedctl("check", path, status=ERROR), *parts)
                self.assert_says(self.fleet.zedctl("apply", path, "--yes", status=ERROR), *parts)
                self.fleet.zedctl("plan", path, status=ERROR)
                checked = json.loads(self.fleet.zedctl("check", path, "--json", status=ERROR).stdout)
                self.assertEqual((checked["schema"], checked["ok"]), (1, False))
                self.assertTrue(checked["diagnostics"])
        self.assertEqual(self.fleet.ask("status")["revision"], before)

    def test_a_file_that_is_not_there(self):
        done = self.fleet.zedctl("check", self.files / "nowhere.exs")
        self.assertNotEqual(done.returncode, DONE)
        self.assert_says(done, "nowhere.exs")

    def test_a_file_with_unusual_but_valid_syntax(self):
        path = self.files / "odd.exs"
        path.write_text(UNUSUAL)
        self.fleet.do("check", path)
        self.fleet.zedctl("plan", path, status=PENDING_CHANGES)
        self.fleet.do("apply", path, "--yes")
        self.fleet.do("plan", path)
        self.fleet.do("dispatch", "odd_job", "--wait")
        self.assertEqual(self.fleet.log("odd-job"), ["a  b", "zed: succeeded"])
        laid_out = self.fleet.do("fmt", path).stdout
        path.write_text(laid_out)
        self.fleet.do("fmt", path, "--check")
        self.fleet.do("plan", path)

    def test_a_node_that_is_not_there_yet_is_only_a_warning(self):
        path = self.files / "cluster.exs"
        path.write_text("deploy :x do\n  replicate :models do\n    from :nowhere\n    to :alpha\n  end\nend\n")
        self.assert_says(self.fleet.do("check", path), "warning", "nowhere")
        self.fleet.do("apply", path, "--yes")

    def test_apply_of_what_was_shown_only(self):
        """A file that changes nothing is no change; one that does is pending until applied."""
        job = self.counter()
        self.apply(job)
        path = self.files / "cluster.exs"
        self.fleet.do("plan", path)
        path.write_text(path.read_text().replace("--epochs", "--epoches"))
        self.fleet.zedctl("plan", path, status=PENDING_CHANGES)


class WrongNames(FleetCase):
    nodes = ONE

    def test_each_command_says_what_it_does_not_know(self):
        job = self.counter(allowed=1)
        self.dispatch(job)
        self.fleet.wait_checkpoint("epoch-1")
        for words in (
            ["why", "jbo"], ["logs", "jbo"], ["checkpoints", "jbo"], ["stop", "jbo"], ["cancel", "jbo"],
            ["checkpoint", "jbo"], ["dispatch", "jbo"], ["rollback", "jbo@epoch-1", "--yes"],
            ["rollback", "job@epoch-99", "--yes"], ["resume", "jbo"], ["cordon", "alhpa"], ["drain", "alhpa"],
            ["uncordon", "alhpa"], ["dev", "kill", "alhpa"], ["resume", "job", "--on", "alhpa"],
        ):  # fmt: skip
            with self.subTest(" ".join(words)):
                self.fleet.zedctl(*words, status=NOT_FOUND)
                said = json.loads(self.fleet.zedctl(*words, "--json", status=NOT_FOUND).stdout)
                self.assertEqual((said["schema"], said["error"]["code"]), (1, "not_found"))

    def test_wrong_usage(self):
        for words in (["frobnicate"], ["dispatch"], ["rollback", "job"], ["match"], ["match", "--requires", "vrm=4"]):
            with self.subTest(" ".join(words)):
                self.fleet.zedctl(*words, status=ERROR)

    def test_a_name_that_climbs_out(self):
        for words in (["why", "../../etc/passwd"], ["rollback", "../x@epoch-1", "--yes"], ["logs", "a/../../b"],
                      ["stop", "\x1b[31mred"]):  # fmt: skip
            with self.subTest(" ".join(words)):
                done = self.fleet.zedctl(*words)
                self.assertIn(done.returncode, (ERROR, NOT_FOUND))
                self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_two_dispatches_of_one_job(self):
        self.dispatch(self.counter(allowed=1))
        self.fleet.wait_state(RUNNING)
        done = self.fleet.zedctl("dispatch", "job")
        self.assertEqual(done.returncode, REFUSED, done.stdout + done.stderr)


class NoController(FleetCase):
    starts_up = False

    def test_says_so(self):
        for words in (["jobs"], ["status"], ["dispatch", "x"]):
            done = self.fleet.zedctl(*words, "--socket", self.folder / "nowhere.sock", status=ERROR)
            self.assert_says(done, "nowhere.sock")
        self.assertNotEqual(self.fleet.zedctl("dev", "down").returncode, DONE)


class Json(FleetCase):
    """Every command answers one JSON document a line with "schema": 1."""

    nodes = TWO

    def test_schema_on_every_command(self):
        (self.files / "m.bin").write_bytes(b"weights")
        cluster = self.files / "cluster.exs"
        self.apply(self.counter(epochs=3, allowed=2), self.counter("other"))
        for status, words in (
            (DONE, ["version"]), (DONE, ["check", cluster]), (DONE, ["fmt", cluster]), (DONE, ["plan", cluster]),
            (DONE, ["apply", cluster, "--yes"]), (DONE, ["status"]), (DONE, ["nodes"]),
            (DONE, ["model", "add", self.files / "m.bin", "--name", "m", "--version", "1"]), (DONE, ["models"]),
            (DONE, ["match", "--requires", "vram=20"]), (UNPLACEABLE, ["match", "--requires", "vram=2000"]),
            (DONE, ["dispatch", "job"]), (DONE, ["jobs"]), (DONE, ["jobs", "--all"]), (DONE, ["why", "job"]),
            (DONE, ["transfers"]), (DONE, ["events"]), (DONE, ["dev", "status"]),
        ):  # fmt: skip
            self.assert_json(status, *words)
        self.fleet.wait_checkpoint("epoch-2")
        for status, words in (
            (DONE, ["logs", "job"]), (DONE, ["checkpoints", "job"]), (DONE, ["rollback", "job@epoch-1", "--dry-run"]),
            (DONE, ["rollback", "job@epoch-1", "--hold", "--yes"]),
        ):  # fmt: skip
            self.assert_json(status, *words)
        self.fleet.wait_state("stopped")
        for status, words in (
            (DONE, ["resume", "job"]), (DONE, ["stop", "job"]), (DONE, ["cancel", "job"]), (DONE, ["cordon", "alpha"]),
            (DONE, ["drain", "alpha"]), (DONE, ["uncordon", "alpha"]), (NOT_FOUND, ["stop", "other"]),
        ):  # fmt: skip
            self.assert_json(status, *words)
        self.allow(5, "other")
        self.assert_json(DONE, "dispatch", "other", "--wait")

    def assert_json(self, status, *words):
        with self.subTest(" ".join(map(str, words))):
            done = self.fleet.zedctl(*words, "--json", status=status)
            lines = done.stdout.splitlines()
            self.assertTrue(lines, "nothing was printed")
            for line in lines:
                self.assertEqual(json.loads(line)["schema"], 1)


if __name__ == "__main__":
    unittest.main()
