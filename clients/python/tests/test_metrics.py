"""The metrics file: format, durability, rotation, what a crash leaves."""

import json
import math
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import support
from support import JobTest, commit

from zed import read_metrics
from zed._metrics import MetricsFile


class Metrics(JobTest):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.job_dir) / "metrics"
        self.first = self.folder / "000001.jsonl"

    def file(self, **options):
        file = MetricsFile(self.folder, lambda key, text: self.stderr.write(text + "\n"), **options)
        self.addCleanup(file.close)
        return file

    def lines(self):
        return self.first.read_bytes().splitlines(keepends=True)

    def test_format(self):
        client = self.client()
        client.log(7, 2, {"loss": 0.25, "bad": math.nan, "up": math.inf, "down": -math.inf, "n": 3})
        client.close()
        text = self.first.read_text()
        record = json.loads(text)
        self.assertTrue(text.startswith('{"s":7,"t":'), text)
        self.assertAlmostEqual(record.pop("t"), time.time(), delta=5)
        self.assertEqual(
            record, {"s": 7, "loss": 0.25, "bad": "NaN", "up": "Infinity", "down": "-Infinity", "n": 3, "epoch": 2}
        )

    def test_a_line_is_json_whatever_is_logged(self):
        client = self.client()
        strange = {'qu"ote': 1, "new\nline": -2.5e-300, "größe": True, "\udc80": 1e22, "": 1 << 62}
        client.log(None, None, strange)
        for number in range(5000):  # more names than are kept
            client.log(number, None, {f"metric {number}": number})
        client.close()
        first, *others = read_metrics(self.job_dir)
        first.pop("t")
        self.assertEqual(
            first, {'qu"ote': 1, "new\nline": -2.5e-300, "größe": 1, "?": 1e22, "": 1 << 62}
        )
        self.assertEqual([record[f"metric {number}"] for number, record in enumerate(others)], list(range(5000)))

    def test_reserved_names_are_left_out(self):
        client = self.client()
        with self.captured():
            client.log(7, None, {"s": 99, "t": 1, "loss": 1})
        client.close()
        self.assertEqual(next(read_metrics(self.job_dir))["s"], 7)
        self.assertEqual(len(self.warnings()), 2)

    def test_is_on_disk_within_a_second_without_further_calls(self):
        self.client().log(1, None, {"loss": 1})
        end = time.monotonic() + 1.5
        while time.monotonic() < end and not list(read_metrics(self.job_dir)):
            time.sleep(0.01)
        self.assertEqual(len(list(read_metrics(self.job_dir))), 1)

    def test_many_calls_are_few_writes_of_whole_lines(self):
        written = []
        real = os.write

        def write(descriptor, data):
            written.append(bytes(data))
            return real(descriptor, data)

        file = self.file()
        with mock.patch("os.write", write):
            for step in range(2000):
                file.append(step, {"loss": 0.5, "rate": 0.001})
            file.flush()
        self.assertLess(len(written), 20)
        self.assertTrue(all(data.endswith(b"\n") for data in written))
        self.assertEqual([record["s"] for record in read_metrics(self.job_dir)], list(range(2000)))

    def test_is_durable_before_the_checkpoint_is_asked_for(self):
        order = []
        real = os.fsync

        def fsync(descriptor):
            order.append("fsync " + os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
            real(descriptor)

        agent = self.agent(behaviour=lambda request, answer: order.append("checkpoint") or answer())
        client = self.client()
        with mock.patch("os.fsync", fsync):
            client.log(1, None, {"loss": 1})
            self.assertIsNotNone(commit(client, epoch=1))
        self.assertEqual(order[-2:], ["fsync 000001.jsonl", "checkpoint"])
        self.assertEqual(len(agent.committed), 1)

    def test_a_torn_tail_spoils_only_itself(self):
        self.folder.mkdir()
        self.first.write_bytes(b'{"s":1,"t":1,"loss":1}\n{"s":2,"t":2,"lo')
        file = self.file()
        file.append(3, {"loss": 3})
        file.flush()
        self.assertEqual([record["s"] for record in read_metrics(self.job_dir)], [1, 3])
        self.assertEqual(len(self.lines()), 3)

    def test_the_reader_leaves_out_a_torn_tail_even_if_it_parses(self):
        self.folder.mkdir()
        self.first.write_bytes(b'{"s":1}\n12\n{"s":2}')
        self.assertEqual([record["s"] for record in read_metrics(self.job_dir)], [1])

    def test_a_short_write_costs_one_line(self):
        file = self.file()
        real = os.write
        with mock.patch("os.write", lambda descriptor, data: real(descriptor, data[:5])):
            file.append(1, {"loss": 1})
            file.flush()
        file.append(2, {"loss": 2})
        file.flush()
        self.assertEqual([record["s"] for record in read_metrics(self.job_dir)], [2])

    def test_rotation(self):
        file = self.file(rotate_bytes=200)
        for step in range(12):
            file.append(step, {"loss": 0.5})
            file.flush()
        names = sorted(os.listdir(self.folder))
        self.assertGreater(len(names), 2)
        self.assertEqual(names[:2], ["000001.jsonl", "000002.jsonl"])
        self.assertTrue(all((self.folder / name).stat().st_size <= 200 for name in names))
        self.assertEqual([record["s"] for record in read_metrics(self.job_dir)], list(range(12)))

    def test_goes_on_in_the_newest_file(self):
        self.folder.mkdir()
        (self.folder / "000003.jsonl").write_bytes(b"")
        (self.folder / "notes.txt").write_bytes(b"")
        file = self.file()
        file.append(1, {})
        file.flush()
        self.assertGreater((self.folder / "000003.jsonl").stat().st_size, 0)
        self.assertFalse(self.first.exists())

    def test_a_folder_that_cannot_be_written_is_a_warning(self):
        self.folder.write_bytes(b"in the way")
        file = self.file()
        file.append(1, {})
        file.flush()
        file.sync()
        self.assertIn("cannot write metrics", self.stderr.getvalue())

    def test_threads_and_processes_share_the_file(self):
        script = (
            "import sys, threading, zed\n"
            "def work(first):\n"
            "    for step in range(first, first + 200): zed.log(step=step, loss=0.5)\n"
            "threads = [threading.Thread(target=work, args=(int(sys.argv[1]) + k * 200,)) for k in range(3)]\n"
            "[t.start() for t in threads]; [t.join() for t in threads]\n"
        )
        package = os.path.join(os.path.dirname(support.__file__), os.pardir)
        environ = {**os.environ, **self.environ, "PYTHONPATH": package}
        children = [
            subprocess.Popen([sys.executable, "-c", script, str(first)], env=environ) for first in (0, 600)
        ]
        self.assertEqual([child.wait(60) for child in children], [0, 0])
        self.assertEqual(sorted(record["s"] for record in read_metrics(self.job_dir)), list(range(1200)))

    def test_a_killed_process_leaves_whole_lines(self):
        script = "import zed\nstep = 0\nwhile True:\n    step += 1\n    zed.log(step=step, loss=0.5)\n"
        package = os.path.join(os.path.dirname(support.__file__), os.pardir)
        environ = {**os.environ, **self.environ, "PYTHONPATH": package}
        child = subprocess.Popen([sys.executable, "-c", script], env=environ)
        end = time.monotonic() + 30
        while time.monotonic() < end and not list(read_metrics(self.job_dir)):
            time.sleep(0.02)
        child.kill()
        child.wait()
        steps = [record["s"] for record in read_metrics(self.job_dir)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertGreater(len(steps), 0)

    def test_log_never_waits_for_a_slow_disk_sync(self):
        release = threading.Event()
        self.addCleanup(release.set)
        file = self.file()
        file.append(1, {})
        file.flush()
        with mock.patch("os.fsync", lambda descriptor: release.wait(10)):
            syncing = threading.Thread(target=file.sync)
            syncing.start()
            began = time.monotonic()
            file.append(2, {})
            self.assertLess(time.monotonic() - began, 0.5)
            release.set()
            syncing.join()


if __name__ == "__main__":
    unittest.main()
