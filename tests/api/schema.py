"""docs/openapi.json: its endpoints, what is wrong with an answer, and questions that it allows and forbids.

Only the keywords of JSON Schema that the document uses are known here; another one is an error, so that
nothing in it goes unchecked.
"""
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = os.path.join(ROOT, "docs", "openapi.json")
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
SILENT = {"description", "examples", "default"}
DAY_MS = 86400 * 1000


class SchemaError(Exception):
    """The document itself is wrong."""


class Document:
    def __init__(self, path=PATH):
        with open(path, encoding="utf-8") as f:
            self.doc = json.load(f)
        self.schemas = self.doc["components"]["schemas"]
        self.endpoints = {p: Endpoint(self, p, ops["get"]) for p, ops in self.doc["paths"].items()}

    def follow(self, node):
        """What a reference stands for; anything else as it is."""
        while "$ref" in node:
            where = self.doc
            for part in node["$ref"].removeprefix("#/").split("/"):
                where = where[part]
            node = where
        return node

    def errors(self, value, schema, where="answer"):
        """Sentences that say what is wrong with a value; none when it is right."""
        schema = self.follow(schema)
        found = []
        for word, rule in schema.items():
            if word in SILENT:
                continue
            check = CHECKS.get(word)
            if not check:
                raise SchemaError(f"{where}: unknown keyword {word}")
            found += check(self, value, rule, schema, where)
            if word == "type" and found:
                break
        return found

    def fields(self, schema, found=None):
        """The names of all properties of a schema, at any depth."""
        found = set() if found is None else found
        schema = self.follow(schema)
        for name, sub in schema.get("properties", {}).items():
            found.add(name)
            self.fields(sub, found)
        inner = [schema["items"]] if "items" in schema else []
        for sub in schema.get("anyOf", []) + schema.get("oneOf", []) + inner:
            self.fields(sub, found)
        return found


# --- what is wrong with a value -------------------------------------------------------------------


def is_kind(value, kind):
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or isinstance(value, float) and value.is_integer()
        return not isinstance(value, bool) and (whole or kind == "number" and isinstance(value, float))
    return isinstance(value, KINDS[kind]) and not (kind != "boolean" and isinstance(value, bool))


def check_type(_, value, rule, __, where):
    kinds = rule if isinstance(rule, list) else [rule]
    ok = any(is_kind(value, kind) for kind in kinds)
    return [] if ok else [f"{where} is {value!r:.60}, not {' or '.join(kinds)}"]


def check_properties(doc, value, rule, _, where):
    if not isinstance(value, dict):
        return []
    return [e for name, sub in rule.items() if name in value
            for e in doc.errors(value[name], sub, f"{where}.{name}")]


def check_closed(_, value, rule, schema, where):
    if rule is not False:
        raise SchemaError(f"{where}: additionalProperties is {rule}")
    return [f"{where}.{name} is not in the schema" for name in value
            if name not in schema["properties"]] if isinstance(value, dict) else []


def check_items(doc, value, rule, _, where):
    found = []
    for i, item in enumerate(value if isinstance(value, list) else []):
        found += doc.errors(item, rule, f"{where}[{i}]")
        if len(found) > 20:
            break
    return found


def check_dependent(_, value, rule, __, where):
    return [f"{where} has {name} without {other}" for name, others in rule.items() if name in value
            for other in others if other not in value] if isinstance(value, dict) else []


def alternatives(most):
    def check(doc, value, rule, _, where):
        wrong = [doc.errors(value, sub, where) for sub in rule]
        right = wrong.count([])
        if right and right <= most:
            return []
        closest = min(wrong, key=len)
        return [f"{where} is {right} of {len(rule)} alternatives"] + closest
    return check


def limit(holds, text):
    def check(_, value, rule, __, where):
        return [] if holds(value, rule) else [f"{where} is {value!r:.60}, {text} {rule}"]
    return check


def of(kind, holds):
    return lambda value, rule: not isinstance(value, kind) or holds(value, rule)


NUMBER = (int, float)
CHECKS = {
    "type": check_type,
    "properties": check_properties,
    "additionalProperties": check_closed,
    "required": limit(of(dict, lambda v, r: set(r) <= set(v)), "without one of"),
    "dependentRequired": check_dependent,
    "items": check_items,
    "minItems": limit(of(list, lambda v, r: len(v) >= r), "fewer than"),
    "maxItems": limit(of(list, lambda v, r: len(v) <= r), "more than"),
    "enum": limit(lambda v, r: v in r, "none of"),
    "minimum": limit(of(NUMBER, lambda v, r: v >= r), "below"),
    "maximum": limit(of(NUMBER, lambda v, r: v <= r), "above"),
    "multipleOf": limit(of(NUMBER, lambda v, r: v % r == 0), "no multiple of"),
    "minLength": limit(of(str, lambda v, r: len(v) >= r), "shorter than"),
    "maxLength": limit(of(str, lambda v, r: len(v) <= r), "longer than"),
    "pattern": limit(of(str, lambda v, r: re.search(r, v) is not None), "not like"),
    "anyOf": alternatives(99),
    "oneOf": alternatives(1),
}


# --- questions ------------------------------------------------------------------------------------


class Endpoint:
    def __init__(self, document, path, operation):
        self.document, self.path, self.operation = document, path, operation
        self.parameters = [Parameter(document.follow(p)) for p in operation.get("parameters", [])]
        self.responses = {code: document.follow(r) for code, r in operation["responses"].items()}

    def names(self):
        return [p.name for p in self.parameters]

    def content(self, status):
        """(media type, schema) of an answer; None for a status that the document lacks."""
        response = self.responses.get(str(status))
        if not response:
            return None
        kind, body = next(iter(response["content"].items()))
        return kind, body["schema"]


class Parameter:
    def __init__(self, node):
        self.name, self.required = node["name"], node.get("required", False)
        self.several = node["schema"]["type"] == "array"
        self.max = node["schema"].get("maxItems", 1)
        self.schema = node["schema"]["items"] if self.several else node["schema"]

    def valid(self):
        """Values that are right by the schema alone."""
        s = self.schema
        if s["type"] == "integer":
            some = [s["minimum"], s["minimum"] + s.get("multipleOf", 1), s["maximum"]]
            return [str(n) for n in some + ([s["default"]] if "default" in s else [])]
        return list(s.get("examples", []))

    def invalid(self):
        """Values that are wrong by the schema."""
        s = self.schema
        if s["type"] == "integer":
            uneven = [str(s["minimum"] + 1)] if "multipleOf" in s else []
            return uneven + [str(s["minimum"] - 1), str(s["maximum"] + 1), "", "x", "-1", "1.5", "1e2", "0x10",
                    " 8", "8 ", "99999999999999999999"]
        wrong = [""] if s.get("minLength") else []
        wrong += ["x" * (s["maxLength"] + 1)] if "maxLength" in s else []
        if "pattern" in s:
            wrong += [w for w in ("yesterday", "=", "-", "-1y", "1e3", "no equals sign", "\u00e4")
                      if not re.search(s["pattern"], w)]
        return wrong
