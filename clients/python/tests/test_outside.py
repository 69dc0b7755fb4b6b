"""Outside Zed everything is a harmless no-op."""

import os
import subprocess
import sys
import unittest

import support
from support import JobTest, commit, epochs

SCRIPT = """
import sys, zed
seen = []
for epoch in zed.epochs(3, save=lambda name: sys.exit("save must not be called")):
    zed.log(step=epoch, epoch=epoch, loss=0.5, s=1, wrong="text")
    assert zed.step(epoch) is None
    assert zed.checkpoint(epoch=epoch, loss=0.5, paths=["nowhere"]) is None
    assert not zed.should_stop and not zed.should_checkpoint
    seen.append(epoch)
assert seen == [1, 2, 3], seen
assert list(zed.steps(2)) == [1, 2]
assert (zed.job, zed.job_dir, zed.attempt, zed.generation, zed.resume) == (None,) * 5
assert zed.model_dir is None and zed.data_dir is None and zed.skip_batches == 0
zed.leave()
"""


class OutsideZed(JobTest):
    def run_script(self, **environ):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ZED_")}
        package = os.path.join(os.path.dirname(support.__file__), os.pardir)
        return subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**clean, "PYTHONPATH": package, **environ},
            cwd=self.job_dir,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def test_nothing_happens_and_nothing_is_said(self):
        result = self.run_script()
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertEqual(os.listdir(self.job_dir), ["ckpt"])

    def test_other_variables_without_a_socket_do_not_count(self):
        result = self.run_script(ZED_JOB="digits", ZED_CHECKPOINT="epoch-2", ZED_CHECKPOINT_EPOCH="2")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_wrong_arguments_are_reported_outside_as_inside(self):
        outside = self.client(ZED_SOCKET="")
        with self.assertRaises(TypeError):
            commit(outside, epoch="fifteen")
        with self.assertRaises(TypeError):
            epochs(outside, 2.5)

    def test_unknown_attributes_are_errors(self):
        import zed

        with self.assertRaises(AttributeError):
            getattr(zed, "should_sotp")


class Environment(JobTest):
    def test_is_read(self):
        environment = self.client(
            ZED_CHECKPOINT="epoch-15.3",
            ZED_CHECKPOINT_EPOCH="15",
            ZED_CHECKPOINT_STEP="",
            ZED_MODEL_DIR="/m",
            ZED_DATA_DIR="/d",
            ZED_SKIP_BATCHES="200",
        ).environment
        self.assertEqual((environment.resume.name, environment.resume.epoch, environment.resume.step), ("epoch-15.3", 15, None))
        self.assertEqual((str(environment.model_dir), str(environment.data_dir)), ("/m", "/d"))
        self.assertEqual((environment.job, environment.attempt, environment.skip_batches), ("digits", 1, 200))

    def test_nonsense_counts_as_absent(self):
        environment = self.client(
            ZED_ATTEMPT="first", ZED_SKIP_BATCHES="-3", ZED_CHECKPOINT_EVERY="0 epochs", ZED_CHECKPOINT_EPOCH="²"
        ).environment
        self.assertEqual((environment.attempt, environment.skip_batches, environment.every), (None, 0, None))

    def test_checkpoint_every(self):
        from zed._environment import Every, parse_every

        self.assertEqual(parse_every("1 epoch"), Every("epoch", 1))
        self.assertEqual(parse_every("500 steps"), Every("step", 500))
        self.assertEqual(parse_every("10 minutes"), Every("minutes", 10))
        for wrong in ("", "epoch", "1.5 epochs", "-1 epochs", "1 parsec", "1 epochs or so"):
            self.assertIsNone(parse_every(wrong), wrong)


if __name__ == "__main__":
    unittest.main()
