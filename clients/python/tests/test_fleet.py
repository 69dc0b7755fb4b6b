"""zed.Client against a controller's socket that says what a test wants."""

import http.server
import json
import os
import shutil
import socketserver
import tempfile
import threading
import unittest

import support  # noqa: F401  # the package's place
import zed
from zed import fleet


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        status, reply = self.server.replies.get(self.path, (404, b'{"error":{"code":"not_found","message":"no"}}'))
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class FleetTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="zed-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.path = os.path.join(self.root, "c")
        self.server = Server(self.path, Handler)
        self.server.asked, self.server.replies = [], {}
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.client = zed.Client(self.path)

    def answer(self, operation, reply, status=200):
        self.server.replies[f"/v1/{operation}"] = (status, json.dumps(reply).encode())

    def test_rows_are_items_and_attributes(self):
        self.answer("jobs", {"schema": 1, "jobs": [{"name": "digits", "state": "running", "metrics": {"loss": "0.1"}}]})
        jobs = self.client.jobs(all=True)
        self.assertEqual(self.server.asked, [("/v1/jobs", {"all": True})])
        self.assertEqual((jobs[0].name, jobs[0]["state"], jobs[0].metrics.loss), ("digits", "running", "0.1"))
        with self.assertRaisesRegex(AttributeError, "no field 'nmae'; there are name, state, metrics"):
            _ = jobs[0].nmae

    def test_a_notebook_shows_tables_and_curves_and_no_markup_of_others(self):
        self.answer("jobs", {"jobs": [{"name": "<script>", "state": "running"}]})
        shown = self.client.jobs()._repr_html_()
        self.assertIn("<td>&lt;script&gt;</td>", shown)
        self.assertNotIn("<script>", shown)
        series = {"name": "<b>", "steps": [1, 2], "values": [3.0, 1.0], "count": 2, "not_finite": 0}
        self.answer("metrics", {"series": [series]})
        curve = self.client.metrics("digits")["<b>"]._repr_html_()
        self.assertIn('points="0.0,0.0 480.0,160.0"', curve)
        self.assertNotIn("<b>", curve)

    def test_errors_have_their_code_and_hint(self):
        error = {"code": "refused", "message": "it runs already", "frames": ["dispatch"], "hint": "zedctl why digits"}
        self.answer("dispatch", {"schema": 1, "error": error}, 403)
        with self.assertRaises(zed.FleetError) as caught:
            self.client.dispatch("digits")
        self.assertEqual((caught.exception.code, caught.exception.hint), ("refused", "zedctl why digits"))
        self.assertIn("dispatch: it runs already", str(caught.exception))

    def test_an_answer_that_is_no_json_is_an_error(self):
        self.server.replies["/v1/status"] = (200, b"<html>")
        with self.assertRaises(zed.FleetError) as caught:
            self.client.status()
        self.assertEqual(caught.exception.code, "corrupt")

    def test_nobody_there_is_an_error_with_a_hint(self):
        with self.assertRaises(zed.FleetError) as caught:
            zed.Client(os.path.join(self.root, "nobody")).status()
        self.assertEqual(caught.exception.code, "unavailable")

    def test_run_marks_its_submit(self):
        self.answer("run", {"job": {"name": "train", "state": "pending"}})
        job = self.client.run(["python3", "train.py"], requires="vram:24", code=self.root, env={"A": "1"})
        self.assertEqual(job.name, "train")
        _, body = self.server.asked[0]
        self.assertEqual(body["argv"], ["python3", "train.py"])
        self.assertEqual(len(body["uuid"]), 32)
        self.assertEqual(body["code"], os.path.realpath(self.root))

    def test_a_command_may_be_one_text(self):
        self.answer("run", {"job": {"name": "train", "state": "pending"}})
        self.client.run("python3 train.py --name 'a b'", requires="vram=24", priority=5)
        _, body = self.server.asked[0]
        self.assertEqual(body["argv"], ["python3", "train.py", "--name", "a b"])
        self.assertEqual((body["requirement"], body["priority"]), ("vram:24", 5))
        for nothing in ("", [], "  "):
            with self.assertRaisesRegex(ValueError, "needs a command"):
                self.client.run(nothing)

    def test_a_metric_that_was_not_logged_is_an_error(self):
        self.answer("metrics", {"series": [], "other_names": ["loss", "accuracy"]})
        with self.assertRaisesRegex(zed.FleetError, "has not logged los .next: it logged loss, accuracy") as caught:
            self.client.metrics("digits", "los")
        self.assertEqual(caught.exception.code, "not_found")

    def test_wait_ends_with_the_job(self):
        states = iter(["pending", "running", "succeeded"])
        client = self.client
        client.job = lambda name: fleet.Row({"state": next(states)})
        self.assertEqual(client.wait("digits", every=0.0).state, "succeeded")
        client.job = lambda name: fleet.Row({"state": "running"})
        with self.assertRaises(TimeoutError):
            client.wait("digits", timeout=0.0)

    def test_the_controller_is_found_as_zedctl_finds_it(self):
        self.assertEqual(fleet.find_controller({"ZED_CONTROLLER": "/x"}), "/x")
        runtime = os.path.join(self.root, "zed-dev")
        os.mkdir(runtime, 0o700)
        os.mkdir(os.path.join(self.root, "state"))
        with open(os.path.join(self.root, "state", "fleet.json"), "w", encoding="utf-8") as file:
            json.dump({"socket": "/dev-fleet"}, file)
        with open(os.path.join(runtime, "current"), "w", encoding="utf-8") as file:
            file.write(os.path.join(self.root, "state") + "\n")
        self.assertEqual(fleet.find_controller({"XDG_RUNTIME_DIR": self.root}), "/dev-fleet")
        os.chmod(runtime, 0o777)
        home = {"XDG_RUNTIME_DIR": self.root, "XDG_STATE_HOME": os.path.join(self.root, "state")}
        if any(os.path.exists(path) for path in fleet._SYSTEM_SOCKETS):
            return
        with self.assertRaises(FileNotFoundError):
            fleet.find_controller(home)
        usual = os.path.join(self.root, "state", "zed", "controller", "controller.sock")
        os.makedirs(os.path.dirname(usual))
        with open(usual, "w", encoding="utf-8"):
            self.assertEqual(fleet.find_controller(home), usual)


if __name__ == "__main__":
    unittest.main()
