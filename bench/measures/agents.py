"""What many agents cost the process that they are connected to, the controller, beside a BEAM node with as many."""

import contextlib
import os
import select
import shutil
import socket
import statistics
import subprocess
import time

from .fleet import SocketConnection, begin_fleet
from .machine import BenchError, cpu_share, free_port, process, rss_mb, wait_until
from .table import Row, bound

# (agents, by TLS) -> MB; the budget of 10,000 is the only one that the design gives for many.
MANY_MB = {(10_000, False): 150, (10_000, True): 400}
# Each agent is two open files of its process.
MOST_A_PROCESS = 2500
HEARTBEATS_CPU = 10


def wait_for_line(child, wanted, patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        readable, _, _ = select.select([child.stdout], [], [], 0.5)
        line = child.stdout.readline() if readable else ""
        if line.strip() == wanted:
            return
        if child.poll() is not None or (readable and not line) or line.startswith("lost"):
            raise BenchError(f"the simulated agents ended before they were {wanted}: {line.strip()}")
    raise BenchError(f"the simulated agents were not {wanted} in {patience} s")


class Agents:
    """Simulated agents, in as many processes as they need."""

    def __init__(self, bench, stack, count, port, cookie, security):
        each = -(-count // -(-count // MOST_A_PROCESS))
        firsts = range(1, count + 1, each)
        self.shares = [min(each, count + 1 - first) for first in firsts]
        self.processes = [
            stack.enter_context(process([bench.program("agents_bench"), "--controller", f"bench@127.0.0.1:{port}",
                                         "--cookie-file", cookie, "--first", first, "--count", share, *security],
                                        stdout=subprocess.PIPE, text=True))
            for first, share in zip(firsts, self.shares)]  # fmt: skip

    def wait_until_told(self, patience):
        for child, share in zip(self.processes, self.shares):
            wait_for_line(child, f"ready {share}", patience)


def fan_out_ms(order, agents):
    """From an order until every agent has it: median of some."""
    times = []
    for turn in range(5):
        begin = time.monotonic()
        order(turn)
        agents.wait_until_told(60)
        times.append((time.monotonic() - begin) * 1000)
    return statistics.median(times)


def figures_of(bench, pid, order, agents):
    """RSS in MB, CPU in per cent of a core, fan-out in ms, of a process whose agents are all there."""
    time.sleep(bench.count(6, 0))
    cpu = cpu_share([pid], bench.count(20, 1))[0]
    memory = rss_mb(pid)
    return memory, cpu, fan_out_ms(order, agents)


def of_controller(bench, count, tls):
    """The controller with so many agents. Its order: a cluster file is applied, all are told what it declares."""
    folder = bench.new_folder(f"agents-{count}{'-tls' * tls}")
    port, state = free_port(), folder / "controller"
    door = folder / "door.sock"
    words = ["run", f"--state={state}", f"--port={port}", f"--socket={door}"]
    security = []
    if tls:
        begin_fleet(bench, state, "bench")
        words += ["--listen=127.0.0.1", "--http-port=0"]
        security = ["--pki", state / "pki"]
    else:
        words.append("--name=bench")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(folder / "log", "w"))
        controller = stack.enter_context(process([bench.program("zed-controller"), *words], stdout=log, stderr=log))
        wait_until("the controller", door.exists)
        agents = Agents(bench, stack, count, port, state / "cookie", security)
        agents.wait_until_told(180)
        connection = SocketConnection(str(door))
        wait_until("all to be up", lambda: connection.call("status")["nodes"].get("up", 0) == count, 60, 0.5)
        return figures_of(bench, controller.pid, lambda turn: connection.call(
            "apply", text=f"deploy :fan_out_{turn} do\nend\n"), agents)  # fmt: skip


# A process of that name that says welcome to each agent, and, told by a line, once more to all of them at once.
BEAM = """
Welcome = #{<<"type">> => welcome, <<"term">> => <<"1-00000000000000000000000000000001">>,
  <<"journal_second">> => <<>>, <<"declared">> => nil, <<"roots">> => []},
register(zed, self()), Self = self(),
{ok, Door} = gen_tcp:listen(%d, [{ip, {127, 0, 0, 1}}, binary, {packet, line}, {active, false}]),
spawn_link(fun() -> {ok, Order} = gen_tcp:accept(Door),
  (fun Next() -> {ok, _} = gen_tcp:recv(Order, 0), Self ! tell_all, Next() end)() end),
io:format("ready~n"),
(fun Loop() -> receive
  tell_all -> [{zed, Node} ! Welcome || Node <- nodes(hidden)];
  #{<<"type">> := hello, <<"name">> := Name} -> {zed, binary_to_atom(<<"zed@", Name/binary>>)} ! Welcome;
  _ -> ok end, Loop() end)().
"""


def of_beam(bench, count, tls):
    """A BEAM node that the same agents join, and that tells all of them the same."""
    folder = bench.new_folder(f"beam-{count}{'-tls' * tls}")
    port, order_port, cookie = free_port(), free_port(), folder / "cookie"
    cookie.write_text("only-for-measuring\n")
    cookie.chmod(0o600)
    (folder / "inetrc").write_text('{host, {127,0,0,1}, ["bench"]}.\n{lookup, [file, native]}.\n')
    words = ["erl", "-noinput", "-sname", "zed_controller@bench", "-setcookie", cookie.read_text().strip(),
             "-start_epmd", "false", "-erl_epmd_port", port, "-kernel", "inet_dist_use_interface", "{127,0,0,1}"]  # fmt: skip
    security = []
    if tls:
        begin_fleet(bench, folder / "c", "bench")
        pki = folder / "c/pki"
        end = (f'{{certfile, "{pki}/node.pem"}}, {{keyfile, "{pki}/node.pem"}}, {{cacertfile, "{pki}/ca.pem"}}, '
               "{verify, verify_peer}, {versions, ['tlsv1.3']}")
        (folder / "inet_tls.conf").write_text(f"[{{server, [{end}, {{fail_if_no_peer_cert, true}}]}}, {{client, [{end}]}}].\n")
        words += ["-proto_dist", "inet_tls", "-ssl_dist_optfile", folder / "inet_tls.conf"]
        security = ["--pki", pki]
    home = dict(os.environ, HOME=str(folder), ERL_INETRC=str(folder / "inetrc"), ERL_CRASH_DUMP_SECONDS="0")
    with contextlib.ExitStack() as stack:
        beam = stack.enter_context(process([*words, "-eval", BEAM % order_port], env=home, text=True,
                                           stdout=subprocess.PIPE))  # fmt: skip
        wait_for_line(beam, "ready", 90)
        agents = Agents(bench, stack, count, port, cookie, security)
        agents.wait_until_told(300)
        orders = stack.enter_context(socket.create_connection(("127.0.0.1", order_port)))
        return figures_of(bench, beam.pid, lambda turn: orders.sendall(b"tell all\n"), agents)


def rows_of(bench, tls):
    counts = sorted([1, 10] if bench.tiny else bench.agents)
    has_beam = shutil.which("erl") is not None
    smallest, rows = None, []
    for count in counts:
        found = of_controller(bench, count, tls)
        smallest = smallest or found
        peer, peer_found = ("erl", of_beam(bench, count, tls)) if has_beam else (f"with {counts[0]:,}", smallest)
        name = f"controller, {count:,} simulated agent" + ("s" if count != 1 else "") + (", TLS" if tls else "")
        budget = MANY_MB.get((count, tls))
        if budget:
            rows.append(bound("agents", name, found[0], "MB", budget, "<"))
        rows.append(Row("agents", name, found[0], "MB", peer, peer_found[0]))
        rows.append(bound("agents", name + ", CPU", found[1], "% of a core", HEARTBEATS_CPU, "<"))
        rows.append(Row("agents", name + ", CPU", found[1], "% of a core", peer, peer_found[1]))
        rows.append(Row("agents", name + ", fan-out", found[2], "ms", peer, peer_found[2]))
    return rows


def measure_plain(bench):
    """Controller with 1, 100 and 1,000 agents: memory, CPU, and how soon all have an order; `erl` is the peer."""
    return rows_of(bench, False)


def measure_tls(bench):
    """The same by TLS."""
    return rows_of(bench, True)
