"""Shells of the tests: erl and iex that know where a development fleet's controller is."""

import http.client
import json
import os
import socket
import subprocess
from pathlib import Path

from support import ROOT

CLIENT = ROOT / "clients/elixir"


def compile_client(folder):
    """The Elixir client's modules, in that folder."""
    sources = sorted(map(str, (CLIENT / "lib").rglob("*.ex")))
    subprocess.run(["elixirc", "-o", str(folder), *sources], check=True, capture_output=True, text=True,
                   env=dict(os.environ, LANG="C.UTF-8"), timeout=120)  # fmt: skip
    return folder


class Shell:
    """Runs expressions in shells that are nodes; the fleet's hosts all are this machine."""

    def __init__(self, fleet, folder):
        self.fleet = fleet
        self.folder = folder
        described = json.loads((fleet.dir / "fleet.json").read_text())
        self.port = described["controller"]["port"]
        self.agent_ports = {node["name"]: node["port"] for node in described["nodes"]}
        self.controller = f"zed_controller@{described['controller']['host']}"
        self.cookie = next(path for path in fleet.dir.rglob("cookie") if path.is_file()).read_text().strip()
        hosts = " ".join(f'"{node["name"]}",' for node in described["nodes"]).rstrip(",")
        inetrc = folder / "inetrc"
        inetrc.write_text(f"{{host, {{127,0,0,1}}, [{hosts}]}}.\n{{lookup, [file, native]}}.\n")
        self.environment = dict(fleet.environment, HOME=str(folder), ERL_INETRC=str(inetrc), LANG="C.UTF-8",
                                ERL_CRASH_DUMP_SECONDS="0", ZED_CONTROLLER_NODE=self.controller)  # fmt: skip

    def _flags(self, port):
        return ["-start_epmd", "false", "-erl_epmd_port", str(port or self.port), "-dist_listen", "false"]

    def erl(self, expression, port=None, name="e2e"):
        """What the expression gives, as Erlang prints it."""
        run = f'R = ({expression}), io:format("~0tp~n", [R]), halt(0).'
        return self._run(["erl", "-noinput", "-sname", f"{name}{os.getpid()}@localhost", "-setcookie", self.cookie,
                          *self._flags(port), "-eval", run], "")  # fmt: skip

    def call(self, function, arguments="[]"):
        request = f"{{zed, 1, 'Elixir.Zed.Cluster', {function}, {arguments}}}"
        return self.erl(f"gen_server:call({{zed, '{self.controller}'}}, {request}, 20000)")

    def iex(self, lines, modules):
        """All that iex printed for these lines, typed by a person who then leaves."""
        words = ["iex", "--sname", f"iex{os.getpid()}@localhost", "--cookie", self.cookie, "--erl",
                 " ".join(self._flags(None)), "--dot-iex", "", "-pa", str(modules)]  # fmt: skip
        return self._run(words, lines + "\nSystem.halt(0)\n", timeout=180)

    def _run(self, words, typed, timeout=60):
        done = subprocess.run(words, input=typed, capture_output=True, text=True, timeout=timeout, cwd=self.folder,
                              env=self.environment)  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"{words[0]}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout


class OverSocket(http.client.HTTPConnection):
    """HTTP to the controller's UNIX socket."""

    def __init__(self, fleet, timeout=60):
        super().__init__("zed", timeout=timeout)
        self.path = json.loads((fleet.dir / "fleet.json").read_text())["socket"]

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, target, body=None):
        """Status and document."""
        self.request(method, target, body=None if body is None else json.dumps(body))
        answer = self.getresponse()
        return answer.status, json.loads(answer.read())
