"""Real interpreters are named by what they run; their records say how they were started and by whom."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import rig
from rig import wait_for
from test_agent import Agent, now_ms

SLEEP = {
    "python": "import time\nprint('ready', flush=True)\ntime.sleep(600)\n",
    "perl": "$| = 1; print \"ready\\n\"; sleep 600;\n",
    "bash": "echo ready\nwhile :; do read -t 600 x <> <(:); done\n",
    "node": "console.log('ready'); setTimeout(() => {}, 600000);\n",
    "java": "public class Baker { public static void main(String[] a) throws Exception {"
            " System.out.println(\"ready\"); Thread.sleep(600000); } }\n",
}
# It has a title of its own once it is told so, as setproctitle() does it: fields 48 and 49 of proc(5).
TITLE = """import ctypes, sys, time
print('ready', flush=True)
sys.stdin.readline()
begin, end = map(int, open('/proc/self/stat').read().rsplit(')', 1)[1].split()[45:47])
ctypes.memmove(begin, b'oven: worker 1'.ljust(end - begin, b'\\0'), end - begin)
print('titled', flush=True)
time.sleep(600)
"""

OVEN = """#include <stdio.h>
#include <unistd.h>
int main(void) { puts("ready"); fflush(stdout); sleep(600); return "%s"[0] == 0; }
"""


def python():
    """As the kernel knows it; a wrapper would run it as a child."""
    return os.path.realpath(sys.executable)


@contextlib.contextmanager
def running(argv, cwd, env=None):
    """A program that says when it is ready."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    process = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**clean, **(env or {})})
    try:
        assert process.stdout.readline() == "ready\n", argv
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


def examined(agent, pid):
    """The target, once somebody has looked at it."""
    def there():
        target = agent.target(pid)
        return target if target and target["command"] else None
    return wait_for(there, lambda: agent.target(pid))


def labels_of(agent, service):
    answer = agent.api("labels", service=service, to=now_ms() + 60000)
    return {label["key"]: {v["value"] for v in label["values"]} for label in answer["labels"]}


def stored(agent, service, kind):
    return any(s["service"] == service and any(t["type"] == kind for t in s["types"])
               for s in agent.api("services", to=now_ms() + 60000)["services"])


@unittest.skipUnless(os.geteuid() == 0, "needs root, to read other processes")
class Names(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = os.path.join(self.folder, "data")

    def check(self, argv, name, command=None, cwd=None, env=None):
        with running(argv, cwd or self.folder, env) as process:
            target = examined(self.agent, process.pid)
            self.assertEqual(target["service"], name, target)
            self.assertEqual(target["command"], (command or " ".join(argv))[:256])
            return target

    def test_interpreters_are_named_by_what_they_run(self):
        script = write(self.folder, "bakery/oven.py", SLEEP["python"])
        generic = write(self.folder, "bakery/releases/20240131/src/app.py", SLEEP["python"])
        shebang = write(self.folder, "knead", f"#!{python()}\n" + SLEEP["python"])
        with Agent(self.data, interval=0.2) as self.agent:
            self.check([python(), script], "oven.py")
            self.check([python(), "-X", "dev", "-W", "ignore", "oven.py"], "oven.py",
                       cwd=os.path.join(self.folder, "bakery"))
            self.check([python(), "-m", "bakery.oven"], "bakery.oven")
            self.check([python(), generic], "bakery")
            self.check([python(), "app.py"], "bakery", cwd=os.path.dirname(generic))
            self.check([shebang], "knead", command=f"{python()} {shebang}")
            self.check([python(), script], "shop", env={"OTEL_SERVICE_NAME": "shop"})
            self.check([python(), "-c", SLEEP["python"]], os.path.basename(python()),
                       command=f"{python()} -c " + SLEEP["python"].replace("\n", "?"))
            self.check(["perl", "-w", write(self.folder, "peel.pl", SLEEP["perl"])], "peel.pl")
            self.check(["bash", "-eu", write(self.folder, "deploy.sh", SLEEP["bash"])], "deploy.sh")

    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_ps_shows_the_name_where_the_command_is_the_same(self):
        script = write(self.folder, "nightly.sh", "#!/bin/bash\n" + SLEEP["bash"])
        with running([script], self.folder) as process:
            rows = rig.sonde("ps", str(process.pid)).stdout.splitlines()
        self.assertRegex(rows[1], r"/bash +nightly\.sh ")

    def test_node_is_named_by_its_script(self):
        write(self.folder, "bakery/server.js", SLEEP["node"])
        preload = write(self.folder, "preload.js", "")
        with Agent(self.data, interval=0.2) as self.agent:
            target = self.check(["node", "--require", preload, "bakery/server.js"], "bakery")
            self.assertEqual(target["runtime"], "node")

    @unittest.skipUnless(shutil.which("java") and shutil.which("javac"), "needs a JDK")
    def test_java_is_named_by_its_class_or_jar(self):
        write(self.folder, "Baker.java", SLEEP["java"])
        subprocess.run(["javac", "Baker.java"], cwd=self.folder, check=True)
        subprocess.run(["jar", "cfe", "bakery-1.2.3.jar", "Baker", "Baker.class"], cwd=self.folder, check=True)
        with Agent(self.data, interval=0.2) as self.agent:
            self.check(["java", "-Xmx64m", "-cp", self.folder, "-Da=b", "Baker"], "Baker")
            self.check(["java", "-Xmx64m", "-jar", "bakery-1.2.3.jar"], "bakery")

    def test_labels_are_there_from_the_first_record_and_stay(self):
        script = write(self.folder, "title.py", TITLE)
        argv = [python(), script, "--password", "hunter2", "https://bob:hunter2@example.com/"]
        with running(argv, self.folder) as process, Agent(self.data, interval=0.2) as agent:
            examined(agent, process.pid)
            wait_for(lambda: stored(agent, "title.py", "process:memory:bytes"), "its memory is not stored")
            process.stdin.write("\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "titled\n")
            with open(f"/proc/{process.pid}/cmdline", "rb") as f:
                self.assertTrue(f.read().startswith(b"oven: worker 1"))
            seen = now_ms()
            wait_for(lambda: stored_after(agent, "title.py", seen), "it is not stored any more")
            labels = labels_of(agent, "title.py")
            names = {s["service"] for s in agent.api("services", to=now_ms() + 60000)["services"]}
        self.assertEqual(labels["process.command_line"],
                         {f"{python()} {script} --password *** https://bob:***@example.com/"})
        self.assertEqual(len(labels["process.runtime.description"]), 1)
        self.assertRegex(*labels["process.runtime.description"], rf"^Python 3\.{sys.version_info.minor}$")
        self.assertEqual(labels["process.pid"], {str(process.pid)})
        self.assertNotIn("oven", names)

    @unittest.skipUnless(shutil.which("cc"), "needs a compiler")
    def test_a_new_build_of_a_service_is_another_label(self):
        service, ids = f"bakery-{os.getpid()}", []
        with Agent(self.data, interval=0.2) as agent:
            for build in ("one", "two"):
                source = write(self.folder, "oven.c", OVEN % build)
                path = os.path.join(self.folder, "oven")
                subprocess.run(["cc", "-Wl,--build-id=sha1", "-o", path, source], check=True)
                notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
                ids.append(re.search(r"Build ID: ([0-9a-f]{40})", notes)[1])
                with running([path], self.folder, {"OTEL_SERVICE_NAME": service}) as process:
                    # The name leads to no file any more: it is of what runs.
                    os.unlink(path)
                    wait_for(lambda: str(process.pid) in labels_of(agent, service).get("process.pid", ())
                             if stored(agent, service, "process:memory:bytes") else False, "it is not stored")
                    examined(agent, process.pid)
            key = "process.executable.build_id.gnu"
            answer = agent.api("labels", service=service, to=now_ms() + 60000)
        values = next(label["values"] for label in answer["labels"] if label["key"] == key)
        self.assertNotEqual(*ids)
        self.assertEqual([v["value"] for v in sorted(values, key=lambda v: v["first"])], ids)
        self.assertEqual({v["build_of"] for v in values}, {"oven"})
        # Each process has one set of labels: what is stored with a build is all there is of it.
        self.assertEqual(len(next(label for label in answer["labels"] if label["key"] == "process.pid")["values"]), 2)

    def test_short_lived_processes_belong_to_who_has_lived_longer(self):
        # It starts processes all the time, one in another, and is a minute old in time.
        maker = write(self.folder, "maker.sh", "echo ready\nwhile :; do bash -c 'bash -c \""
                      "for ((i = 0; i < 30000; i++)); do :; done\"; :'; done\n")
        # The shells in it have no name but their own.
        with running(["bash", maker], self.folder) as process:
            time.sleep(max(0, 62 - age(process.pid)))
            with Agent(self.data, interval=0.2) as agent:
                def parents():
                    return labels_of(agent, "bash").get("sonde.parent", set()) \
                        if stored(agent, "bash", "cpu:cpu:nanoseconds") else set()
                wait_for(lambda: "maker.sh" in parents(), parents)


def stored_after(agent, service, since):
    answer = agent.api("series", service=service, type="process:memory:bytes", step_ms=1000,
                       to=max(now_ms(), since + 1000), **{"from": since})
    return any(answer["points"])


def age(pid):
    """In seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        start = int(f.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start / os.sysconf("SC_CLK_TCK")


def load(every, suite):
    del every
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(Names))
