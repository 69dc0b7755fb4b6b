"""epochs, steps and step: where they begin, when they commit, how they end."""

import os
import time
import unittest
from unittest import mock

import support  # noqa: F401
from support import JobTest, commit, epochs

from zed import _agent


class Where(JobTest):
    def test_begins_after_the_checkpoint(self):
        client = self.client(ZED_CHECKPOINT="epoch-15", ZED_CHECKPOINT_EPOCH="15")
        self.assertEqual(list(epochs(client, 18)), [16, 17, 18])

    def test_nothing_is_left(self):
        client = self.client(ZED_CHECKPOINT="epoch-15", ZED_CHECKPOINT_EPOCH="15")
        self.assertEqual(list(epochs(client, 15)), [])
        self.assertFalse(client.stopped)

    def test_steps(self):
        client = self.client(ZED_CHECKPOINT="step-8", ZED_CHECKPOINT_STEP="8")
        self.assertEqual(list(client.loop("step", 10, None, None, 5.0)), [9, 10])

    def test_a_checkpoint_without_an_epoch_needs_start(self):
        client = self.client(ZED_CHECKPOINT="step-8", ZED_CHECKPOINT_STEP="8")
        with self.captured():
            self.assertEqual(list(epochs(client, 2)), [1, 2])
        self.assertIn("pass start=", self.warnings()[0])
        self.assertEqual(list(epochs(client, 4, start=3)), [3, 4])


class When(JobTest):
    def run_loop(self, total, unit="epoch", agent=None, **environ):
        agent = agent or self.agent()
        client = self.client(**environ)
        for number in client.loop(unit, total, lambda name: self.write(f"ckpt/{name}"), None, 5.0):
            client.log(number * 10, None, {"loss": 1.0 / number})
        return agent, client

    def names(self, agent):
        return [reply["snapshot"] for reply in agent.committed]

    def test_every_epoch_with_the_last_logged_metrics(self):
        agent, _ = self.run_loop(2, ZED_CHECKPOINT_EVERY="1 epoch")
        self.assertEqual(self.names(agent), ["epoch-1", "epoch-2"])
        second = agent.received("checkpoint", 2)[1]
        self.assertEqual((second["epoch"], second["step"], second["metrics"]), (2, 20, {"loss": 0.5}))
        self.assertEqual(second["paths"], ["ckpt/epoch-2"])

    def test_every_third_counted_over_the_whole_run(self):
        agent, _ = self.run_loop(
            10, ZED_CHECKPOINT_EVERY="3 epochs", ZED_CHECKPOINT="epoch-4", ZED_CHECKPOINT_EPOCH="4"
        )
        self.assertEqual(self.names(agent), ["epoch-6", "epoch-9"])

    def test_every_four_steps(self):
        agent, _ = self.run_loop(9, unit="step", ZED_CHECKPOINT_EVERY="4 steps")
        self.assertEqual(self.names(agent), ["step-4", "step-8"])

    def test_never_by_itself(self):
        for every in ("", "10 minutes", "4 steps"):
            agent, _ = self.run_loop(3, ZED_CHECKPOINT_EVERY=every)
            self.assertEqual(self.names(agent), [], every)
            agent.stop()
            os.unlink(self.socket)

    def test_what_failed_stays_due(self):
        def refuse_second(request, answer):
            if request["epoch"] == 2:
                request["generation"] = "older"
            return answer()

        agent = self.agent(behaviour=refuse_second)
        with self.captured():
            self.run_loop(5, agent=agent, ZED_CHECKPOINT_EVERY="2 epochs")
        self.assertEqual(self.names(agent), ["epoch-3", "epoch-4"])

    def test_an_explicit_checkpoint_is_not_repeated(self):
        agent = self.agent()
        client = self.client(ZED_CHECKPOINT_EVERY="1 epoch")
        for epoch in epochs(client, 2, save=lambda name: self.fail("committed twice")):
            commit(client, epoch=epoch)
        self.assertEqual(self.names(agent), ["epoch-1", "epoch-2"])

    def test_step_inside_epochs(self):
        agent = self.agent()
        client = self.client(ZED_CHECKPOINT_EVERY="4 steps")
        for epoch in epochs(client, 2, save=lambda name: self.write(f"ckpt/{name}")):
            for batch in range(3):
                client.finished("step", (epoch - 1) * 3 + batch + 1)
        self.assertEqual(self.names(agent), ["step-4"])
        self.assertIsNone(agent.received("checkpoint")[0]["epoch"])

    def test_an_error_of_the_save_hook_is_the_scripts_own(self):
        self.agent()

        def save(name):
            raise OSError("disk full")

        with self.assertRaisesRegex(OSError, "disk full"):
            list(epochs(self.client(ZED_CHECKPOINT_EVERY="1 epoch"), 2, save=save))

    def test_with_the_agent_away_training_goes_on(self):
        client = self.client(ZED_CHECKPOINT_EVERY="1 epoch")
        with self.captured(), mock.patch.object(_agent, "AWAY_SECONDS", 0.2):
            began = time.monotonic()
            seen = list(epochs(client, 30, save=lambda name: None))
        self.assertEqual(seen, list(range(1, 31)))
        self.assertLess(time.monotonic() - began, 3.0)
        self.assertEqual(len(self.warnings()), 1)


class Asked(JobTest):
    def setUp(self):
        super().setUp()
        self.server = self.agent()

    def ask(self, client, kind, seconds=30.0):
        """Returns once the client knows. It connects at its first call, so that comes first."""
        self.assertFalse(client.should_stop)
        self.server.ask(kind, seconds)
        end = time.monotonic() + 5
        while not self.knows(client, kind) and time.monotonic() < end:
            time.sleep(0.001)
        self.assertTrue(self.knows(client, kind))

    def knows(self, client, kind):
        stop = client.should_stop
        return stop if kind == "stop" else client._agent.ask_deadline is not None

    def snapshots(self):
        return [reply["snapshot"] for reply in self.server.committed]

    def test_checkpoint_is_served_once_at_the_next_epoch(self):
        client = self.client()
        for epoch in epochs(client, 4, save=lambda name: self.write(f"ckpt/{name}")):
            if epoch == 2:
                self.ask(client, "checkpoint")
        self.assertEqual(self.snapshots(), ["epoch-2"])
        self.assertFalse(client.stopped)

    def test_checkpoint_is_served_by_an_explicit_one(self):
        client = self.client()
        self.ask(client, "checkpoint")
        self.assertTrue(client.should_checkpoint)
        commit(client, epoch=1)
        self.assertFalse(client.should_checkpoint)

    def test_an_expired_ask_is_dropped(self):
        client = self.client()
        self.ask(client, "checkpoint", seconds=-1)
        self.assertFalse(client.should_checkpoint)

    def test_stop_commits_says_so_and_ends(self):
        client = self.client()
        seen = []
        for epoch in epochs(client, 9, save=lambda name: self.write(f"ckpt/{name}")):
            seen.append(epoch)
            if epoch == 3:
                self.ask(client, "stop")
        self.assertEqual((seen, self.snapshots()), ([1, 2, 3], ["epoch-3"]))
        self.assertTrue(client.stopped)
        self.server.received("stopped")
        self.assertEqual([m["op"] for m in self.server.messages], ["hello", "checkpoint", "stopped"])

    def test_stop_with_explicit_checkpoints_waits_for_one(self):
        client = self.client()
        seen = []
        for epoch in epochs(client, 20):
            seen.append(epoch)
            if epoch == 6:
                self.ask(client, "stop")
            if epoch % 5 == 0:
                commit(client, epoch=epoch)
        self.assertEqual(seen[-1], 10)
        self.assertEqual(self.snapshots(), ["epoch-5", "epoch-10"])

    def test_stop_served_inside_an_epoch_ends_the_loop_after_it(self):
        client = self.client()
        seen = []
        for epoch in epochs(client, 9):
            seen.append(epoch)
            if epoch == 2:
                self.ask(client, "stop")
                commit(client, step=15)
        self.assertEqual((seen, self.snapshots()), ([1, 2], ["step-15"]))
        self.assertTrue(client.stopped)

    def test_stop_does_not_redo_what_is_committed(self):
        client = self.client()
        for epoch in epochs(client, 9):
            commit(client, epoch=epoch)
            if epoch == 2:
                self.ask(client, "stop")
        self.assertEqual(self.snapshots(), ["epoch-1", "epoch-2"])

    def test_stop_of_a_script_that_cannot_save_ends_at_once(self):
        client = self.client()
        seen = []
        for epoch in epochs(client, 9):
            seen.append(epoch)
            if epoch == 2:
                self.ask(client, "stop")
        self.assertEqual((seen, client.stopped), ([1, 2], True))

    def test_stop_whose_checkpoint_fails_goes_on_until_its_deadline(self):
        self.server.behaviour = lambda request, answer: b'{"v":1,"request":%d,"ok":false}\n' % request["request"]
        client = self.client()
        seen = []
        with self.captured():
            for epoch in epochs(client, 1000, save=lambda name: self.write(f"ckpt/{name}")):
                seen.append(epoch)
                if epoch == 1:
                    self.ask(client, "stop", seconds=0.3)
                time.sleep(0.02)
        self.assertTrue(client.stopped)
        self.assertGreater(len(seen), 2)
        self.assertLess(len(seen), 1000)

    def test_stop_in_the_last_epoch_is_a_success(self):
        client = self.client()
        for epoch in epochs(client, 2, save=lambda name: self.write(f"ckpt/{name}")):
            if epoch == 2:
                self.ask(client, "stop")
        self.assertFalse(client.stopped)
        self.assertEqual(self.snapshots(), ["epoch-2"])

    def test_a_loop_of_ones_own(self):
        client = self.client()
        self.ask(client, "stop")
        self.assertTrue(client.should_checkpoint)
        commit(client, step=7)
        self.assertTrue(client.should_stop)
        self.assertFalse(client.should_checkpoint)
        client.leave()
        self.server.received("stopped")

    def test_unknown_asks_and_fields_are_ignored(self):
        client = self.client()
        self.assertFalse(client.should_stop)
        self.server.send(b'{"v":1,"ask":"dance","deadline_ms":"soon"}\n{"v":1,"news":1}\n')
        self.ask(client, "stop")
        self.assertIsNone(client._agent.ask_deadline)

    def test_the_ask_survives_a_restart_of_the_agent(self):
        client = self.client()
        self.ask(client, "stop")
        self.server.restart()
        self.assertTrue(client.should_stop)
        self.assertIsNotNone(commit(client, epoch=1))


if __name__ == "__main__":
    unittest.main()
