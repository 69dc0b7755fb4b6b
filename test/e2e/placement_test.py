"""Where things go: models that nobody can hold, policies with filters, code that travels."""

import sys
import unittest

from support import NOT_FOUND, RUNNING, THREE, TWO, UNPLACEABLE, FleetCase, wait_for


class Unplaceable(FleetCase):
    nodes = THREE

    def test_a_model_that_nobody_can_hold(self):
        (self.files / "huge.bin").write_bytes(b"x")
        model = 'model :huge do\n  file "huge.bin"\n  requires vram: 500\nend'
        job = self.shell("job", "true", "model :huge")
        self.apply(model, job)
        done = self.fleet.zedctl("dispatch", "job", status=UNPLACEABLE)
        self.assert_says(done, "alpha", "beta", "gamma", "500")
        why = self.fleet.do("why", "job")
        for node, has in (("alpha", "24"), ("beta", "80"), ("gamma", "10")):
            line = next((line for line in why.stdout.splitlines() if node in line), "")
            self.assertIn(has, line, why.stdout)
            self.assertIn("500", line, why.stdout)

    def test_match_says_who_and_why_not(self):
        done = self.fleet.do("match", "--requires", "vram=20", "--prefer", "gpu=A100")
        self.assert_says(done, "beta", "alpha", "gamma")
        reply = self.fleet.ask("match", "--requires", "vram=48")
        self.assertEqual({match["node"] for match in reply["matches"]}, {"beta"})
        self.assertEqual({refusal["node"] for refusal in reply["refusals"]}, {"alpha", "gamma"})
        none = self.fleet.zedctl("match", "--requires", "gpus=9", status=UNPLACEABLE)
        self.assert_says(none, "alpha", "beta", "gamma")

    def test_a_job_that_must_wait_is_not_unplaceable(self):
        first = self.counter("first", allowed=1, body="requires vram: 60, gpus: 2")
        second = self.counter("second", epochs=1, body="requires vram: 60")
        self.apply(first, second)
        self.fleet.do("dispatch", "first")
        self.fleet.wait_state(RUNNING, "first")
        self.fleet.do("dispatch", "second")
        self.assertEqual(self.fleet.state("second"), "pending")
        self.assert_says(self.fleet.do("why", "second"), "first")
        self.fleet.do("stop", "first")
        self.fleet.wait_state("succeeded", "second")

    def test_after_waits_and_fallback_ranks(self):
        first = self.counter("first", epochs=1, allowed=0)
        second = self.shell("second", "true", 'after :first\nprefer gpu: "H100"\nfallback gpu: "RTX 3080"')
        self.apply(first, second)
        self.fleet.do("dispatch", "second")
        self.fleet.do("dispatch", "first")
        self.fleet.wait_state(RUNNING, "first")
        self.assertEqual(self.fleet.state("second"), "pending")
        self.allow(1, "first")
        self.assertEqual(self.fleet.wait_state("succeeded", "second")["node"], "gamma")


class Policies(FleetCase):
    nodes = THREE

    def test_a_filter_decides_what_travels(self):
        (self.files / "small.bin").write_bytes(b"s" * 1000)
        (self.files / "large.bin").write_bytes(b"l" * 30_000_000)
        self.apply(
            'model :small do\n  file "small.bin"\nend',
            'model :large do\n  file "large.bin"\nend',
            'replicate :models do\n  from :alpha\n  to [:beta, :gamma]\n  filter "size_gb < 0.01"\nend',
            'replicate :large do\n  from :alpha\n  to :beta\nend',
        )
        wanted = {"small": ["alpha", "beta", "gamma"], "large": ["alpha", "beta"]}
        wait_for("the copies", lambda: self.copies() == wanted)
        large = next(row for row in self.fleet.ask("models")["models"] if row["name"] == "large")
        self.assertIn("gamma", large["not_on"])
        self.assertIn("size_gb", large["not_on"]["gamma"])

    def copies(self):
        rows = self.fleet.ask("models")["models"]
        return {row["name"]: sorted(copy["node"] for copy in row["copies"] if copy["up_to_date"]) for row in rows}

    def test_a_model_reaches_the_node_before_its_job(self):
        (self.files / "m.bin").write_bytes(b"weights")
        self.apply('model :m do\n  file "m.bin"\n  requires vram: 60\nend',
                   self.shell("job", 'cat "$ZED_MODEL_DIR/m.bin"; echo; touch "$ZED_MODEL_DIR/x" 2>&1 || echo readonly',
                              "model :m"))
        self.fleet.do("dispatch", "job", "--wait")
        self.assertEqual(self.fleet.job()["node"], "beta")
        self.assertIn("weights", self.fleet.log())


class Code(FleetCase):
    nodes = TWO

    def test_a_folder_travels_without_what_zedignore_names(self):
        source = self.files / "src"
        (source / "deep/cache").mkdir(parents=True)
        (source / ".git").mkdir()
        for name in ("train.py", "secret.key", "deep/helper.py", "deep/cache/big.bin", "deep/notes.tmp", ".git/HEAD"):
            (source / name).write_text("")
        (source / ".zedignore").write_text("# not for others\n*.key\ncache/\ndeep/*.tmp\n")
        (source / "train.py").write_text("import os\nfor root, _, names in sorted(os.walk('.')):\n"
                                         "    for name in names:\n        print(os.path.join(root, name))\n")
        words = [sys.executable, "train.py"]
        self.apply(self.job_text("job", words, 'code "./src"\nprefer gpu: "A100"'))
        self.fleet.do("dispatch", "job")
        (source / "train.py").write_text("raise SystemExit('what was submitted counts')\n")
        self.fleet.wait_state("succeeded")
        self.assertEqual(self.fleet.job()["node"], "beta")
        files = {line for line in self.fleet.log() if line.startswith("./") and not line.startswith("./.zed/")}
        self.assertLessEqual({"./train.py", "./deep/helper.py"}, files)
        self.assertFalse({"./secret.key", "./deep/cache/big.bin", "./deep/notes.tmp", "./.git/HEAD"} & files, files)
        names = [row["name"] for row in self.fleet.ask("checkpoints", "job")["checkpoints"]]
        self.assertIn("submitted", names)

    def test_a_folder_that_is_not_there(self):
        self.apply(self.shell("job", "true", 'code "./nowhere"'))
        done = self.fleet.zedctl("dispatch", "job", "--wait", status=NOT_FOUND)
        self.assert_says(done, "nowhere")
        self.assertEqual(self.fleet.ask("jobs")["jobs"], [])


if __name__ == "__main__":
    unittest.main()
