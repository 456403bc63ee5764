"""docs/openapi.json by itself, and beside docs/API.md, the page's types and the server's source."""
import copy
import json
import os
import re
import unittest

import api_types
import registry_docs
from schema import DAY_MS, ROOT, Document

WINDOW = {"service", "type", "from", "to", "label"}
# Only there with a second window, or with something to tell.
OPTIONAL = {"before_total", "before_self", "before_total_of", "before_window_total", "damaged", "variants", "build_of"}
METRIC = re.compile(r"\b(?:container|sonde|system)_[a-z0-9_]+[a-z0-9]\b")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def sample(document, schema):
    """A value that is right by a schema, with everything that it allows."""
    s = document.follow(schema)
    for word in ("anyOf", "oneOf"):
        if word in s:
            return sample(document, s[word][0])
    if "enum" in s:
        return s["enum"][0]
    if "examples" in s:
        return s["examples"][0]
    kind = s["type"] if isinstance(s["type"], str) else s["type"][0]
    if kind == "object":
        return {name: sample(document, sub) for name, sub in s["properties"].items()}
    if kind == "array":
        return [sample(document, s["items"]) for _ in range(max(s.get("minItems", 1), 1))]
    return {"string": "x", "integer": s.get("minimum", 0), "number": 0.5, "boolean": True}[kind]


def places(value, path=()):
    """The paths of everything inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


def change(value, path, how):
    """A copy in which how(container, key) was done to what is at a path."""
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    how(at, path[-1])
    return value


def put(what):
    def how(container, key):
        container[key] = what
    return how


class Schema(unittest.TestCase):
    def setUp(self):
        self.document = Document()

    def test_objects_are_closed_and_their_fields_required(self):
        for name, s in self.document.schemas.items():
            if s.get("type") == "object":
                self.assertIs(s["additionalProperties"], False, name)
                self.assertEqual(set(s["properties"]) - set(s["required"]) - OPTIONAL, set(), name)
                self.assertEqual(set(s["required"]) - set(s["properties"]), set(), name)

    def test_a_field_too_many_or_too_few_or_of_another_kind_is_noticed(self):
        for name, s in self.document.schemas.items():
            good = sample(self.document, s)
            self.assertEqual(self.document.errors(good, s), [], name)
            if not isinstance(good, dict):
                continue
            self.assertTrue(self.document.errors({**good, "extra": 1}, s), name)
            for path in places(good):
                with self.subTest(schema=name, path=path):
                    for wrong in (put(object()), put({"extra": 1})):
                        self.assertTrue(self.document.errors(change(good, path, wrong), s))
                    if isinstance(path[-1], str) and path[-1] not in OPTIONAL:
                        self.assertTrue(self.document.errors(change(good, path, dict.pop), s))

    def test_texts_numbers_and_lists_have_their_limits(self):
        for schema, good, bad in (
                ("Time", (0, 1767323045678), (-1, 0.5, "0", None, True)),
                ("Type", ("cpu:cpu:nanoseconds",), ("cpu", "cpu:cpu:seconds", "")),
                ("Mode", ("delta",), ("sum", None)),
                ("Points", ([], [1.5, None]), ([-1], ["1"], None, {}))):
            for value in good:
                self.assertEqual(self.document.errors(value, self.document.schemas[schema]), [])
            for value in bad:
                self.assertTrue(self.document.errors(value, self.document.schemas[schema]), value)

    def test_errors_have_one_form(self):
        for path, endpoint in self.document.endpoints.items():
            for code in endpoint.responses:
                if code != "200":
                    kind, schema = endpoint.content(code)
                    self.assertEqual((kind, schema), ("application/json", {
                        "$ref": "#/components/schemas/ErrorBody"}), path)

    def test_the_page_has_its_types(self):
        self.assertEqual(read("ui/src/schema.ts"), api_types.generate(),
                         "ui/src/schema.ts is old: run tools/api_types.py")


class Docs(unittest.TestCase):
    """docs/API.md says the same as docs/openapi.json."""

    @classmethod
    def setUpClass(cls):
        cls.document = Document()
        cls.text = read("docs/API.md")
        cls.rows = {m[1]: (m[2], m[3]) for m in
                    re.finditer(r"^\| GET `([^`]+)` \|(.*?)\|(.*)\|$", cls.text, re.M)
                    if m[1] in cls.document.endpoints or m[1].startswith("/api/")}

    def test_paths(self):
        self.assertEqual(set(self.rows), set(self.document.endpoints))

    def parameters(self, path):
        cell = self.rows[path][0]
        return set(re.findall(r"`([a-z_]+)`", cell)) | (WINDOW if "window" in cell.split(",")[0] else set())

    def test_parameters(self):
        for path, endpoint in self.document.endpoints.items():
            self.assertEqual(self.parameters(path), set(endpoint.names()), path)

    def test_limits_of_parameters(self):
        for path, endpoint in self.document.endpoints.items():
            for p in endpoint.parameters:
                for word in ("default", "minimum", "maximum"):
                    n = p.schema.get(word, 1)
                    says = "40 days" if n == 40 * DAY_MS else f"{n:,}"
                    text = self.text if n == 40 * DAY_MS else self.rows[path][0]
                    self.assertTrue(n == 1 or says in text, f"{path}: {word} of {p.name}: {says}")
                if p.several:
                    self.assertRegex(self.text, rf"(?i){p.max} (labels|times|types)|up to {p.max}", p.name)

    def answer(self, path):
        """What the docs say of an answer: its cell, and the paragraph that begins with its path."""
        paragraph = re.search(rf"^`{path}` (?:returns|accepts)(?:(?!\n\n).)*(?:\n\n```json\n.*?```)?",
                              self.text, re.M | re.S)
        return self.rows[path][1] + (paragraph[0] if paragraph else "")

    def test_fields(self):
        for path, endpoint in self.document.endpoints.items():
            kind, schema = endpoint.content(200)
            if kind != "application/json":
                self.assertIn(kind.split("/")[0] if kind == "text/plain" else kind, self.answer(path))
                continue
            text = self.answer(path)
            said = set(re.findall(r'"([a-z_]+)"(?=[,:}]|\s*\])', text.split("```")[0]))
            said |= {key for block in re.findall(r"```json\n(.*?)```", text, re.S) for key in json.loads(block)}
            self.assertEqual(said, self.document.fields(schema), path)

    def test_features_and_their_causes(self):
        section = self.text.split("## Features", 1)[1].split("\n## ", 1)[0]
        fields = self.document.schemas["Feature"]["properties"]
        for field, table in zip(("feature", "cause"), section.split("| --- | --- |")[1:]):
            said = [name for cell in re.findall(r"^\| ([^|]*) \|", table.split("\n\n")[0], re.M)
                    for name in re.findall(r"`([^`]+)`", cell)]
            self.assertEqual(said, [word for word in fields[field]["enum"] if word], field)

    def test_causes_of_readers(self):
        """Those of the machine, which features have, and those of a process."""
        section = self.text.split("## Features", 1)[1].split("\n## ", 1)[0]
        said = re.findall(r"`([a-z_]+)`", " ".join(
            re.findall(r"^\| ([^|]*) \|", section.split("| `cause` of a reader |", 1)[1], re.M)))
        causes = [self.document.schemas[name]["properties"]["cause"]["enum"] for name in ("Feature", "Reader")]
        self.assertEqual(causes[1], [*filter(None, causes[0]), *said, None])

    def test_causes_in_the_source(self):
        names = re.findall(r'\[ERR_CAUSE_[A-Z_]+\] = "([a-z_]+)"', read(os.path.join(ROOT, "src/base/err.c")))
        self.assertEqual(set(names), set(self.document.schemas["Reader"]["properties"]["cause"]["enum"]) - {None})

    def test_statuses(self):
        said = set(re.findall(r"\b[45]\d\d\b", self.text.split("\n## ")[0].split("| type |")[0]))
        used = {code for e in self.document.endpoints.values() for code in e.responses} - {"200"}
        # The HTTP library has answers of its own.
        self.assertEqual(said - {"431", "505"}, used)

    def test_the_tables_are_those_of_the_registry(self):
        registry = json.loads(read("ui/mock/types.json"))
        self.assertEqual(set(registry_docs.TABLES), set(re.findall(r"<!-- registry: (\w+) -->", self.text)))
        self.assertEqual(self.text, registry_docs.fill(self.text, registry),
                         "docs/API.md is old: run tools/registry_docs.py")

    def test_metrics(self):
        registry = json.loads(read("ui/mock/types.json"))
        self.assertEqual(set(METRIC.findall(self.text)),
                         {m["prometheus"] for m in registry["metrics"] if m["prometheus"]})

    def test_every_row_of_the_registry_has_an_id(self):
        """And every id a row: what is in the headers is what is answered."""
        registry = json.loads(read("ui/mock/types.json"))
        header = read("src/pipeline/registry/registry.h")
        for word, rows in (("TYPE", "types"), ("METRIC", "metrics"), ("EVENT", "events")):
            ids = re.search(rf"enum {word.lower()}_id {{(.*?)}};", header, re.S)[1]
            self.assertEqual(len(re.findall(rf"\b{word}_\w+", ids)), len(registry[rows]))
