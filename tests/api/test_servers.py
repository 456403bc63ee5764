"""A real sonde and the mock are asked everything that docs/openapi.json allows, and what it forbids."""
import contextlib
import datetime
import gzip
import http.client
import json
import os
import random
import re
import tempfile
import time
import unittest
import urllib.parse

import rig
import stage
import test_oom
from schema import DAY_MS, Document
from test_agent import Agent, registered_modes
from test_document import read

HOUR_MS = 3600 * 1000
TIMES = {"from": "to", "before_from": "before_to"}
LEAK, WAITS, NEAR = "api-leak", "api-waits", "api-near"
# What their readers must have stored before the questions begin.
WANTED = {LEAK: {"go_heap", "go_goroutine", "go_runtime"}, WAITS: {"go_block", "go_mutex"}}
SETTLE_S = 240
SAMPLE = re.compile(r'^([a-z_][a-z0-9_]*)(?:\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? \S+$')


def now_ms():
    return int(time.time() * 1000)


def resolve(text):
    """A time as the examples of the document write it, in milliseconds since 1970."""
    if text.isdigit():
        return int(text)
    if text.startswith(("now", "-")):
        ago = re.fullmatch(r"(?:now)?(?:-(\d+)([smh]))?", text)
        return now_ms() - (int(ago[1]) * {"s": 1000, "m": 60000, "h": HOUR_MS}[ago[2]] if ago[1] else 0)
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


class Answer:
    def __init__(self, question, response):
        self.question, self.status = question, response.status
        self.headers, self.body = response.headers, response.read()

    def json(self):
        return json.loads(self.body)


class Client:
    def __init__(self, url):
        self.netloc = urllib.parse.urlsplit(url).netloc

    def ask(self, path, params=(), method="GET", headers=None, body=None):
        query = urllib.parse.urlencode(params)
        question = path + (f"?{query}" if query else "")
        connection = http.client.HTTPConnection(self.netloc, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, question, body=body, headers=headers or {})
            return Answer(question, connection.getresponse())


def near_limit(stack):
    """A program that reaches half of its limit of memory, where groups with one can be made."""
    prefix = stack.enter_context(test_oom.limited(test_oom.LIMIT_MB))
    go = rig.build.mandatory()[1]
    target = stack.enter_context(test_oom.target(go, "plain", NEAR, prefix, "-max-mb",
                                                 str(test_oom.LIMIT_MB * 3 // 4)))
    test_oom.start(target)


def has_events():
    return os.geteuid() == 0 and test_oom.group_root() is not None


def settled(agent):
    """What is still missing; nothing when there is something of everything."""
    found = {s["service"]: {t["type"].split(":")[0] for t in s["types"]}
             for s in agent.api("services")["services"]}
    missing = {s: sorted(types - found.get(s, set())) for s, types in WANTED.items()}
    if has_events():
        missing[NEAR] = [] if agent.api("events", service=NEAR)["events"] else ["an event"]
    return {s: m for s, m in missing.items() if m}


def start_sonde(stack):
    """A sonde that has stored profiles of programs that leak, wait, and come near their limit."""
    data = stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-api-"))
    go = rig.build.mandatory()[1]
    for service, name, *args in ((LEAK, "leak", "-leak-mb", "1", "-churn-mb", "10"),
                                 (WAITS, "contention", "-block", "1", "-mutex", "1", "-load")):
        stack.enter_context(rig.Target([rig.build.build(name, go), *args],
                                       env={"OTEL_SERVICE_NAME": service}))
    agent = stack.enter_context(Agent(data, "--goroutine-interval", "1s", "--oom-watch", "50"))
    if has_events():
        near_limit(stack)
    deadline = time.monotonic() + SETTLE_S
    while settled(agent):
        if time.monotonic() > deadline:
            raise AssertionError(f"sonde did not store {settled(agent)} within {SETTLE_S} s")
        time.sleep(0.2)
    return agent.url


def documented_types():
    """{type: mode} by the first table of docs/API.md."""
    return dict(re.findall(r"^\| `([^`]+)` \| (delta|snapshot) \|", read("docs/API.md"), re.M))


def rounding(path, answer):
    """How far the window may be from what was asked for: an overview has whole steps."""
    return answer["step_ms"] if path == "/api/overview" else 0


class Asked:
    """The tests of both; of a class for each."""

    service, type, function, file = None, "go_heap:inuse_space:bytes", "main.main", "/none/main.go"

    @classmethod
    def setUpClass(cls):
        cls.document = Document()
        with contextlib.ExitStack() as stack:
            cls.client = Client(cls.start(stack))
            cls.addClassCleanup(stack.pop_all().close)

    def ask(self, path, params=(), want=200, **options):
        """Asks, and checks status, headers and body by the document; returns what was said."""
        answer = self.client.ask(path, params, **options)
        endpoint = self.document.endpoints[path]
        said = f"{answer.question}: {answer.status} {answer.body[:300]!r}"
        self.assertEqual(answer.status, want, said)
        content = endpoint.content(answer.status)
        self.assertIsNotNone(content, f"the document has no such status: {said}")
        self.assertEqual(answer.headers["Content-Type"].split(";")[0], content[0], said)
        for name, header in endpoint.responses[str(want)].get("headers", {}).items():
            self.assertIn(name, answer.headers, said)
            self.assertRegex(answer.headers[name], header["schema"].get("pattern", "."), said)
        if options.get("method") == "HEAD":
            self.assertEqual(answer.body, b"")
            return None
        if content[0] != "application/json":
            return answer.body
        self.assertEqual(self.document.errors(answer.json(), content[1]), [], said)
        return answer.json()

    def metrics(self):
        """{name: row} of the metrics that are stored of the service."""
        return {m["metric"]: m for m in self.ask("/api/metrics", [("service", self.service)])["metrics"]}

    def questions(self):
        """All parameters but a metric where the service has none: that is 404, as for any name."""
        some = bool(self.metrics())
        return [(path, endpoint, p) for path, endpoint, p in self.each() if some or p.name != "metric"]

    def base(self, endpoint, without=()):
        """The parameters that an endpoint cannot do without."""
        usual = {"service": self.service, "type": self.type, "name": self.function,
                 "file": self.file}
        return [(p.name, usual[p.name]) for p in endpoint.parameters
                if p.required and p.name not in without]

    def each(self):
        for path, endpoint in self.document.endpoints.items():
            for p in endpoint.parameters:
                yield path, endpoint, p

    def partner(self, name, value):
        """A time and the other end of its window; any other parameter alone."""
        for begin, end in TIMES.items():
            if name == begin:
                return [(begin, value), (end, str(resolve(value) + HOUR_MS))]
            if name == end:
                return [(begin, str(resolve(value) - HOUR_MS)), (end, value)]
        return [(name, value)]

    # --- what there is

    def test_there_are_the_paths_of_the_document_and_no_others(self):
        for wrong in ("/api/nothing", "/api/", "/api/health/"):
            answer = self.client.ask(wrong)
            self.assertEqual((answer.status, list(answer.json())), (404, ["error"]), wrong)
            known = re.search(r"\(expected: (.*)\)", answer.json()["error"])[1]
            self.assertEqual(sorted(known.split(", ")), sorted(self.document.endpoints))

    def test_there_are_the_parameters_of_the_document_and_no_others(self):
        for path, endpoint in self.document.endpoints.items():
            error = self.ask(path, [*self.base(endpoint), ("nothing", "1")], 400)["error"]
            self.assertIn("'nothing'", error)
            known = re.search(r"\(expected: (.*)\)", error)
            self.assertEqual(sorted(known[1].split(", ")) if known else [], sorted(endpoint.names()), error)

    # --- right questions

    def test_every_endpoint_answers(self):
        for path, endpoint in self.document.endpoints.items():
            self.ask(path, self.base(endpoint))
            self.ask(path, self.base(endpoint), method="HEAD")

    def test_every_parameter_is_taken(self):
        for path, endpoint, p in self.questions():
            values = p.valid() or [dict(self.base(endpoint)).get(p.name, self.service)]
            for value in values:
                if p.name == "type":
                    value = value if p.several and not p.required else self.type
                if p.name == "metric":
                    value = next(iter(self.metrics()))
                with self.subTest(path=path, name=p.name, value=value):
                    self.ask(path, self.base(endpoint, [p.name]) + self.partner(p.name, value))

    def test_windows_are_those_that_were_asked_for(self):
        for path, endpoint, p in self.each():
            if p.name not in ("from", "to"):
                continue
            for value in p.valid():
                begin, end = self.partner(p.name, value)
                before = (resolve(begin[1]), resolve(end[1]))
                answer = self.ask(path, self.base(endpoint) + [begin, end])
                after = (resolve(begin[1]), resolve(end[1]))
                if isinstance(answer, dict) and "from" in answer:
                    slack = rounding(path, answer)
                    for key, lo, hi in zip(("from", "to"), before, after):
                        self.assertTrue(lo - slack <= answer[key] <= hi + slack,
                                        f"{path} {value}: {key}={answer[key]}")

    def test_the_default_window_is_the_last_hour(self):
        for path, endpoint in self.document.endpoints.items():
            before = now_ms()
            answer = self.ask(path, self.base(endpoint))
            if isinstance(answer, dict) and "from" in answer:
                slack = rounding(path, answer)
                self.assertLessEqual(abs(answer["to"] - answer["from"] - HOUR_MS), slack)
                self.assertTrue(before <= answer["to"] <= now_ms() + slack, path)

    def test_what_comes_several_times_may_come_as_often_as_the_document_says(self):
        for path, endpoint, p in self.questions():
            value = self.type if p.name == "type" else p.valid()[0] if p.valid() else self.service
            base = self.base(endpoint, [p.name])
            if p.several:
                self.ask(path, base + [(p.name, value)] * p.max)
            if p.name not in sum(TIMES.items(), ()):
                self.ask(path, base + [(p.name, value)] * (p.max + 1), 400)

    def test_a_second_window_adds_its_fields(self):
        now = now_ms()
        before = [("before_from", now - 2 * HOUR_MS), ("before_to", now - HOUR_MS)]
        for path in ("/api/flame", "/api/top", "/api/function"):
            base = self.base(self.document.endpoints[path])
            one, two = self.ask(path, base), self.ask(path, base + before)
            self.assertIn("before_total", two)
            self.assertEqual(self.before(one), set(), path)
            self.assertNotEqual(self.before(two), {"before_total"} if two.get("rows") else set(), path)
            for p in before:
                self.ask(path, base + [p], 400)

    def before(self, value):
        fields = [value, *value.get("rows", []), *value.get("lines", [])]
        return {key for f in fields for key in f if key.startswith("before_")}

    def test_columns_of_a_flame_graph_are_equally_long(self):
        for nodes in (8, 100, 250000):
            f = self.ask("/api/flame", [("service", self.service), ("type", self.type), ("max_nodes", nodes),
                                        ("before_from", "-2h"), ("before_to", "-1h")])
            columns = ("name", "depth", "self", "total_of", "before_self", "before_total_of")
            self.assertEqual({len(f[c]) for c in columns}, {len(f["name"])})
            self.assertLessEqual(len(f["name"]), nodes)
            self.assertEqual(len(f["names"]), len(f["files"]))
            self.assertLess(max(f["name"]), len(f["names"]))
            self.assertEqual((f["depth"][0], f["total_of"][0]), (0, f["total"]))
            self.assertTrue(all(b <= a + 1 for a, b in zip(f["depth"], f["depth"][1:])))

    def test_rows_are_limited_and_counted(self):
        top = self.ask("/api/top", [("service", self.service), ("type", self.type), ("limit", 2)])
        self.assertEqual(len(top["rows"]), min(2, top["functions"]))

    def test_lines_and_neighbours_of_a_function_add_up(self):
        base = [("service", self.service), ("type", self.type)]
        for row in self.ask("/api/top", base + [("limit", 20)])["rows"]:
            f = self.ask("/api/function", base + [("name", row["name"])])
            self.assertEqual((f["name"], f["unit"]), (row["name"], self.type.split(":")[2]))
            for key in ("lines", "callers", "callees"):
                self.assertEqual(len(f[key]), f[f"n_{key}"], row["name"])
                totals = [x["total"] for x in f[key]]
                self.assertEqual(totals, sorted(totals, reverse=True))
                self.assertTrue(all(t <= f["total"] + 1 for t in totals))
            # Averages are rounded one by one.
            self.assertAlmostEqual(sum(x["self"] for x in f["lines"]), f["self"], delta=1 + len(f["lines"]) / 32)
            self.assertLessEqual(sum(x["total"] for x in f["callers"]), f["total"] + 1 + len(f["callers"]) / 32)
            few = self.ask("/api/function", base + [("name", row["name"]), ("limit", 1)])
            self.assertLessEqual(max(len(few[k]) for k in ("lines", "callers", "callees")), 1)

    def test_a_function_that_is_nowhere_is_an_answer(self):
        base = [("service", self.service), ("type", self.type), ("name", "no.such.function")]
        f, s = self.ask("/api/function", base), self.ask("/api/function/series", base)
        self.assertEqual((f["self"], f["total"], f["lines"], f["callers"]), (0, 0, [], []))
        self.assertGreater(f["window_total"], 0)
        self.assertEqual(set(s["self"]) - {None}, {0})

    def test_a_curve_of_a_function_has_the_steps_and_gaps_of_its_type(self):
        now = now_ms()
        base = [("service", self.service), ("type", self.type), ("from", now - HOUR_MS), ("to", now)]
        # What belongs to the window may be stored a little later.
        rig.wait_for(lambda: now_ms() > now + 5000, "the clock stands still")
        row = self.ask("/api/top", base)["rows"][0]
        series = self.ask("/api/series", base)
        curve = self.ask("/api/function/series", base + [("name", row["name"])])
        self.assertEqual(curve["step_ms"], series["step_ms"])
        self.assertEqual([v is None for v in curve["total"]], [v is None for v in series["points"]])
        self.assertTrue(any(curve["self"]))
        for mine, whole, total in zip(curve["self"], curve["total"], series["points"]):
            if mine is not None:
                self.assertLessEqual(mine, whole * (1 + 1e-9))
                self.assertLessEqual(whole, total * (1 + 1e-9))
        self.ask("/api/function/series", base + [("name", "x"), ("step_ms", 1)], 400)

    def test_one_type_and_several_are_answered_in_their_own_form(self):
        base = [("service", self.service), ("type", self.type)]
        one = self.ask("/api/series", base)
        self.assertEqual(one["unit"], self.type.split(":")[2])
        other = "go_heap:alloc_space:bytes"
        several = self.ask("/api/series", base + [("type", "no:such:type"), ("type", other)])
        self.assertEqual([s["type"] for s in several["series"]], [self.type, other])

    def test_metrics_that_were_never_stored_are_not_found(self):
        self.ask("/api/metrics", [("service", self.service), ("metric", "no.such.metric")], 404)

    def test_metrics_have_curves_alone_and_in_groups(self):
        for name, m in self.metrics().items():
            base = [("service", self.service), ("metric", name)]
            whole, apart = self.ask("/api/metrics", base), self.ask("/api/metrics", base + [("group", "*")])
            self.assertEqual((len(whole["series"]), whole["series"][0]["labels"]), (1, []))
            self.assertEqual(len(apart["series"]), m["series"], name)
            for answer in (whole, apart):
                self.assertEqual((answer["kind"], answer["unit"]), (m["kind"], m["unit"]))
                steps = -(-HOUR_MS // answer["step_ms"])
                for s in answer["series"]:
                    rows = s["buckets"] or [s["points"]]
                    self.assertEqual({len(row) for row in rows}, {steps})
                    self.assertEqual(len(rows), len(answer["bounds"] or []) + 1)
            for a in m["attributes"]:
                by = self.ask("/api/metrics", base + [("group", a["key"])])
                self.assertEqual({label["value"] for s in by["series"] for label in s["labels"]},
                                 set(a["values"]))
            self.ask("/api/metrics", base + [("from", "-30d"), ("step_ms", 1000)], 400)

    def test_steps_cover_the_window(self):
        now = now_ms()
        window = [("from", now - HOUR_MS), ("to", now)]
        for path, key in (("/api/series", "points"), ("/api/services", "services")):
            answer = self.ask(path, self.base(self.document.endpoints[path]) + window)
            lists = ([t["series"] for s in answer[key] for t in s["types"]] if key == "services"
                     else [answer[key]])
            for points in lists:
                self.assertEqual(len(points), -(-HOUR_MS // answer["step_ms"]), path)

    def test_an_overview_has_whole_steps_and_what_its_rows_say(self):
        now = now_ms()
        for hours, step in ((1, 60000), (24, 1200000)):
            o = self.ask("/api/overview", [("from", now - hours * HOUR_MS), ("to", now)])
            self.assertEqual((o["step_ms"], o["from"] % step, o["to"] % step), (step, 0, 0))
            steps = (o["to"] - o["from"]) // step
            self.assertLessEqual(steps, 73)
            ids = {s["id"]: s for s in o["services"]}
            self.assertEqual(len(ids), len(o["services"]))
            self.assertEqual({row[0] for row in o["rows"]}, set(ids))
            self.assertIn(self.service, {s["service"] for s in o["services"]})
            self.assertNotIn("(machine)", {s["service"] for s in o["services"]})
            for s in o["services"]:
                self.assertTrue(all(t < len(o["types"]) for t in s["types"]), s)
                self.assertLessEqual(s["first"], s["last"])
            for _, _, at, cpu, memory in o["rows"]:
                self.assertEqual(len(cpu), len(memory))
                self.assertLessEqual(at + len(cpu), steps)
                for end in (0, -1) if cpu else ():
                    self.assertNotEqual((cpu[end], memory[end]), (None, None))
            self.assertTrue(o["from"] <= o["next"] < o["to"])
            self.refreshed(o, ids)

    def refreshed(self, o, ids):
        """What came since: whole steps from there on, of services that are known or described."""
        new = self.ask("/api/overview", [("from", o["from"]), ("to", o["to"]), ("step_ms", o["step_ms"]),
                                         ("since", o["next"])])
        self.assertEqual((new["from"], new["to"]), (o["next"], o["to"]))
        self.assertLessEqual({row[0] for row in new["rows"]}, set(ids) | {s["id"] for s in new["services"]})
        steps = (new["to"] - new["from"]) // new["step_ms"]
        self.assertTrue(all(row[2] + len(row[3]) <= steps for row in new["rows"]))

    def test_the_registry_is_the_one_that_the_docs_and_the_page_are_tested_with(self):
        self.assertEqual(self.ask("/api/types"), json.loads(read("ui/mock/types.json")),
                         "ui/mock/types.json is old: run tools/registry_docs.py")

    def test_types_and_their_modes_are_documented(self):
        known = documented_types()
        self.assertEqual(known, registered_modes(self.ask("/api/types")))
        self.assertIn(self.type, known)
        for service in self.ask("/api/services")["services"]:
            for t in service["types"]:
                self.assertEqual(known.get(t["type"]), t["mode"], t["type"])

    def test_a_window_without_data_is_an_answer(self):
        empty = [("from", "1000000000000"), ("to", "1000003600000")]
        for path, endpoint in self.document.endpoints.items():
            if "from" in endpoint.names():
                answer = self.ask(path, self.base(endpoint) + empty)
                if path == "/api/flame":
                    self.assertEqual((answer["total"], answer["collections"]), (0, 0))
        unit = self.ask("/api/series", self.base(self.document.endpoints["/api/series"]) + empty)
        self.assertEqual(set(unit["points"]), {None})

    def test_right_questions_in_any_combination(self):
        dice, metrics = random.Random(1), list(self.metrics())
        for path, endpoint in self.document.endpoints.items():
            for _ in range(20):
                self.ask(path, self.combination(endpoint, dice, metrics))

    def combination(self, endpoint, dice, metrics):
        question = []
        for p in endpoint.parameters:
            given = p.required or dice.random() < 0.5
            if p.name == "metric":
                question += [("metric", dice.choice(metrics))] if given and metrics else []
                continue
            if p.name in TIMES and given:
                begin = now_ms() - dice.randrange(2 * HOUR_MS, 20 * DAY_MS)
                question += [(p.name, begin), (TIMES[p.name], begin + dice.randrange(1, 2 * HOUR_MS))]
            elif given and p.name not in TIMES.values():
                value = {"service": self.service, "type": self.type}.get(p.name)
                some = dice.randint(1, p.max if p.several else 1)
                question += [(p.name, value or dice.choice(p.valid())) for _ in range(some)]
        dice.shuffle(question)
        return question

    # --- wrong questions

    def test_wrong_values_are_refused(self):
        for path, endpoint, p in self.each():
            for value in p.invalid():
                with self.subTest(path=path, name=p.name, value=value[:40]):
                    self.ask(path, self.base(endpoint, [p.name]) + [(p.name, value)], 400)

    def test_what_is_required_is_missed(self):
        for path, endpoint, p in self.each():
            if p.required:
                self.assertIn(p.name, self.ask(path, self.base(endpoint, [p.name]), 400)["error"])

    def test_windows_that_make_no_sense_are_refused(self):
        for path, endpoint in self.document.endpoints.items():
            for begin, end in TIMES.items():
                if begin in endpoint.names():
                    for window in (("-1h", "-2h"), ("-1h", "-1h"), ("-41d", "now")):
                        self.ask(path, self.base(endpoint) + list(zip((begin, end), window)), 400)
        series = self.base(self.document.endpoints["/api/series"])
        self.ask("/api/series", series + [("from", "-30d"), ("step_ms", 1000)], 400)

    def test_what_was_never_stored_is_not_found(self):
        for path, endpoint in self.document.endpoints.items():
            if "404" in endpoint.responses:
                for p in endpoint.parameters:
                    if p.required and p.name not in ("name", "file"):
                        self.ask(path, self.base(endpoint, [p.name]) + [(p.name, "no:such:bytes")], 404)

    def test_other_methods_are_refused(self):
        for path, endpoint in self.document.endpoints.items():
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                self.ask(path, self.base(endpoint), 405, method=method)

    def test_long_addresses_are_refused(self):
        for path, endpoint in self.document.endpoints.items():
            self.ask(path, self.base(endpoint) + [("label", "x" * 9000)], 414)

    # --- what is no JSON

    def test_pprof_is_gzipped(self):
        gzip.decompress(self.ask("/api/pprof", self.base(self.document.endpoints["/api/pprof"])))

    def test_metrics_are_lines_of_prometheus(self):
        known, docs = {}, read("docs/API.md")
        for line in self.ask("/metrics").decode().splitlines():
            if line.startswith("# "):
                word, name, text = line[2:].split(" ", 2)
                known.setdefault(name, {})[word] = text
                continue
            name = SAMPLE.match(line)
            self.assertTrue(name, line)
            self.assertIn(f"`{name[1]}`", docs)
            self.assertIn(known[name[1]]["TYPE"], ("counter", "gauge"), line)
            self.assertTrue(known[name[1]]["HELP"], line)
            self.assertEqual(known[name[1]]["TYPE"] == "counter", name[1].endswith("_total"), line)
        self.assertEqual(known, {m["prometheus"]: {"HELP": m["help"], "TYPE": m["kind"]}
                                 for m in self.ask("/api/types")["metrics"] if m["prometheus"]})


class Sonde(Asked, unittest.TestCase):
    service = LEAK
    start = staticmethod(start_sonde)

    def test_requests_from_elsewhere_are_refused(self):
        for path, endpoint in self.document.endpoints.items():
            base = self.base(endpoint)
            for headers in ({"Host": "example.com"}, {"Origin": "http://example.com"},
                            {"Sec-Fetch-Site": "cross-site"}):
                self.ask(path, base, 403, headers=headers)
            self.ask(path, base, 400, body=b"x")

    def test_escapes_that_make_no_sense_are_refused(self):
        for path, endpoint in self.document.endpoints.items():
            for wrong in ("%", "%4", "%zz", "%00", "%0a"):
                answer = self.client.ask(f"{path}?service={wrong}")
                self.assertEqual((answer.status, list(answer.json())), (400, ["error"]), endpoint.path)

    def test_programs_near_their_limit_are_events(self):
        events = self.ask("/api/events", [("service", NEAR)])
        self.assertEqual("oom_near" in [e["kind"] for e in events["events"]], has_events())

    def test_the_answers_hold_what_the_programs_did(self):
        targets = self.ask("/api/targets")["targets"]
        readers = {r["reader"] for t in targets if t["service"] in (LEAK, WAITS) for r in t["readers"]
                   if r["available"]}
        self.assertLessEqual({"go-heap", "go-runtime", "go-goroutines", "go-block", "go-mutex"}, readers)
        top = self.ask("/api/top", [("service", LEAK), ("type", self.type)])
        self.assertIn("main.leak", [row["name"] for row in top["rows"]])
        labels = self.ask("/api/labels", [("service", LEAK)])["labels"]
        self.assertIn("process.pid", [label["key"] for label in labels])


class Mock(Asked, unittest.TestCase):
    service = "checkout"

    @staticmethod
    def start(stack):
        return stage.server(stack, ["node", "ui/mock/server.mjs", "--port", "0"], "the mock")

    def test_all_kinds_of_metrics_are_there(self):
        self.assertEqual({m["kind"] for m in self.metrics().values()}, {"gauge", "counter", "histogram"})

    def test_all_kinds_of_events_are_there(self):
        events = self.ask("/api/events")["events"]
        self.assertEqual({(e["kind"], e["picture"]) for e in events},
                         {("oom_kill", "kill"), ("oom_kill", "earlier"), ("oom_near", None)})

    def test_a_large_profile_is_folded_on_demand(self):
        base = [("service", "giant"), ("type", self.type)]
        whole = self.ask("/api/flame", base + [("max_nodes", 250000)])
        self.assertEqual((len(whole["name"]), whole["folded"]), (200000, 0))
        few = self.ask("/api/flame", base)
        self.assertLessEqual(len(few["name"]), 20000)
        other = few["names"].index("(other)")
        self.assertEqual(few["folded"], sum(t for n, t in zip(few["name"], few["total_of"]) if n == other))
