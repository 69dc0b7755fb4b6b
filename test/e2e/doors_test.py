"""One table of operations behind every door, and who may come in by which."""

import json
import re
import shutil
import unittest

from shells import OverSocket, Shell
from support import FleetCase, wait_for

# A short name's host has to resolve, so the machine is called localhost here.
NODES = [{"name": "localhost", "pool": "tank", "gpus": "rtx-4090"}]


@unittest.skipUnless(shutil.which("erl"), "erl is not installed")
class Doors(FleetCase):
    nodes = NODES

    def setUp(self):
        super().setUp()
        self.shell = Shell(self.fleet, self.folder)
        self.http = OverSocket(self.fleet)
        self.addCleanup(self.http.close)

    def test_every_operation_answers_alike_by_http_and_by_erlang(self):
        _, table = self.http.ask("GET", "/v1/operations")
        names = [row["name"] for row in table["operations"]]
        self.assertGreater(len(names), 15)
        _, document = self.http.ask("GET", "/v1/openapi.json")
        self.assertEqual([name for name in names if f"/v1/{name}" not in document["paths"]], [])
        functions = ", ".join(f"'{name.replace('-', '_')}'" for name in names)
        said = self.shell.erl(
            "begin K = fun({ok, _}) -> ok; ({error, Kind, _}) -> Kind end, "
            f"[{{F, K(gen_server:call({{zed, '{self.shell.controller}'}}, {{zed, 1, 'Elixir.Zed.Cluster', F, []}})), "
            f"K(rpc:call('{self.shell.controller}', 'Elixir.Zed.Cluster', F, []))}} || F <- [{functions}]] end"
        )
        kinds = {name: kinds for name, *kinds in re.findall(r"\{'?(\w+)'?,(\w+),(\w+)\}", said)}
        for name in names:
            status, reply = self.http.ask("POST", f"/v1/{name}", {})
            expected = "ok" if status == 200 else reply["error"]["code"]
            self.assertEqual(kinds.get(name.replace("-", "_")), [expected, expected], name)

    def test_only_the_table_can_be_called(self):
        node = self.shell.controller
        self.assertIn("{ok,", self.shell.erl(f"rpc:call('{node}', 'Elixir.Zed.Cluster', status, [])"))
        self.assertIn("{error,not_found",
                      self.shell.erl(f"erpc:call('{node}', 'Elixir.Zed.Cluster', why, [[{{job, nosuch}}]])"))  # fmt: skip
        for call in ("os, cmd, [\"id\"]", "'Elixir.Zed.Cluster', status, [a, b]", "'Elixir.Zed.Cluster', frob, []",
                     "'Elixir.System', halt, [0]", "erlang, halt, []"):  # fmt: skip
            self.assertIn("undef", self.shell.erl(f"element(2, rpc:call('{node}', {call}))"), call)
        self.assertIn("noproc", self.shell.erl(f"catch gen_server:call({{init, '{node}'}}, stop)"))
        self.assertIn("undef", self.shell.erl(f"begin S = spawn_request('{node}', erlang, halt, [], [monitor]), "
                                              "receive {spawn_reply, S, error, W} -> W end end"))  # fmt: skip

    def test_declared_names_are_atoms_and_no_other(self):
        self.apply("node :localhost", self.counter(epochs=1))
        said = self.shell.call("jobs", "[[{all, true}]]")
        self.assertIn("name => job", said)
        self.assertIn("declared_only => true", said)
        said = self.shell.call("nodes")
        self.assertIn("name => localhost", said)
        self.assertIn("pool => <<\"tank\">>", said)
        # A name that somebody made up comes back as text.
        said = self.shell.call("why", "[#{job => made_up_by_nobody}]")
        self.assertRegex(said, r'\{error,not_found,<<".*made_up_by_nobody')

    def test_events_are_messages(self):
        self.apply(self.counter(epochs=1))
        node = self.shell.controller
        said = self.shell.erl(
            f"begin Z = {{zed, '{node}'}}, C = fun(F, A) -> gen_server:call(Z, {{zed, 1, 'Elixir.Zed.Cluster', F, A}}) end, "
            "{ok, #{last := L}} = C(watch, []), {ok, _} = C(dispatch, [#{job => job, uuid => <<\"0000000000000000000000000000000f\">>}]), "
            "Get = fun() -> receive {zed_event, E} -> E after 20000 -> none end end, "
            "#{number := First} = Get(), true = First =:= L + 1, {ok, _} = C(unwatch, []), "
            "{ok, #{events := Missed}} = C(watch, [[{'after', L}]]), true = length(Missed) > 0, "
            "#{number := First} = hd(Missed), fine end"
        )
        self.assertEqual(said, "fine\n")

    def test_agents_refuse_shells(self):
        port = self.shell.agent_ports["localhost"]
        self.assertIn("pang", self.shell.erl("net_adm:ping(zed@localhost)", port=port))
        # Not even one that calls itself an agent.
        self.assertIn("pang", self.shell.erl("net_adm:ping(zed@localhost)", port=port, name="zed"))
        self.assertIn("pong", self.shell.erl(f"net_adm:ping('{self.shell.controller}')"))

    def test_a_restarted_controller_is_found_again(self):
        node = self.shell.controller
        self.assertIn("pong", self.shell.erl(f"net_adm:ping('{node}')"))
        self.fleet.kill("controller")
        self.fleet.up()
        wait_for("the controller to answer a shell", lambda: "{ok," in self.shell.call("status"))

    def test_what_a_stranger_says_in_the_handshake_changes_nothing(self):
        wrong = Shell(self.fleet, self.folder)
        wrong.cookie = "not-the-cookie"
        self.assertIn("pang", wrong.erl(f"net_adm:ping('{self.shell.controller}')"))
        self.assertEqual(json.loads(self.fleet.do("status", "--json").stdout)["nodes"], {"up": 1})


if __name__ == "__main__":
    unittest.main()
