"""An Erlang shell asks the controller what zedctl asks."""

import json
import shutil
import subprocess
import unittest

from support import FleetCase

# A short name's host has to resolve, so the machine is called localhost here.
NODES = [{"name": "localhost", "pool": "tank", "gpus": "rtx-4090"}]


@unittest.skipUnless(shutil.which("erl"), "erl is not installed")
class Erl(FleetCase):
    nodes = NODES

    def ask(self, request):
        fleet = json.loads((self.fleet.dir / "fleet.json").read_text())
        port = fleet["controller"]["port"]
        cookie = next(path for path in self.fleet.dir.rglob("cookie") if path.is_file()).read_text().strip()
        call = (f"R = gen_server:call({{zed, 'zed_controller@localhost'}}, {request}, 5000), "
                'io:format("~0tp~n", [R]), halt(0).')
        done = subprocess.run(
            ["erl", "-noinput", "-sname", f"e2e{port}@localhost", "-setcookie", cookie, "-start_epmd", "false",
             "-erl_epmd_port", str(port), "-dist_listen", "false", "-eval", call],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=self.folder,
            env=dict(self.fleet.environment, HOME=str(self.folder)),
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_jobs(self):
        self.assertIn("{ok,", self.ask("{zed, 1, 'Elixir.Zed.Cluster', jobs, []}"))
        self.dispatch(self.counter(epochs=1))
        self.fleet.wait_state("succeeded")
        answer = self.ask("{zed, 1, 'Elixir.Zed.Cluster', jobs, [#{all => true}]}")
        self.assertIn("{ok,", answer)
        self.assertIn(self.fleet.job()["id"], answer)
        self.assertIn("{error,not_found", self.ask("{zed, 1, 'Elixir.Zed.Cluster', why, [#{job => <<\"nosuch\">>}]}"))
        self.assertIn("{error,", self.ask("{zed, 1, 'Elixir.Zed.Cluster', frobnicate, []}"))
        self.assertIn("{error,", self.ask("{anything, [], 1.5}"))

    def test_orders(self):
        self.dispatch(self.counter(allowed=1))
        self.fleet.wait_checkpoint("epoch-1")
        self.assertIn("{ok,", self.ask("{zed, 1, 'Elixir.Zed.Cluster', stop, [#{job => <<\"job\">>}]}"))
        self.fleet.wait_state("stopped")


if __name__ == "__main__":
    unittest.main()
