"""The hooks in the real frameworks, on the CPU, with models of a few numbers. `./dev test-full` runs
these; without a framework its tests are skipped, and test_hooks.py has the order of its calls."""

import importlib.util
import os
import unittest
from unittest import mock

from support import JobTest, until

import zed  # isort: skip: support knows where it is

FULL = os.environ.get("ZED_TEST_FULL") == "1"


def needs(*packages):
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    why = f"{', '.join(missing)} not installed" if missing else "./dev test-full runs it"
    return unittest.skipUnless(FULL and not missing, why)


class RealTest(JobTest):
    def setUp(self):
        super().setUp()
        self.fake = self.agent()

    def job(self, **environ):
        patch = mock.patch.object(zed, "_client", self.client(**environ))
        patch.start()
        self.addCleanup(patch.stop)

    def ask_for_a_stop(self):
        zed.log(step=0, loss=1.0)  # says hello
        self.fake.received("hello", 1)
        self.fake.ask("stop")
        until(lambda: zed.should_stop)

    def commits(self):
        return self.fake.received("checkpoint", 0)


@needs("torch", "transformers", "accelerate")
class HuggingFaceTest(RealTest):
    def trainer(self, epochs):
        import torch
        import transformers
        from zed import huggingface

        class Tiny(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def forward(self, x, labels):
                return {"loss": torch.nn.functional.mse_loss(self.layer(x)[:, 0], labels)}

        torch.manual_seed(1)
        data = [{"x": torch.randn(4), "labels": torch.tensor(float(i % 3))} for i in range(16)]
        arguments = transformers.TrainingArguments(
            output_dir=huggingface.output_dir("run"),
            num_train_epochs=epochs,
            per_device_train_batch_size=4,
            save_strategy="no",
            logging_steps=1,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        callbacks = [huggingface.ZedCallback()]
        trainer = transformers.Trainer(model=Tiny(), args=arguments, train_dataset=data, callbacks=callbacks)
        return trainer, arguments

    def weights(self, trainer):
        return [value.item() for value in trainer.model.layer.weight[0]]

    def test_a_training_that_was_cut_off_ends_with_the_same_weights(self):
        from zed import huggingface

        self.job(ZED_CHECKPOINT_EVERY="1 epoch")
        whole, arguments = self.trainer(3)
        whole.train()
        expected = self.weights(whole)
        asked = self.commits()
        self.assertEqual([(a["epoch"], a["step"]) for a in asked], [(1, 4), (2, 8), (3, 12)])
        self.assertIn("loss", asked[0]["metrics"])
        self.assertEqual(asked[0]["paths"], ["run/checkpoint-4"])
        import shutil

        shutil.rmtree(os.path.join(arguments.output_dir, "checkpoint-12"))
        resumed, arguments = self.trainer(3)
        resumed.train(resume_from_checkpoint=huggingface.resume_path(arguments.output_dir))
        self.assertEqual(self.weights(resumed), expected)

    def test_a_stop_ends_it_after_a_checkpoint(self):
        self.job()
        self.ask_for_a_stop()
        trainer, _ = self.trainer(50)
        trainer.train()
        self.assertEqual(trainer.state.global_step, 1)
        self.assertEqual([a["step"] for a in self.commits()], [1])
        self.fake.received("stopped", 1)


@needs("torch", "pytorch_lightning")
class LightningTest(RealTest):
    def fit(self, epochs, path=None, logger=False, callbacks=None, **options):
        import logging
        import warnings

        import pytorch_lightning
        import torch
        from zed import lightning

        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
        warnings.simplefilter("ignore")

        class Tiny(pytorch_lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def training_step(self, batch, _):
                loss = self.layer(batch).pow(2).mean()
                self.log("loss", loss)
                return loss

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters(), lr=0.1)

        torch.manual_seed(1)
        module = Tiny()
        data = torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=4)
        trainer = pytorch_lightning.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=logger,
            callbacks=callbacks or [lightning.ZedCallback()],
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=self.root,
            log_every_n_steps=1,
            **options,
        )
        trainer.fit(module, data, ckpt_path=path)
        return trainer, [value.item() for value in module.layer.weight[0]]

    def test_a_training_that_was_cut_off_ends_with_the_same_weights(self):
        from zed import lightning

        self.job(ZED_CHECKPOINT_EVERY="1 epoch")
        _, expected = self.fit(3, enable_checkpointing=False)
        asked = self.commits()
        self.assertEqual([(a["epoch"], a["step"]) for a in asked], [(1, 4), (2, 8), (3, 12)])
        self.assertIn("loss", asked[0]["metrics"])
        os.unlink(os.path.join(self.job_dir, "ckpt", "step-12.ckpt"))
        _, resumed = self.fit(3, lightning.resume_path(), enable_checkpointing=False)
        self.assertEqual(resumed, expected)

    def test_a_stop_ends_it_after_a_checkpoint(self):
        self.job()
        self.ask_for_a_stop()
        trainer, _ = self.fit(50, enable_checkpointing=False)
        self.assertEqual(trainer.global_step, 1)
        self.assertEqual([a["step"] for a in self.commits()], [1])
        self.fake.received("stopped", 1)

    def test_the_logger_commits_what_model_checkpoint_writes(self):
        import pytorch_lightning
        from zed import lightning

        self.job()
        saver = pytorch_lightning.callbacks.ModelCheckpoint(os.path.join(self.job_dir, "own"), save_top_k=-1)
        self.fit(2, logger=lightning.ZedLogger(), callbacks=[saver])
        asked = self.commits()
        self.assertEqual(len(asked), 2)
        self.assertTrue(asked[0]["paths"][0].startswith("own/"))
        self.assertIn("loss", asked[0]["metrics"])


@needs("keras")
class KerasTest(RealTest):
    def fit(self, epochs, path=None):
        import keras
        import numpy
        from zed.keras import ZedCallback

        keras.utils.set_random_seed(1)
        if path:
            model = keras.models.load_model(path)
        else:
            model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
            model.compile(optimizer="adam", loss="mse")
        data = numpy.random.default_rng(1).normal(size=(16, 4)).astype("float32")
        begin = zed.resume.epoch if zed.resume else 0
        model.fit(
            data,
            data[:, 0],
            epochs=epochs,
            initial_epoch=begin,
            batch_size=4,
            shuffle=False,
            verbose=0,
            callbacks=[ZedCallback()],
        )
        return model.layers[0].get_weights()[0].flatten().tolist()

    def test_a_training_that_was_cut_off_ends_with_the_same_weights(self):
        from zed.keras import resume_path

        self.job(ZED_CHECKPOINT_EVERY="1 epoch")
        expected = self.fit(3)
        asked = self.commits()
        self.assertEqual([a["epoch"] for a in asked], [1, 2, 3])
        self.assertIn("loss", asked[0]["metrics"])
        os.unlink(os.path.join(self.job_dir, "ckpt", "epoch-3.keras"))
        self.job(ZED_CHECKPOINT="epoch-2", ZED_CHECKPOINT_EPOCH="2", ZED_CHECKPOINT_EVERY="1 epoch")
        self.assertEqual(self.fit(3, resume_path()), expected)

    def test_a_stop_ends_it_after_a_checkpoint(self):
        self.job()
        self.ask_for_a_stop()
        self.fit(50)
        self.assertEqual([a["epoch"] for a in self.commits()], [1])
        self.fake.received("stopped", 1)


if __name__ == "__main__":
    unittest.main()
