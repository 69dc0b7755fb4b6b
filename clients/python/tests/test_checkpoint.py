"""The checkpoint protocol against agents that are well, slow, dead, mad or just restarting."""

import math
import os
import socket
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import support  # noqa: F401
from fake_agent import encode
from support import JobTest, commit

from zed import _agent, _clock, _connection


class WellAgent(JobTest):
    def test_commits(self):
        agent = self.agent()
        self.write("ckpt/epoch-15.npz")
        done = commit(self.client(), epoch=15, step=1200, paths=["ckpt/epoch-15.npz"], loss=0.25)
        self.assertEqual((done.snapshot, done.seq, done.epoch, done.step), ("epoch-15", 1, 15, 1200))
        self.assertEqual((len(done.id), done.ms, done.paths), (32, 3.0, ("ckpt/epoch-15.npz",)))
        request = agent.received("checkpoint")[0]
        self.assertEqual(request["generation"], "1.c0ffee.7")
        self.assertEqual(request["metrics"], {"loss": 0.25})
        hello = agent.received("hello")[0]
        self.assertEqual((hello["v"], hello["generation"], hello["pid"]), (1, "1.c0ffee.7", os.getpid()))

    def test_deadline_is_on_the_monotonic_clock(self):
        agent = self.agent()
        before = time.clock_gettime(time.CLOCK_MONOTONIC) * 1000
        with mock.patch("time.time", side_effect=AssertionError("the wall clock was asked")):
            self.assertIsNotNone(commit(self.client(), epoch=1, timeout=7.0))
        deadline = agent.received("checkpoint")[0]["deadline_ms"]
        self.assertIsInstance(deadline, int)
        self.assertAlmostEqual(deadline - before, 7000, delta=1000)

    def test_requests_never_repeat_not_even_in_a_second_process(self):
        agent = self.agent()
        commit(self.client(), epoch=1)
        client = self.client()
        commit(client, epoch=2)
        commit(client, epoch=3)
        numbers = [request["request"] for request in agent.received("checkpoint", 3)]
        self.assertEqual(len(set(numbers)), 3)
        self.assertLess(max(numbers), 1 << 53)
        self.assertEqual([reply["snapshot"] for reply in agent.committed], ["epoch-1", "epoch-2", "epoch-3"])

    def test_metrics_that_are_no_json_numbers(self):
        agent = self.agent()
        with self.captured():
            commit(self.client(), epoch=1, loss=math.nan, high=math.inf, low=-math.inf, big=1 << 70, word="x")
        metrics = agent.received("checkpoint")[0]["metrics"]
        self.assertEqual(metrics, {"loss": "NaN", "high": "Infinity", "low": "-Infinity", "big": float(1 << 70)})
        self.assertIn("metric word left out", self.stderr.getvalue())

    def test_absolute_paths_become_relative(self):
        agent = self.agent()
        self.write("ckpt/a")
        commit(self.client(), epoch=1, paths=os.path.join(self.job_dir, "ckpt", "a"))
        self.assertEqual(agent.received("checkpoint")[0]["paths"], ["ckpt/a"])

    def test_a_path_outside_is_refused_without_asking(self):
        agent = self.agent()
        with self.captured():
            self.assertIsNone(commit(self.client(), epoch=1, paths=["../other"]))
        self.assertEqual(agent.messages, [])
        self.assertIn("outside the job's folder", self.warnings()[0])

    def test_too_long_a_request_is_refused_not_sent(self):
        agent = self.agent()
        client = self.client()
        with self.captured():
            self.assertIsNone(commit(client, epoch=1, paths=[f"ckpt/{n:060}" for n in range(1200)]))
        self.assertIn("name a folder instead", self.warnings()[0])
        self.assertIsNotNone(commit(client, epoch=2))
        self.assertEqual(len(agent.received("checkpoint")), 1)


class RefusingAgent(JobTest):
    def test_reason_is_said_once(self):
        self.agent()
        client = self.client()
        with self.captured():
            for _ in range(3):
                self.assertIsNone(commit(client, epoch=1, paths=["missing"]))
        self.assertEqual(self.warnings(), ["zed: no checkpoint: this is invalid (look); training goes on"])

    def test_each_kind_of_reason_is_said(self):
        self.agent()
        client = self.client()
        with self.captured():
            for epoch in (1, 2, 3):
                commit(client, epoch=epoch, paths=["missing"])
                commit(client, epoch=epoch, paths=[f"../epoch-{epoch}.pt"])
        self.assertEqual(len(self.warnings()), 2, self.warnings())
        self.assertIn("this is invalid", self.warnings()[0])
        self.assertIn("../epoch-1.pt is outside the job's folder", self.warnings()[1])

    def test_a_script_with_ever_new_troubles_is_not_followed(self):
        client = self.client()
        with self.captured():
            for number in range(1000):
                client.log(1, None, {"metric " + "x" * number: "no number"})
        self.assertLess(len(self.warnings()), 100)

    def test_stale_generation(self):
        self.agent(generation="2.c0ffee.1")
        with self.captured():
            self.assertIsNone(commit(self.client(), epoch=1))
        self.assertIn("the agent does not accept this process: an older attempt", self.stderr.getvalue())
        self.assertIn("this is stale", self.stderr.getvalue())


class SlowAgent(JobTest):
    def setUp(self):
        super().setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)

    def slow_once(self, request, answer):
        """The first request is held until released, then committed if it still may be."""
        if request["epoch"] == 1:
            self.release.wait(20)
        return answer()

    def test_time_out_then_a_late_reply_is_ignored(self):
        agent = self.agent(behaviour=self.slow_once)
        client = self.client()
        with self.captured():
            began = time.monotonic()
            self.assertIsNone(commit(client, epoch=1, timeout=0.3))
            self.assertLess(time.monotonic() - began, 1.0)
            self.release.set()
            done = commit(client, epoch=2)
        self.assertEqual((done.snapshot, done.epoch), ("epoch-2", 2))
        self.assertEqual([reply["snapshot"] for reply in agent.committed], ["epoch-2"])  # it kept to its deadline
        self.assertEqual(
            self.warnings(),
            [
                "zed: no checkpoint: the agent did not answer in time; training goes on",
                "zed: the agent answers again: epoch-2 is committed",
            ],
        )

    def test_a_late_success_is_not_taken_for_the_next_one(self):
        late = []

        def behaviour(request, answer):
            if request["epoch"] == 1:
                late.append(answer())
                return None
            agent.send(late[0])
            time.sleep(0.1)  # so that it is not read together with the right one
            return answer()

        agent = self.agent(behaviour=behaviour)
        client = self.client()
        with self.captured():
            self.assertIsNone(commit(client, epoch=1, timeout=0.2))
            self.assertEqual(commit(client, epoch=2).snapshot, "epoch-2")

    def test_while_one_is_overdue_the_next_waits_less(self):
        self.agent(behaviour=lambda request, answer: None)
        client = self.client()
        with self.captured(), mock.patch.object(_agent, "OVERDUE_SECONDS", 0.2):
            commit(client, epoch=1, timeout=0.2)
            began = time.monotonic()
            self.assertIsNone(commit(client, epoch=2, timeout=30.0))
        self.assertLess(time.monotonic() - began, 2.0)
        self.assertEqual(len(self.warnings()), 1)

    def test_other_threads_are_not_held_up(self):
        self.agent(behaviour=self.slow_once)
        client = self.client()
        with self.captured():
            waiting = threading.Thread(target=commit, args=(client, 1), kwargs={"timeout": 3.0})
            waiting.start()
            self.wait_until_talking(client)
            began = time.monotonic()
            self.assertFalse(client.should_stop)
            client.log(1, None, {"loss": 1.0})
            self.assertIsNone(commit(client, epoch=2, timeout=0.2))
            self.assertLess(time.monotonic() - began, 1.5)
            self.release.set()
            waiting.join()

    def wait_until_talking(self, client):
        end = time.monotonic() + 5
        while not client._agent._lock.locked() and time.monotonic() < end:
            time.sleep(0.001)
        self.assertTrue(client._agent._lock.locked())


class DeadAgent(JobTest):
    def test_only_the_first_checkpoint_of_an_outage_waits(self):
        client = self.client()
        with self.captured(), mock.patch.object(_agent, "AWAY_SECONDS", 0.5):
            began = time.monotonic()
            self.assertIsNone(commit(client, epoch=1))
            first = time.monotonic() - began
            for epoch in range(2, 50):
                self.assertIsNone(commit(client, epoch=epoch))
            rest = time.monotonic() - began - first
        self.assertGreater(first, 0.3)
        self.assertLess(first + rest, 2.0)
        self.assertEqual(len(self.warnings()), 1)
        self.assertIn(f"cannot connect to {self.socket}", self.warnings()[0])

    def test_wait_is_never_beyond_the_time_out(self):
        with self.captured():
            began = time.monotonic()
            self.assertIsNone(commit(self.client(), epoch=1, timeout=0.2))
            self.assertLess(time.monotonic() - began, 1.0)

    def test_a_listener_that_never_accepts(self):
        listener = self.listen(backlog=8)
        client = self.client()
        with self.captured():
            began = time.monotonic()
            self.assertIsNone(commit(client, epoch=1, timeout=0.3))
            self.assertLess(time.monotonic() - began, 1.3)
        self.assertIn("did not answer in time", self.warnings()[0])
        listener.close()

    def test_a_listener_whose_queue_is_full(self):
        listener = self.listen(backlog=0)
        first = socket.socket(socket.AF_UNIX)
        self.addCleanup(first.close)
        first.connect(self.socket)
        with self.captured():
            began = time.monotonic()
            self.assertIsNone(commit(self.client(), epoch=1, timeout=0.3))
            self.assertLess(time.monotonic() - began, 1.3)
        self.assertIn("cannot connect", self.warnings()[0])
        listener.close()

    def listen(self, backlog):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.socket)
        listener.listen(backlog)
        return listener

    def test_a_socket_path_that_cannot_be(self):
        client = self.client(ZED_SOCKET="/tmp/" + "x" * 300)
        with self.captured():
            self.assertIsNone(commit(client, epoch=1, timeout=0.2))
            self.assertFalse(client.should_stop)
        self.assertEqual(len(self.warnings()), 1)

    def test_comes_back(self):
        client = self.client()
        with self.captured(), mock.patch.object(_agent, "AWAY_SECONDS", 0.1):
            self.assertIsNone(commit(client, epoch=1))
            self.agent()
            self.assertIsNotNone(commit(client, epoch=2))


class RestartingAgent(JobTest):
    def test_between_two_checkpoints(self):
        agent = self.agent()
        client = self.client()
        self.assertIsNotNone(commit(client, epoch=1))
        agent.restart()
        self.assertIsNotNone(commit(client, epoch=2))
        self.assertEqual(len(agent.received("hello", 2)), 2)

    def test_in_the_middle_the_same_request_is_sent_again(self):
        def die_after_commit(request, answer):
            answer()
            agent.behaviour = None
            threading.Thread(target=agent.restart).start()
            time.sleep(0.2)

        agent = self.agent(behaviour=die_after_commit)
        done = commit(self.client(), epoch=1)
        first, second = agent.received("checkpoint", 2)
        self.assertEqual(first["request"], second["request"])
        self.assertEqual(len(agent.committed), 1)  # answered from memory, not committed twice
        self.assertEqual(done.id, agent.committed[0]["id"])

    def test_late_in_a_long_wait(self):
        """The patience for an agent that is away counts from when it went away."""

        def hang_then_die(request, answer):
            agent.behaviour = None
            time.sleep(0.6)
            agent.restart()

        agent = self.agent(behaviour=hang_then_die)
        with mock.patch.object(_agent, "AWAY_SECONDS", 0.5):
            self.assertIsNotNone(commit(self.client(), epoch=1, timeout=10.0))


    def test_twice_in_one_wait(self):
        """Its return ends an outage, also where it brings no answer."""

        def hang_then_die(request, answer):
            deaths.append(request)
            if len(deaths) == 2:
                agent.behaviour = None
            time.sleep(0.6)
            agent.restart()

        deaths = []
        agent = self.agent(behaviour=hang_then_die)
        with mock.patch.object(_agent, "AWAY_SECONDS", 0.5):
            self.assertIsNotNone(commit(self.client(), epoch=1, timeout=10.0))
        self.assertEqual(len(deaths), 2)


class MadAgent(JobTest):
    def expect_none_in_time(self, garbage, timeout=0.5):
        agent = self.agent(behaviour=lambda request, answer: garbage)
        client = self.client()
        with self.captured(), mock.patch.object(_agent, "AWAY_SECONDS", 0.3):
            began = time.monotonic()
            self.assertIsNone(commit(client, epoch=1, timeout=timeout))
            self.assertLess(time.monotonic() - began, timeout + 1.0)
            self.assertFalse(client.should_stop)
            agent.behaviour = None
            self.assertIsNotNone(commit(client, epoch=2))

    def test_binary_garbage(self):
        self.expect_none_in_time(bytes(range(256)) * 4 + b"\n")

    def test_garbage_without_end(self):
        self.expect_none_in_time(b"x" * (3 * _connection.LINE_BYTES))

    def test_json_of_the_wrong_shape(self):
        self.expect_none_in_time(b"[1, 2]\n")

    def test_json_nested_to_break_the_parser(self):
        self.expect_none_in_time(b"[" * 60_000 + b"\n")

    def test_a_later_version(self):
        self.expect_none_in_time(encode({"v": 2, "ok": True}))

    def test_half_a_reply(self):
        self.expect_none_in_time(b'{"v":1,"request":')

    def test_a_success_without_an_id(self):
        agent = self.agent(behaviour=lambda request, answer: encode({"v": 1, "request": request["request"], "ok": True}))
        with self.captured():
            self.assertIsNone(commit(self.client(), epoch=1))
        self.assertEqual(len(agent.received("checkpoint")), 1)
        self.assertIn("lacks id, snapshot or seq", self.warnings()[0])

    def test_an_endless_stream_of_valid_lines_does_not_hold_the_job(self):
        self.agent()
        client = self.client()
        began = time.monotonic()

        def receive(deadline):
            self.assertLess(time.monotonic() - began, 3.0)
            return [{"v": 1, "ask": "dance"}]

        with self.captured(), mock.patch.object(client._agent._connection, "receive", receive):
            self.assertIsNone(commit(client, epoch=1, timeout=0.3))

    def test_one_look_reads_a_bounded_amount(self):
        self.agent()
        client = self.client()
        self.assertFalse(client.should_stop)
        connection = client._agent._connection
        reads = []

        def read(seconds):
            reads.append(seconds)
            return _connection.LINE_BYTES

        with mock.patch.object(connection, "_read", read):
            self.assertFalse(client.should_stop)
        self.assertEqual(reads, [0] * (_connection.POLL_BYTES // _connection.LINE_BYTES))


class Forked(JobTest):
    def test_a_forked_child_talks_on_a_connection_of_its_own(self):
        agent = self.agent()
        script = (
            "import os, zed\n"
            "assert zed.checkpoint(epoch=1)\n"
            "child = os.fork()\n"
            "done = zed.checkpoint(epoch=2 if child else 3)\n"
            "assert done and done.epoch == (2 if child else 3), done\n"
            "if not child: os._exit(0)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
        )
        package = os.path.join(os.path.dirname(support.__file__), os.pardir)
        environ = {**os.environ, **self.environ, "PYTHONPATH": package}
        subprocess.run([sys.executable, "-c", script], env=environ, check=True, timeout=60)
        self.assertEqual(len({hello["pid"] for hello in agent.received("hello", 2)}), 2)
        self.assertEqual(len({request["request"] for request in agent.received("checkpoint", 3)}), 3)


class Clock(unittest.TestCase):
    def test_is_the_one_the_agent_reads(self):
        self.assertAlmostEqual(_clock.now(), time.clock_gettime(time.CLOCK_MONOTONIC), delta=1.0)
        self.assertEqual(_clock.to_ms(1.5), 1500)


if __name__ == "__main__":
    unittest.main()
