"""The hooks for Hugging Face, Lightning and Keras, driven in the order in which those call them.

The orders were recorded from transformers 4.4x, Lightning 2.x and Keras 3 with callbacks that print
their names; `./dev test-full` runs the real ones.
"""

import json
import os
import types
import unittest
from unittest import mock

from support import JobTest, until

import zed  # isort: skip: support knows where it is
from zed import huggingface, keras, lightning


class HookTest(JobTest):
    """The package's own client is one of this test's agent."""

    def setUp(self):
        super().setUp()
        self.fake = self.agent()

    def job(self, **environ):
        patch = mock.patch.object(zed, "_client", self.client(**environ))
        patch.start()
        self.addCleanup(patch.stop)

    def commits(self):
        return self.fake.received("checkpoint", 0)


class HuggingFaceTest(HookTest):
    def trainer(self, steps_an_epoch, epochs, save_steps=None):
        """Trainer's order: step_end, [log], [save], and at the end of an epoch the same again."""
        args = types.SimpleNamespace(output_dir=os.path.join(self.job_dir, "run"))
        state = types.SimpleNamespace(
            global_step=0, epoch=0.0, max_steps=steps_an_epoch * epochs, is_world_process_zero=True
        )
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        callback = huggingface.ZedCallback()

        def maybe_log_save():
            callback.on_log(args, state, control, logs={"loss": 1 / state.global_step, "epoch": state.epoch})
            if not control.should_save:
                return
            control.should_save = False
            folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
            os.makedirs(folder)
            for name in ("model.safetensors", "optimizer.pt", "rng_state.pth", "trainer_state.json"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(json.dumps({"global_step": state.global_step}))
            callback.on_save(args, state, control)

        for epoch in range(epochs):
            for step in range(steps_an_epoch):
                state.global_step += 1
                state.epoch = epoch + (step + 1) / steps_an_epoch
                if save_steps and state.global_step % save_steps == 0:
                    control.should_save = True
                callback.on_step_end(args, state, control)
                maybe_log_save()
                if control.should_training_stop:
                    break
            if not control.should_training_stop:
                callback.on_epoch_end(args, state, control)
                maybe_log_save()
            if control.should_training_stop:
                break
        callback.on_train_end(args, state, control)
        return args, state

    def test_checkpoints_by_the_jobs_epochs(self):
        self.job(ZED_CHECKPOINT_EVERY="1 epoch")
        args, _ = self.trainer(steps_an_epoch=3, epochs=2)
        asked = self.commits()
        self.assertEqual([(a["epoch"], a["step"]) for a in asked], [(1, 3), (2, 6)])
        self.assertEqual(asked[0]["paths"], ["run/checkpoint-3"])
        self.assertAlmostEqual(asked[0]["metrics"]["loss"], 1 / 3)
        self.assertEqual(huggingface.resume_path(args.output_dir), os.path.join(args.output_dir, "checkpoint-6"))

    def test_checkpoints_by_steps(self):
        self.job(ZED_CHECKPOINT_EVERY="2 steps")
        self.trainer(steps_an_epoch=3, epochs=2)
        self.assertEqual([a["step"] for a in self.commits()], [2, 4, 6])

    def test_the_trainers_own_saves_are_committed_too(self):
        self.job()
        self.trainer(steps_an_epoch=3, epochs=2, save_steps=4)
        self.assertEqual([a["step"] for a in self.commits()], [4])

    def test_a_stop_ends_the_training_after_a_checkpoint(self):
        self.job()
        zed.log(step=0, loss=1.0)  # says hello
        self.fake.received("hello", 1)
        self.fake.ask("stop")
        until(lambda: zed.should_stop)
        _, state = self.trainer(steps_an_epoch=3, epochs=50)
        self.assertLess(state.global_step, 150)
        self.assertEqual(len(self.commits()), 1)
        self.assertEqual(len(self.fake.received("stopped", 1)), 1)

    def test_a_torn_checkpoint_is_not_resumed(self):
        self.job()
        folder = os.path.join(self.job_dir, "run")
        os.makedirs(os.path.join(folder, "checkpoint-9"))
        self.assertIsNone(huggingface.resume_path(folder))
        with open(os.path.join(folder, "checkpoint-9", "trainer_state.json"), "w", encoding="utf-8") as file:
            file.write('{"global_step"')
        self.assertIsNone(huggingface.resume_path(folder))
        self.assertIsNone(huggingface.resume_path(os.path.join(folder, "nowhere")))


class FakeLightning:
    """What the hooks use of a Trainer."""

    def __init__(self):
        self.global_step = 0
        self.current_epoch = 0
        self.is_global_zero = True
        self.should_stop = False
        self.callback_metrics = {"loss": 0.5, "text": "no number"}
        self.written = []

    def save_checkpoint(self, path):
        self.written.append(path)
        with open(path, "wb") as file:
            file.write(b"weights")

    def fit(self, callback, steps_an_epoch, epochs):
        """Lightning's order: batch ends, then the epoch's end, then current_epoch counts on."""
        while self.current_epoch < epochs and not self.should_stop:
            for _ in range(steps_an_epoch):
                self.global_step += 1
                callback.on_train_batch_end(self, None, {}, None, 0)
                if self.should_stop:
                    break
            callback.on_train_epoch_end(self, None)
            self.current_epoch += 1
        callback.on_train_end(self, None)


class LightningTest(HookTest):
    def test_checkpoints_by_epochs(self):
        self.job(ZED_CHECKPOINT_EVERY="2 epochs")
        trainer = FakeLightning()
        trainer.fit(lightning.ZedCallback(), steps_an_epoch=5, epochs=4)
        asked = self.commits()
        self.assertEqual([(a["epoch"], a["step"]) for a in asked], [(2, 10), (4, 20)])
        self.assertEqual(asked[0]["paths"], ["ckpt/step-10.ckpt"])
        self.assertEqual(asked[0]["metrics"], {"loss": 0.5})
        self.assertEqual(lightning.resume_path(), os.path.join(self.job_dir, "ckpt", "step-20.ckpt"))

    def test_a_stop_ends_the_training_after_a_checkpoint(self):
        self.job()
        zed.log(step=0, loss=1.0)
        self.fake.received("hello", 1)
        self.fake.ask("stop")
        until(lambda: zed.should_stop)
        trainer = FakeLightning()
        trainer.fit(lightning.ZedCallback(), steps_an_epoch=5, epochs=4)
        self.assertEqual(len(self.commits()), 1)
        self.assertEqual(trainer.global_step, 1)
        self.assertEqual(len(self.fake.received("stopped", 1)), 1)

    def test_the_logger_commits_what_a_model_checkpoint_wrote_once(self):
        self.job()
        logger = lightning.ZedLogger()
        logger.log_hyperparams({"lr": 0.1})
        logger.log_metrics({"loss": 0.25, "epoch": 1}, step=10)
        path = os.path.join(self.job_dir, "ckpt", "last.ckpt")
        self.write("ckpt/last.ckpt")
        saver = types.SimpleNamespace(last_model_path="", best_model_path=path, _last_global_step_saved=10)
        logger.after_save_checkpoint(saver)
        logger.after_save_checkpoint(saver)
        asked = self.commits()
        self.assertEqual([(a["step"], a["paths"]) for a in asked], [(10, ["ckpt/last.ckpt"])])
        self.assertEqual(asked[0]["metrics"], {"loss": 0.25})


class FakeKeras:
    def __init__(self):
        self.stop_training = False

    def save(self, path):
        with open(path, "wb") as file:
            file.write(b"model")

    def fit(self, callback, epochs):
        callback.set_model(self)
        callback.params = {"epochs": epochs}
        for epoch in range(epochs):
            callback.on_epoch_begin(epoch)
            callback.on_epoch_end(epoch, {"loss": 1 / (epoch + 1), "val_accuracy": 0.5})
            if self.stop_training:
                break
        callback.on_train_end()
        return epoch + 1


class KerasTest(HookTest):
    def test_checkpoints_by_epochs(self):
        self.job(ZED_CHECKPOINT_EVERY="2 epochs")
        FakeKeras().fit(keras.ZedCallback(), 5)
        asked = self.commits()
        self.assertEqual([a["epoch"] for a in asked], [2, 4])
        self.assertEqual(asked[0]["paths"], ["ckpt/epoch-2.keras"])
        self.assertEqual(asked[0]["metrics"], {"loss": 0.5, "val_accuracy": 0.5})
        self.assertEqual(keras.resume_path(), os.path.join(self.job_dir, "ckpt", "epoch-4.keras"))
        self.assertEqual(sorted(os.listdir(os.path.join(self.job_dir, "ckpt"))), ["epoch-2.keras", "epoch-4.keras"])

    def test_a_stop_ends_the_training_after_a_checkpoint(self):
        self.job()
        zed.log(step=0, loss=1.0)
        self.fake.received("hello", 1)
        self.fake.ask("stop")
        until(lambda: zed.should_stop)
        self.assertEqual(FakeKeras().fit(keras.ZedCallback(), 50), 1)
        self.assertEqual([a["epoch"] for a in self.commits()], [1])
        self.assertEqual(len(self.fake.received("stopped", 1)), 1)


class OutsideTest(unittest.TestCase):
    def test_the_hooks_do_nothing(self):
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        state = types.SimpleNamespace(global_step=1, epoch=1.0, max_steps=1, is_world_process_zero=True)
        callback = huggingface.ZedCallback()
        callback.on_step_end(None, state, control)
        callback.on_epoch_end(None, state, control)
        self.assertFalse(control.should_save)


if __name__ == "__main__":
    unittest.main()
