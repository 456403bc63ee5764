"""The command line as a user meets it: on a terminal and in pipes, its completions, and how `sonde run`
ends."""
import contextlib
import glob
import gzip
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import rig
import terminal
from test_agent import Agent, leak

COMPLETIONS = os.path.join(rig.ROOT, "completions", "sonde.bash")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ROW = re.compile(r" +[0-9.]+[a-zA-Z]* +[0-9.e-]+% +[0-9.e-]+% +[0-9.]+[a-zA-Z]* +[0-9.e-]+%  (.*)")
LONG = "github.com/acme/shop/internal/orders.(*Service).PlaceOrderWithEveryDiscountAndTax"


# --- a profile of our own -------------------------------------------------------------------------


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def pprof_file(path, stacks):
    """stacks: {(root, ..., leaf): nanoseconds of CPU time}."""
    names = sorted({name for stack in stacks for name in stack})
    strings = ["", "cpu", "nanoseconds", *names]
    ids = {name: i + 1 for i, name in enumerate(names)}
    data = message(1, number(1, 1) + number(2, 2))
    for stack, value in stacks.items():
        data += message(2, message(1, b"".join(varint(ids[n]) for n in reversed(stack))) +
                        message(2, varint(value)))
    for name, i in ids.items():
        data += message(4, number(1, i) + message(4, number(1, i) + number(2, 1)))
        data += message(5, number(1, i) + number(2, strings.index(name)))
    data += b"".join(message(6, text.encode()) for text in strings)
    with gzip.open(path, "wb") as f:
        f.write(data)


class Terminals(unittest.TestCase):
    """Sixty functions, called by two that do nothing themselves."""

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.tmp.cleanup)
        cls.file = os.path.join(cls.tmp.name, "cpu.pb.gz")
        cls.later = os.path.join(cls.tmp.name, "later.pb.gz")
        stacks = {("main", "serve", f"work{i:02}"): (1000 + i) * 1000000 for i in range(60)}
        pprof_file(cls.file, stacks | {("main", LONG): 5000 * 1000000})
        pprof_file(cls.later, {stack: value * 2 for stack, value in stacks.items()})

    def rows(self, text):
        return [m.group(1) for line in COLOUR.sub("", text).splitlines() if (m := ROW.fullmatch(line))]

    def piped(self, *args):
        return rig.sonde("show", self.file, *args, check=rig.OK).stdout

    def shown(self, *args, **kwargs):
        code, text = terminal.output("show", self.file, *args, **kwargs)
        self.assertEqual(code, rig.OK, text)
        return text

    def test_a_table_fits_the_terminal_and_says_how_to_see_the_rest(self):
        for columns, lines in ((80, 24), (132, 50), (200, 40)):
            text = COLOUR.sub("", self.shown(columns=columns, lines=lines))
            # The prompt needs a line as well.
            self.assertLess(len(text.splitlines()), lines)
            self.assertLessEqual(max(map(len, text.splitlines())), columns)
            rows = self.rows(text)
            self.assertGreaterEqual(len(rows), lines - 12)
            self.assertEqual(rows[1:], [f"work{59 - i:02}" for i in range(len(rows) - 1)])
            self.assertIn(f"\n{63 - len(rows)} more functions, 2 of them with a flat of 0; use -n 0 to see all\n",
                          text)

    def test_a_long_name_is_cut_in_the_middle_unless_there_is_room(self):
        row = self.rows(self.shown())[0]
        self.assertRegex(row, r"^github\.com/.*….*AndTax$")
        self.assertEqual(self.rows(self.shown(columns=200))[0], LONG)
        tree = COLOUR.sub("", self.shown("-f", "tree"))
        self.assertLessEqual(max(map(len, tree.splitlines())), 80)
        self.assertIn("…", tree)

    def test_all_rows_come_on_request_and_in_a_pipe(self):
        piped = self.piped()
        names = [LONG, *(f"work{59 - i:02}" for i in range(60)), "main", "serve"]
        self.assertEqual(self.rows(piped), names)
        self.assertNotIn("more functions", piped)
        self.assertEqual(self.piped("-n", 0), piped)
        everything = self.shown("-n", 0, columns=200)
        self.assertEqual(COLOUR.sub("", everything), piped)
        self.assertEqual(self.rows(self.shown("-n", 62))[-1], "main")
        self.assertEqual(len(self.rows(self.shown("-n", 3))), 3)
        written = os.path.join(self.tmp.name, "table")
        self.shown("-o", written)
        with open(written) as f:
            self.assertEqual(f.read(), piped)
        rig.sonde("show", self.file, "-n", "-1", check=rig.USAGE)

    def test_a_comparison_fits_as_well(self):
        code, text = terminal.output("diff", self.file, self.later, columns=100, lines=30)
        self.assertEqual(code, rig.OK)
        lines = COLOUR.sub("", text).splitlines()
        self.assertLess(len(lines), 30)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertRegex(lines[-1], r"Omitted \d+ functions .*\(use -n 0 -a to see all\)")
        whole = rig.sonde("diff", self.file, self.later, check=rig.OK).stdout
        for i in range(60):
            self.assertIn(f"work{i:02}", whole)
        self.assertIn("serve", whole)

    def test_goroutines_fit_as_well(self):
        with leak("cli-goroutines") as target:
            code, text = terminal.output("goroutines", target.pid, columns=80, lines=24)
            piped = rig.sonde("goroutines", target.pid, check=rig.OK).stdout
        self.assertEqual(code, rig.OK, text)
        table = [line for line in text.splitlines() if re.match(r" +(COUNT|\d+) ", line)]
        self.assertGreater(len(table), 1)
        self.assertLessEqual(max(map(len, table)), 80)
        self.assertEqual([line.split()[0] for line in table],
                         [line.split()[0] for line in piped.splitlines() if re.match(r" +(COUNT|\d+) ", line)])

    def test_colours_are_for_terminals_that_want_them(self):
        self.assertRegex(self.shown(), COLOUR)
        self.assertNotIn("\x1b", self.shown(env={"NO_COLOR": "1"}))
        self.assertNotIn("\x1b", self.shown(env={"TERM": "dumb"}))
        self.assertNotIn("\x1b", self.piped())

    def test_progress_is_shown_on_a_terminal_only(self):
        code, text = terminal.output("cpu", os.getpid(), "-d", "1200ms")
        if code != rig.OK:
            self.skipTest(text)
        self.assertIn("starting the sampler", text)
        self.assertRegex(text, r"sampling \[#*\.+\] [01]/1\.2 s")
        piped = rig.sonde("cpu", os.getpid(), "-d", "200ms", check=rig.OK)
        self.assertNotIn("sampling [", piped.stderr)
        self.assertNotIn("\r", piped.stdout + piped.stderr)


class Many(unittest.TestCase):
    """Six hundred services."""

    SERVICES, MINUTES = 600, 5

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.tmp.cleanup)
        fill = os.path.join(os.path.dirname(rig.ELF_DUMP), "store_fill")
        subprocess.run([fill, cls.tmp.name, str(cls.SERVICES), str(cls.MINUTES)], check=True, timeout=rig.LIMIT)

    def query(self, *args, check=rig.OK):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = rig.sonde("query", *args, "--data-dir", self.tmp.name, check=check)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done

    def test_one_is_found_at_once(self):
        answer = json.loads(self.query("service-123", "-f", "json").stdout)
        self.assertEqual((answer["type"], answer["total"]), ("cpu", 124 * 4 * self.MINUTES * 1000000))
        self.assertLess(self.cpu, 1)

    def test_a_baseline_without_data_is_said(self):
        said = "Nothing was collected in the baseline"
        self.assertIn(said, self.query("service-123", "--baseline", "-9h..-8h").stderr)
        self.assertNotIn(said, self.query("service-123", "--baseline", "-1h..now").stderr)

    def test_near_names_are_suggested(self):
        for typed, said in (("servcie-123", "did you mean 'service-123'?"),
                            ("SERVICE-599", "did you mean 'service-599', "),
                            ("ice-30", "'service-300', 'service-301', 'service-302' or 'service-303'?"),
                            ("nosuch", "no stored profiles of 'nosuch'; see `sonde services --from -7d`")):
            self.assertIn(said, self.query(typed, check=rig.FAILED).stderr)
            self.assertLess(self.cpu, 1)


# --- completions ----------------------------------------------------------------------------------


class Completions(unittest.TestCase):
    """In a real bash, with a sonde of ours that has these services."""

    NAMES = ("api", "api-gateway", "checkout", "with space", "$(touch INJECTED)", "`touch INJECTED`", "ns:one",
             "ns:two")

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.log = os.path.join(self.tmp.name, "calls")
        with open(os.path.join(self.tmp.name, "names"), "w") as f:
            f.write("".join(f"{name}\n" for name in self.NAMES))
        stub = os.path.join(self.tmp.name, "sonde")
        with open(stub, "w") as f:
            f.write(f'#!/bin/sh\necho "$@" >>{self.log}\n'
                    f'[ "$1 $2" = "services --names" ] && cat {self.tmp.name}/names\n')
        os.chmod(stub, 0o755)

    def complete(self, line):
        """What bash would offer for the line, cut into words as readline does."""
        words = [w for w in re.split(r"(\s+|[:=])", line) if w and not w.isspace()]
        if line[-1].isspace():
            words.append("")
        script = (f'source "{COMPLETIONS}"; COMP_LINE=$1; COMP_POINT=${{#1}}; shift; COMP_WORDS=("$@"); '
                  'COMP_CWORD=$(($# - 1)); _sonde; [ ${#COMPREPLY[@]} = 0 ] || printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", line, *words], cwd=self.tmp.name,
                              capture_output=True, text=True, timeout=rig.LIMIT,
                              env=dict(os.environ, PATH=f"{self.tmp.name}:{os.environ['PATH']}"))
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0)
        return done.stdout.splitlines()

    def calls(self):
        with open(self.log) as f:
            return f.read().splitlines()

    def test_services_are_those_of_the_store(self):
        self.assertEqual(self.complete("sonde query api"), ["api", "api-gateway"])
        self.assertEqual(self.complete("sonde query nosuch"), [])
        self.assertEqual(sorted(self.complete("sonde query ")), sorted(self.NAMES))
        self.assertEqual(self.complete("sonde query -t cpu chec"), ["checkout"])
        self.assertEqual(self.complete("sonde top --service api-"), ["api-gateway"])
        self.assertEqual(set(self.calls()), {"services --names"})
        for option in ("--data-dir /srv/sonde", "--data-dir=/srv/sonde"):
            self.assertEqual(self.complete(f"sonde query {option} ch"), ["checkout"])
            self.assertEqual(self.calls()[-1], "services --names --data-dir /srv/sonde")

    def test_names_cannot_run_commands(self):
        self.assertEqual(self.complete("sonde query $(tou"), ["$(touch INJECTED)"])
        self.complete("sonde query ")
        self.assertFalse(os.path.exists(os.path.join(self.tmp.name, "INJECTED")))

    def test_what_stands_before_a_colon_is_not_repeated(self):
        self.assertEqual(self.complete("sonde query ns:"), ["one", "two"])
        self.assertEqual(self.complete("sonde query ns:t"), ["two"])

    def test_types_commands_options_and_processes(self):
        types = self.complete("sonde query api -t ")
        for word in ("cpu", "heap", "alloc", "goroutines", "block", "mutex", "lock", "inuse_space"):
            self.assertIn(word, types)
        self.assertEqual(self.complete("sonde query api -t mu"), ["mutex"])
        self.assertEqual(self.complete("sonde que"), ["query"])
        self.assertIn("--baseline", self.complete("sonde query --b"))
        self.assertIn(str(os.getpid()), self.complete("sonde cpu "))
        self.assertIn("tree", self.complete("sonde show -f t"))

    def test_readline_itself_completes_and_quotes(self):
        script = f'source "{COMPLETIONS}"\nsonde query wit\t\nsonde query $(tou\t\nexit\n'
        with subprocess.Popen(["bash", "--norc", "-i"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, cwd=self.tmp.name, start_new_session=True,
                              env=dict(os.environ, TERM="dumb", INPUTRC="/dev/null",
                                       PATH=f"{self.tmp.name}:{os.environ['PATH']}")) as bash:
            bash.communicate(script.encode(), timeout=rig.LIMIT)
        self.assertIn("query with space", self.calls())
        self.assertFalse(os.path.exists(os.path.join(self.tmp.name, "INJECTED")))


# --- the end of sonde run -------------------------------------------------------------------------


class Ends(unittest.TestCase):
    """Each has a line in the log with its reason and code."""

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.data = os.path.join(self.tmp.name, "data")

    def agent(self):
        # Nothing to sample: it starts and ends soon.
        return Agent(self.data, "--cpu-hz", "0", "--oom-watch", "0")

    def log(self, agent):
        agent.log.seek(0)
        return agent.log.read()

    def ended(self, agent, *signals):
        for number in signals:
            agent.process.send_signal(number)
        try:
            code = agent.process.wait(rig.LIMIT)
        except subprocess.TimeoutExpired as e:
            raise AssertionError(f"{self.log(agent)}\n{self.threads(agent.process.pid)}") from e
        return code, self.log(agent)

    @staticmethod
    def threads(pid):
        """What each thread of a process that does not end waits for."""
        lines = []
        for task in glob.glob(f"/proc/{pid}/task/*"):
            for name in ("comm", "wchan", "syscall", "status"):
                with contextlib.suppress(OSError), open(f"{task}/{name}", encoding="utf-8") as f:
                    lines.append(f"{os.path.basename(task)} {name}: {f.read().strip()}")
        return "\n".join(lines)

    def refused(self, *args, check=rig.FAILED):
        done = rig.sonde("run", "--listen", "127.0.0.1:0", "--data-dir", self.data, "--cpu-hz", "0", *args,
                         check=check)
        last = done.stderr.splitlines()[-1]
        self.assertRegex(last, rf"^time=\S+Z level=error msg=exiting reason=.* code={check}$")
        return last

    def test_signals_that_stop_it(self):
        for number, name in ((signal.SIGTERM, "Terminated"), (signal.SIGINT, "Interrupt"),
                             (signal.SIGHUP, "Hangup")):
            with self.agent() as agent:
                code, log = self.ended(agent, number)
            self.assertEqual(code, 0, log)
            self.assertRegex(log, rf"level=notice msg=stopping signal={name}\n")
            self.assertRegex(log, r"level=notice msg=stopped code=0\n$")
            self.assertNotIn("killed", log)

    def test_signals_that_kill_it(self):
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGQUIT, signal.SIGBUS):
            with self.agent() as agent:
                code, log = self.ended(agent, number)
            self.assertEqual(code, -number)
            self.assertRegex(log, rf'time=\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ level=error msg="killed by a signal" '
                                  rf"signal={number.name} code={128 + number}\n$")

    def test_a_kill_is_told_by_the_next_one(self):
        with self.agent() as agent:
            pid = agent.process.pid
            self.assertEqual(self.ended(agent, signal.SIGKILL)[0], -signal.SIGKILL)
        with self.agent() as agent:
            code, log = self.ended(agent, signal.SIGTERM)
        self.assertEqual(code, 0)
        self.assertRegex(log, rf'level=warn msg="the last sonde was killed, [^"]*" pid={pid}\n')
        with self.agent() as agent:
            self.assertNotIn("the last sonde", self.ended(agent, signal.SIGTERM)[1])

    def test_a_second_signal_does_not_wait_for_the_rest(self):
        with self.agent() as agent:
            agent.process.send_signal(signal.SIGTERM)
            rig.wait_for(lambda: "msg=stopping" in self.log(agent), "it does not stop")
            code, log = self.ended(agent, signal.SIGTERM)
        # It may have been quicker.
        self.assertIn(code, (0, -signal.SIGTERM))
        self.assertRegex(log, r"msg=stopped code=0\n$" if code == 0 else
                         r'msg="killed by a signal" signal=SIGTERM code=143\n$')

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertIn("Address already in use", self.refused("--listen", f"127.0.0.1:{port}"))
        self.assertIn("this machine only", self.refused("--listen", "192.0.2.1:80"))

    def test_a_store_that_cannot_be_had(self):
        with self.agent():
            self.assertIn("another sonde", self.refused())
        shutil.rmtree(self.data)
        with open(self.data, "w"):
            pass
        self.assertIn(self.data, self.refused())

    def test_nobody_reads_its_address(self):
        read, write = os.pipe()
        os.close(read)
        with subprocess.Popen([rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", self.data, "--cpu-hz", "0"],
                              stdout=write, stderr=subprocess.PIPE, text=True) as process:
            os.close(write)
            _, log = process.communicate(timeout=rig.LIMIT)
        self.assertEqual(process.returncode, rig.FAILED)
        self.assertRegex(log, r'msg=exiting reason="cannot write to stdout: [^"]*" code=1\n$')

    def test_wrong_options_are_a_usage_error(self):
        done = rig.sonde("run", "--interval", "never", check=rig.USAGE)
        self.assertRegex(done.stderr, r"^sonde: --interval .*\nSee `sonde help run`\.\n$")

    def test_a_part_that_dies_is_told(self):
        with self.agent() as agent:
            children = subprocess.run(["pgrep", "-P", str(agent.process.pid), "-x", "sonde-spawner"],
                                      capture_output=True, text=True).stdout.split()
            self.assertEqual(len(children), 1)
            os.kill(int(children[0]), signal.SIGKILL)
            rig.wait_for(lambda: "msg=trouble" in self.log(agent), lambda: self.log(agent))
            code, log = self.ended(agent, signal.SIGTERM)
        self.assertEqual(code, 0)
        self.assertRegex(log, r"msg=stopped code=0\n$")

    def test_only_its_end_follows_the_address(self):
        with subprocess.Popen([rig.SONDE, "run", "--listen", "127.0.0.1:0", "--data-dir", self.data],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            while not (line := process.stdout.readline()).startswith("sonde is ready: http://127.0.0.1:"):
                self.assertRegex(line, r"level=(warn|error) ")
            process.terminate()
            rest = process.stdout.read()
        self.assertEqual(process.returncode, rig.OK)
        self.assertRegex(rest, r"^time=\S+ level=notice msg=stopping .*\ntime=\S+ level=notice msg=stopped code=0\n$")


def load(every, suite):
    del every
    for case in (Terminals, Many, Completions, Ends):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
