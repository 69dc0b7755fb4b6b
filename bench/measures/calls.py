"""A shell's call to the controller, against the same call to a real BEAM node."""

import os
import shutil
import statistics
import subprocess

from .fleet import running_fleet
from .machine import BenchError, wait_until
from .memory import free_port, process
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


def node(name, cookie, port, listens):
    words = ["erl", "-noinput", "-sname", f"{name}@localhost", "-setcookie", cookie, "-start_epmd", "false",
             "-erl_epmd_port", str(port)]
    return words + (["-kernel", "inet_dist_use_interface", "{127,0,0,1}"] if listens else ["-dist_listen", "false"])


def call_times(bench, environment, cookie, port, to):
    """p50 and p99 in microseconds, and calls a second."""
    script = CALLER % {"count": bench.count(2000, 100)}
    done = subprocess.run([*node(f"bench{os.getpid()}", cookie, port, False), "-eval", script], capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL, env=dict(environment, BENCH_NODE=to))
    if done.returncode != 0:
        raise BenchError(f"a shell could not call {to}: {(done.stdout + done.stderr)[-500:]}")
    return [float(word) for word in done.stdout.split()]


def measure(bench):
    """GenServer.call of a BEAM shell to the controller: p50, p99, calls a second with 50 processes; `erl` is the peer."""
    if shutil.which("erl") is None:
        raise BenchError("erl is not installed: apt-get install erlang-base")
    with running_fleet(bench, "calls") as fleet:
        hosts = fleet.folder / "inetrc"
        hosts.write_text('{host, {127,0,0,1}, ["n1"]}.\n{lookup, [file, native]}.\n')
        environment = dict(os.environ, HOME=str(fleet.folder), ERL_INETRC=str(hosts), ERL_CRASH_DUMP_SECONDS="0")
        cookie = next(path for path in fleet.dir.rglob("cookie") if path.is_file()).read_text().strip()
        ours, theirs = fleet.described()["controller"]["port"], free_port()
        with process([*node("peer", cookie, theirs, True), "-eval", PEER], env=environment, text=True,
                     stdout=subprocess.PIPE) as peer:
            wait_until("the peer", lambda: peer.stdout.readline().strip() == "ready", 30)
            turns = [(call_times(bench, environment, cookie, ours, "zed_controller@n1"),
                      call_times(bench, environment, cookie, theirs, "peer@localhost"))
                     for _ in range(bench.count(TURNS, 1))]
    zed, erl = ([statistics.median(turn[side][i] for turn in turns) for i in range(3)] for side in (0, 1))
    return [
        Row("calls", "GenServer.call to the controller, p50", zed[0], "us", "erl to erl", erl[0]),
        Row("calls", "GenServer.call to the controller, p99", zed[1], "us", "erl to erl", erl[1]),
        Row("calls", "calls of 50 processes", zed[2], "/s", "erl to erl", erl[2]),
    ]
