"""What a job is made of: its setup, its code, its data; and that each checkpoint tells which they were."""

import json
import unittest

from support import ERROR, NOT_FOUND, ONE, TWO, FleetCase, wait_for

# A program that setup installs, as pip would, and a mark outside for each time that it ran.
INSTALL = """
mkdir -p $ZED_SETUP_DIR/bin
printf '#!/bin/sh\\necho tool of %s\\n' "$(cat version)" > $ZED_SETUP_DIR/bin/tool
chmod +x $ZED_SETUP_DIR/bin/tool
echo installed >> {marks}
"""


class CodeCase(FleetCase):
    nodes = ONE

    def setUp(self):
        super().setUp()
        self.code = self.fleet.folder / "files/src"
        self.code.mkdir()
        (self.code / "version").write_text("1\n")
        self.marks = self.fleet.folder / "marks"

    def times(self):
        """How often setup ran."""
        return len(self.marks.read_text().splitlines()) if self.marks.exists() else 0

    def job(self, name, run, setup, more=""):
        return f"""
          job :"{name}" do
            code "./src"
            setup "{setup}"{more}
            run {run}
            retries 0
          end
        """

    def apply(self, *jobs):
        self.fleet.apply("deploy :lab do\n" + "\n".join(jobs) + "\nend\n")

    def install(self):
        (self.code / "install.sh").write_text(INSTALL.format(marks=self.marks))
        return "sh install.sh"


class Setup(CodeCase):
    def test_what_it_installs_is_there_for_all_jobs_of_the_same_code(self):
        setup = self.install()
        self.apply(self.job("first", '["tool"]', setup), self.job("second", '["tool"]', setup))
        for name in ("first", "second"):
            self.fleet.do("dispatch", name, "--wait")
            self.assertIn("tool of 1", self.fleet.log(name))
        self.assertEqual(self.times(), 1)
        self.assertIn("zed: setup: sh install.sh", "\n".join(self.fleet.log("first")))
        self.assertIn("zed: setup was done before", "\n".join(self.fleet.log("second")))
        (self.code / "version").write_text("2\n")  # other code: set up anew
        self.fleet.do("dispatch", "second", "--again", "--wait")
        self.assertIn("tool of 2", self.fleet.log("second"))
        self.assertEqual(self.times(), 2)

    def test_what_it_builds_in_the_folder_is_the_jobs_own(self):
        (self.code / "build.sh").write_text(f"echo built from $(cat version) > program; echo once >> {self.marks}")
        # The second attempt goes on in the same folder.
        command = 'test -e failed && cat program && exit 0; touch failed; exit 1'
        job = self.job("build", f'["sh", "-c", "{command}"]', "sh build.sh").replace("retries 0", "retries 2")
        self.apply(job, self.job("other", '["cat", "program"]', "sh build.sh"))
        for name in ("build", "other"):
            self.fleet.do("dispatch", name, "--wait")
            self.assertIn("built from 1", self.fleet.log(name))
        self.assertEqual(self.times(), 2)

    def test_its_failure_is_the_jobs_and_says_so(self):
        self.apply(self.job("broken", '["true"]', "echo no such package >&2; exit 9"),
                   self.job("slow", '["true"]', "sleep 600", ', timeout: "1 second"'))
        done = self.fleet.zedctl("dispatch", "broken", "--wait", status=ERROR)
        self.assertIn("setup: exit code 9", done.stdout + done.stderr)
        self.assertIn("no such package", self.fleet.log("broken"))
        done = self.fleet.zedctl("dispatch", "slow", "--wait", status=ERROR)
        self.assertIn("setup: ran out of its time limit", done.stdout + done.stderr)
        self.assertEqual(self.fleet.node_status("alpha"), "up")  # nobody holds it against the node


    def slow(self):
        """The text of a job whose setup ends once the marks are there."""
        return self.job("slow", '["true"]', f"while [ ! -e {self.marks} ]; do sleep 0.05; done")

    def wait_for_setup(self):
        self.fleet.do("dispatch", "slow")
        wait_for("the setup to begin", lambda: "zed: setup:" in self.fleet.zedctl("logs", "slow").stdout)
        row = self.fleet.job("slow")
        self.assertEqual(row["state"], "preparing", row)
        self.assertTrue(row["reason"].startswith("setup: while"), row)

    def test_its_job_is_preparing_and_not_running(self):
        self.apply(self.slow())
        self.wait_for_setup()
        self.assert_says(self.fleet.do("jobs"), "preparing", "setup: while")
        pid = self.fleet.pid("alpha")
        self.fleet.kill("alpha")  # the agent that comes after it hears the same
        self.fleet.up()
        self.assertNotEqual(self.fleet.pid("alpha"), pid)
        wait_for("alpha to be up", lambda: self.fleet.node_status("alpha") == "up")
        self.assertEqual(self.fleet.state("slow"), "preparing")
        self.marks.touch()
        self.fleet.wait_state("succeeded", "slow")
        self.assertEqual(self.fleet.job("slow")["attempt"], 1)

    def test_a_stop_during_it(self):
        self.apply(self.slow())
        self.wait_for_setup()
        self.fleet.do("stop", "slow")
        self.fleet.wait_state("stopped", "slow")
        self.marks.touch()
        self.fleet.do("resume", "slow")
        self.fleet.wait_state("succeeded", "slow")


class OnTwoMachines(CodeCase):
    nodes = TWO

    def test_a_submit_is_safe_once_its_code_is_on_both(self):
        self.apply('job :waits do\n code "./src"\n run ["cat", "version"]\n end')
        wait_for("the journal to be on two", lambda: self.fleet.ask("status")["safe"])
        for node in ("alpha", "beta"):
            self.fleet.do("cordon", node)  # so that no start brings it there
        self.fleet.do("dispatch", "waits")
        wait_for("the submit to be safe", lambda: self.fleet.job("waits")["safe"])
        (code,) = [row for row in self.fleet.ask("datasets", "--all")["datasets"] if row["type"] == "code"]
        self.assertEqual({copy["node"] for copy in code["copies"]}, {"alpha", "beta"})
        self.fleet.do("uncordon", "alpha")
        self.fleet.wait_state("succeeded", "waits")

    def test_an_order_says_nothing_of_copies_that_are_there(self):
        self.apply(self.shell("plain", "echo hello"))
        wait_for("the journal to be on two", lambda: self.fleet.ask("status")["safe"])
        done = self.fleet.do("dispatch", "plain")
        self.assertNotIn("not yet copied", done.stdout)


class CodeAndData(CodeCase):
    def stored(self):
        rows = self.fleet.ask("datasets", "--all")["datasets"]
        return [row["dataset"] for row in rows if row["type"] == "code"]

    def test_the_same_code_is_stored_once_and_every_checkpoint_tells_it(self):
        plain = 'job :"{0}" do\n code "./src"\n run ["cat", "version"]\n end'
        self.apply(plain.format("first"), plain.format("second"))
        self.fleet.do("dispatch", "first", "--wait")
        self.fleet.do("dispatch", "second", "--wait")
        self.assertEqual(len(self.stored()), 1)
        self.assertIn("1", self.fleet.log("second"))
        (self.code / "version").write_text("2\n")
        self.fleet.do("dispatch", "second", "--again", "--wait")
        self.assertEqual(len(self.stored()), 2)
        facts = self.fleet.ask("diff", "first@submitted", "second@submitted")["facts"]
        (code,) = [fact for fact in facts if fact["kind"] == "code"]
        self.assertNotEqual(code["a"], code["b"])
        self.assert_says(self.fleet.do("lineage", "first"), "code", self.stored()[0][:12])

    def test_an_array_has_its_code(self):
        self.apply('job :many do\n code "./src"\n shell "cat version; echo rate $ZED_PARAM_LR"\n end')
        self.fleet.do("dispatch", "many", "--array", "lr=0.1,0.2,0.3")
        for number, rate in enumerate(("0.1", "0.2", "0.3"), 1):
            self.fleet.wait_state("succeeded", f"many-{number}")
            self.assertEqual(self.fleet.log(f"many-{number}")[:2], ["1", f"rate {rate}"])
        self.assertEqual(len(self.stored()), 1)

    def test_data_is_that_of_the_submit(self):
        (self.code / "digits.csv").write_text("0,1\n")
        self.apply('dataset "datasets/digits" do\n file "./src/digits.csv"\n end',
                   'job :reader do\n data "datasets/digits"\n shell "cat $ZED_DATA_DIR/digits.csv"\n end')
        self.fleet.do("dispatch", "reader", "--wait")
        self.assertIn("0,1", self.fleet.log("reader"))
        self.assert_says(self.fleet.do("lineage", "reader"), "datasets/digits@v1")

    def test_what_a_script_reads_of_a_run(self):
        done = self.fleet.do("run", "--json", "--setup", "echo ready", "--", "echo", "trained")
        first, *pages, last = map(json.loads, done.stdout.splitlines())
        self.assertEqual(first["job"]["name"], "echo")
        lines = [line["text"] for page in pages for line in page["lines"]]
        self.assertIn("trained", lines)
        self.assertIn("ready", lines)
        self.assertEqual(last["job"]["state"], "succeeded")
        self.fleet.zedctl("run", "--json", "--", "false", status=ERROR)
        done = self.fleet.do("run", "-d", "--json", "--", "true")
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_a_job_that_has_not_begun_has_no_log_yet(self):
        self.apply('job :first do\n run "sleep 600"\n end', 'job :second do\n run "true"\n after :first\n end')
        self.fleet.do("dispatch", "first")
        self.fleet.do("dispatch", "second")
        done = self.fleet.zedctl("logs", "second", status=NOT_FOUND)
        self.assert_says(done, "has not run yet", "zedctl why second")


if __name__ == "__main__":
    unittest.main()
