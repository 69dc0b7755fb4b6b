"""The watcher for scripts that know nothing of Zed; its clock is an argument."""

import json
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

from support import JobTest

import zed  # isort: skip: support knows where it is
from zed import watch


class WatchTest(JobTest):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.job_dir)
        self.stamp = 1_000_000.0

    def put(self, path, text=""):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.touch(target)

    def touch(self, target):
        """Each write has a time stamp of its own, whatever the file system's clock is."""
        self.stamp += 1
        for one in [target, *target.parents]:
            if self.folder not in one.parents:
                break
            os.utime(one, (self.stamp, self.stamp))

    def hugging_face(self, step, epoch=1.0, loss=0.5):
        self.put(f"run/checkpoint-{step}/model.safetensors", "w")
        history = [{"loss": loss, "step": step, "epoch": epoch}]
        state = {"global_step": step, "epoch": epoch, "log_history": history}
        self.put(f"run/checkpoint-{step}/trainer_state.json", json.dumps(state))

    def test_a_checkpoint_is_ready_once_it_is_marked_and_quiet(self):
        watcher = watch.Watcher(self.folder, 0.0)
        self.put("run/checkpoint-500/model.safetensors", "w")
        self.assertEqual(watcher.tick(1.0), [])
        self.assertEqual(watcher.tick(100.0), [], "the mark is not there")
        self.hugging_face(500, epoch=2.0)
        self.assertEqual(watcher.tick(101.0), [])
        self.put("run/checkpoint-500/late.bin", "x")
        self.assertEqual(watcher.tick(105.0), [])
        self.assertEqual(watcher.tick(109.0), [], "it changed at 105")
        ready = watcher.tick(110.0)
        self.assertEqual([(found.step, found.epoch, found.metrics) for found in ready], [(500, 2, (("loss", 0.5),))])
        self.assertEqual(watcher.tick(200.0), [], "once")

    def test_what_was_there_before_is_not_new(self):
        self.hugging_face(500)
        watcher = watch.Watcher(self.folder, 0.0)
        watcher.tick(1.0)
        self.assertEqual(watcher.tick(100.0), [])
        self.hugging_face(500, loss=0.1)
        watcher.tick(101.0)
        self.assertEqual(len(watcher.tick(107.0)), 1, "written again")

    def test_the_marks_of_other_frameworks(self):
        watcher = watch.Watcher(self.folder, 0.0)
        self.put("dcp/step_30/__0_0.distcp")
        self.put("dcp/step_30/.metadata")
        self.put("orbax/20/commit_success.txt")
        self.put("megatron/iter_0000010/mp_rank_00/model.pt")
        self.put("megatron/latest_checkpointed_iteration.txt", "10")
        watcher.tick(1.0)
        self.assertEqual([found.step for found in watcher.tick(10.0)], [10, 20, 30])

    def test_nonsense_and_links_are_passed_over(self):
        watcher = watch.Watcher(self.folder, 0.0)
        self.put("run/checkpoint-7/trainer_state.json", "[1, 2")
        self.put("megatron/latest_checkpointed_iteration.txt", "release")
        os.symlink("/", self.folder / "root")
        watcher.tick(1.0)
        self.assertEqual(watcher.tick(10.0), [])

    def test_a_script_that_ends_has_its_last_checkpoint_committed(self):
        agent = self.agent()
        script = (
            "import json, os, sys; d = sys.argv[1] + '/run/checkpoint-3'; os.makedirs(d);"
            "json.dump({'global_step': 3, 'epoch': 1.0}, open(d + '/trainer_state.json', 'w')); sys.exit(4)"
        )
        with mock.patch.object(zed, "_client", self.client()):
            self.assertEqual(watch.run([sys.executable, "-c", script, self.job_dir]), 4)
        self.assertEqual([asked["step"] for asked in agent.received("checkpoint", 1)], [3])


if __name__ == "__main__":
    unittest.main()
