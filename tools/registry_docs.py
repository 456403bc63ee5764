#!/usr/bin/env python3
"""Writes what is made of the registry (src/pipeline/registry/registry.h): the tables of docs/API.md, and
ui/mock/types.json, the answer to /api/types.

    registry_docs.py [SONDE]    asks that sonde, or build/sonde, and writes both

In docs/API.md a table stands between `<!-- registry: NAME -->` and `<!-- end -->`.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCS = os.path.join(ROOT, "docs", "API.md")
ANSWER = os.path.join(ROOT, "ui", "mock", "types.json")
PLACE = re.compile(r"(<!-- registry: (\w+) -->\n).*?(<!-- end -->)", re.S)


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def types(registry):
    """Those with stacks, and the streams of metrics after them."""
    mode = {"gauge": "snapshot", "counter": "delta"}
    rows = [[f"`{t['type']}`", t["mode"], t["title"], t["help"]] for t in registry["types"]]
    rows += [[f"`{m['stream']}`", mode[m["kind"]], m["title"], m["help"]]
             for m in registry["metrics"] if m["stream"]]
    return table(["type", "mode", "title", "what"], rows)


def metrics(*prefixes):
    """Those on /metrics whose family begins like that."""
    def write(registry):
        rows = []
        for m in registry["metrics"]:
            if m["prometheus"] and m["family"].startswith(prefixes):
                labels = ", ".join(f"`{a['label']}`" for a in m["attributes"])
                rows.append([f"`{m['prometheus']}`", m["kind"], labels, m["help"], f"`{m['metric']}`"])
        return table(["name", "type", "labels", "what", "metric"], rows)
    return write


def events(registry):
    return table(["event", "what", "profile"],
                 [[f"`{e['event']}`", e["help"], f"`{e['family']}`"] for e in registry["events"]])


TABLES = {"types": types, "events": events, "process": metrics("cpu", "process"), "machine": metrics("system"),
          "go": metrics("go_"),
          "jvm": metrics("java_"), "sonde": metrics("sonde")}


def fill(text, registry):
    """docs/API.md with its tables as the registry says."""
    return PLACE.sub(lambda m: m[1] + TABLES[m[2]](registry) + m[3], text)


def ask(sonde):
    with tempfile.TemporaryDirectory(prefix="sonde-registry-") as data:
        argv = [sonde, "run", "--listen", "127.0.0.1:0", "--data-dir", data, "--cpu-hz", "0", "--oom-watch", "0"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
            try:
                url = child.stdout.readline().split()[-1].rstrip("/")
                with urllib.request.urlopen(f"{url}/api/types", timeout=60) as answer:
                    return json.load(answer)
            finally:
                child.terminate()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    registry = ask(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "sonde"))
    write(ANSWER, json.dumps(registry, indent=1) + "\n")
    write(DOCS, fill(read(DOCS), registry))


if __name__ == "__main__":
    main()
