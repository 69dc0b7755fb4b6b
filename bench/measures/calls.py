"""A shell's call to the controller, against the same call to a real BEAM node."""

import json
import os
import shutil
import statistics
import subprocess

from .fleet import begin_fleet, running_fleet
from .machine import BenchError, free_port, process, wait_until
from .table import Row

# What the controller answers to `transfers` on an idle fleet, said by a plain gen_server loop.
PEER = """
Loop = fun Loop() -> receive
  {'$gen_call', From, {zed, 1, 'Elixir.Zed.Cluster', transfers, _}} ->
    gen_server:reply(From, {ok, #{schema => 1, transfers => []}}), Loop();
  _ -> Loop() end end,
register(zed, self()), io:format("ready~n"), Loop().
"""
# Warm, then one call after another, then 50 processes at once. Prints microseconds and calls a second.
CALLER = """
Z = {zed, list_to_atom(os:getenv("BENCH_NODE"))},
Call = fun() -> {ok, #{transfers := []}} = gen_server:call(Z, {zed, 1, 'Elixir.Zed.Cluster', transfers, []}) end,
Times = fun Times(0, T) -> T; Times(N, T) -> A = erlang:monotonic_time(nanosecond), Call(),
  Times(N - 1, [erlang:monotonic_time(nanosecond) - A | T]) end,
Times(500, []),
Sorted = lists:sort(Times(%(count)d, [])),
At = fun(P) -> lists:nth(max(1, round(P * length(Sorted))), Sorted) / 1000 end,
Self = self(), Each = %(count)d div 10,
B = erlang:monotonic_time(nanosecond),
[spawn(fun() -> [Call() || _ <- lists:seq(1, Each)], Self ! done end) || _ <- lists:seq(1, 50)],
[receive done -> ok end || _ <- lists:seq(1, 50)],
Rate = 50 * Each / ((erlang:monotonic_time(nanosecond) - B) / 1.0e9),
io:format("~.2f ~.2f ~.1f~n", [At(0.5), At(0.99), Rate]), halt(0).
"""
TURNS = 3


class Shells:
    """BEAM nodes that can speak with one another and with a controller: how they are started.

    `security(name)`: the words and the cookie of a node with that name before the @."""

    def __init__(self, bench, folder, controller, port, host_of, security):
        self.count = bench.count(2000, 100)
        self.controller, self.port, self.host_of, self.security = controller, port, host_of, security
        hosts = folder / "inetrc"
        names = ", ".join(json.dumps(name) for name in sorted({controller.split("@")[1], *map(host_of, ("peer", "bench"))}))
        hosts.write_text(f'{{host, {{127,0,0,1}}, [{names}]}}.\n{{lookup, [file, native]}}.\n')
        self.environment = dict(os.environ, HOME=str(folder), ERL_INETRC=str(hosts), ERL_CRASH_DUMP_SECONDS="0")

    def command(self, name, port, *words):
        return ["erl", "-noinput", "-sname", f"{name}@{self.host_of(name)}", *self.security(name), "-start_epmd", "false",
                "-erl_epmd_port", str(port), *words]  # fmt: skip

    def times(self, port, to):
        """p50 and p99 in microseconds, and calls a second."""
        command = self.command("bench", port, "-dist_listen", "false", "-eval", CALLER % {"count": self.count})
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=dict(self.environment, BENCH_NODE=to))  # fmt: skip
        if done.returncode != 0:
            raise BenchError(f"a shell could not call {to}: {(done.stdout + done.stderr)[-500:]}")
        return [float(word) for word in done.stdout.split()]

    def rows(self, turns, suffix):
        theirs = free_port()
        peer_words = ("-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-eval", PEER)
        with process(self.command("peer", theirs, *peer_words), env=self.environment, text=True,
                     stdout=subprocess.PIPE) as peer:  # fmt: skip
            wait_until("the peer", lambda: peer.stdout.readline().strip() == "ready", 30)
            measured = [(self.times(self.port, self.controller), self.times(theirs, f"peer@{self.host_of('peer')}"))
                        for _ in range(turns)]  # fmt: skip
        zed, erl = ([statistics.median(turn[side][i] for turn in measured) for i in range(3)] for side in (0, 1))
        return [
            Row("calls", "GenServer.call to the controller, p50" + suffix, zed[0], "us", "erl to erl", erl[0]),
            Row("calls", "GenServer.call to the controller, p99" + suffix, zed[1], "us", "erl to erl", erl[1]),
            Row("calls", "calls of 50 processes" + suffix, zed[2], "/s", "erl to erl", erl[2]),
        ]


def plain(bench):
    with running_fleet(bench, "calls") as fleet:
        cookie = next(path for path in fleet.dir.rglob("cookie") if path.is_file()).read_text().strip()
        shells = Shells(bench, fleet.folder, "zed_controller@n1", fleet.described()["controller"]["port"],
                        lambda name: "localhost", lambda name: ["-setcookie", cookie])  # fmt: skip
        return shells.rows(bench.count(TURNS, 1), "")


def with_tls(bench):
    """The controller of a fleet with certificates, both shells with one each of its authority."""
    folder = bench.new_folder("calls-tls")
    home = dict(os.environ, HOME=str(folder), XDG_RUNTIME_DIR=str(folder))
    state, port, http_port = folder / "c", free_port(), free_port()

    def run(program, *words, person="bench"):
        done = subprocess.run([bench.program(program), *map(str, words)], capture_output=True, text=True,
                              env=dict(home, XDG_CONFIG_HOME=str(folder / person)))  # fmt: skip
        if done.returncode != 0:
            raise BenchError(f"{program} {words[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    begin_fleet(bench, state, "ctl")
    door = state / "controller.sock"
    with open(folder / "log", "w") as log, \
         process([bench.program("zed-controller"), "run", f"--state={state}", "--listen=127.0.0.1", f"--port={port}",
                  f"--http-port={http_port}"], env=home, stdout=log, stderr=log):  # fmt: skip
        wait_until("the controller", door.exists)
        for name in ("bench", "peer"):
            token = run("zedctl", "--socket", door, "token", "create", "--node", name, "--role", "operator")
            run("zedctl", "login", f"127.0.0.1:{http_port}", "--token", token, person=name)
            run("zedctl", "shell-config", person=name)

        def security(name):
            fleet = folder / name / "zed/fleets/ctl"
            cookie = (fleet / "cookie").read_text().strip()
            return ["-setcookie", cookie, "-proto_dist", "inet_tls", "-ssl_dist_optfile", str(fleet / "inet_tls.conf")]

        shells = Shells(bench, folder, "zed_controller@ctl", port, lambda name: name, security)
        return shells.rows(bench.count(TURNS, 1), ", TLS 1.3")


def measure(bench):
    """GenServer.call of a BEAM shell to the controller, plain and by TLS, p50, p99, 50 processes; `erl` is the peer."""
    if shutil.which("erl") is None:
        raise BenchError("erl is not installed: apt-get install erlang-base")
    return plain(bench) + with_tls(bench)
