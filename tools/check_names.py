#!/usr/bin/env python3
"""Checks that what a header under src/ exports says where it lives: functions, types, constants, macros
and variables begin with the name of their room (`proc_mem_read`, `struct proc_mem`, `PROC_MEM_...`).

Exempt are headers of BPF programs (`*.bpf.h`), which no other program sees, and names that a specification
has given (FOREIGN). A room that is the others' vocabulary has words of its own (WORDS). Parts that nobody
else includes may be named by their folder or their file (PARTS): `render_tree`, `term_width`, `python_code_read`;
as long as that is not the name of another room."""
import functools
import os
import re
import sys

import check_includes

ROOT = check_includes.ROOT
# Room: the words that its names may begin with besides its own; None: any.
WORDS = {
    "base": None,
    "pipeline": ("delivery", "event", "events", "inbox", "live", "metric", "metrics", "mode",
                 "outbox", "record", "registry", "resource", "resources", "sink", "source", "spool", "type", "types"),
}
PARTS = ("src/cli/", "src/cpu/interp/")
# Header: the names in it that are not ours.
FOREIGN = {
    "src/cpu/bpf/walk.h": r"barrier_var",  # of libbpf
    "src/elf/dwarf/const.h": r"DW_\w+",
    "src/java/agent_lib/jvm.h": r"(JVM|JVMTI|VM|JNI|TI|jvm|vm|jni|ti)(_\w+)?",
}
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
UNDEFINED = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
TAG = re.compile(r"\b(struct|union|enum)\s+(\w+)\s*\{")
FUNCTION = re.compile(r"(\w+)\s*\((?!\s*\*)")
INVOKED = re.compile(r"^(?:[A-Z][A-Z_]+\([^()]*\)\s*)+")
POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")


def statements(text):
    """What stands outside of all braces, each with the braces' contents beside it."""
    depth, outside, inside = 0, "", ""
    for c in text:
        depth -= c == "}"
        if depth == 0:
            outside += c
        else:
            inside += c
        depth += c == "{"
        function = c == "}" and depth == 0 and re.search(r"\)\s*\{\}$", outside)
        if depth == 0 and (c == ";" or function):
            yield outside.strip(), inside
            outside, inside = "", ""


def constants(text):
    """The constants of all enums in a text."""
    for m in re.finditer(r"\benum\b[^{;()]*\{([^}]*)\}", text):
        flat = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", m.group(1)))
        for part in flat.split(","):
            if name := re.match(r"\s*(\w+)", part):
                yield name.group(1)


def declared(statement):
    """The function, type or variable that a statement declares; None for a type alone."""
    # A macro such as DEFINE_CLEANUP(type, name) needs no semicolon; what it makes begins with name.
    statement = INVOKED.sub("", statement)
    if not statement or statement.startswith(("_Static_assert", "static_assert")):
        return None
    head = statement.split("=")[0].rstrip("; \n")
    if statement.startswith("typedef"):
        pointer = POINTER.search(head)
        return (pointer or FUNCTION.search(head) or re.search(r"(\w+)(?:\s*\[[^]]*\])*$", head)).group(1)
    call = FUNCTION.search(head)
    if call:
        return call.group(1)
    if re.fullmatch(r"(?:struct|union|enum)(?:\s+\w+)?\s*(?:\{\})?", head):
        return None
    name = re.search(r"(\w+)(?:\s*\[[^]]*\])*$", head)
    return name.group(1) if name else None


def exported(text):
    """[(kind, name)] of a header, kind being "tag" for struct, union and enum, else "name". What
    is only named, and made elsewhere, is opaque()'s affair."""
    text = NOISE.sub(lambda m: '""' if m[0][0] in "\"'" else " ", text)
    undefined = set(UNDEFINED.findall(text))
    found = [("name", name) for name in MACRO.findall(text) if name not in undefined]
    text = ATTRIBUTE.sub("", DIRECTIVE.sub("", text))
    for statement, inside in statements(text):
        function = re.search(r"\)\s*\{\}", statement)
        whole = statement if function else statement.replace("{}", "{" + inside + "}", 1)
        found += [("tag", tag) for _, tag in TAG.findall(whole)]
        found += [("name", name) for name in constants(whole)]
        name = declared(statement)
        if name:
            found.append(("name", name))
    return list(dict.fromkeys(found))


def opaque(path):
    """Types that a header only names, where a .c file of its room says what they are."""
    named = re.findall(r"^(?:struct|union) (\w+);", check_includes.read(path), re.M)
    whole = "".join(check_includes.read(p) for p in sources(path.split("/")[1])) if named else ""
    return [("tag", tag) for tag in named if re.search(rf"^(?:struct|union) {tag} \{{", whole, re.M)]


@functools.lru_cache(maxsize=None)
def sources(room):
    """The .c files of a room."""
    return [os.path.relpath(os.path.join(folder, name), ROOT)
            for folder, _, names in os.walk(os.path.join(ROOT, "src", room))
            for name in names if name.endswith(".c")]


def begins(name, words):
    return any(name == word or name.startswith(word + "_") for word in words)


def wrong(path, name, rooms):
    """Why a name that the header at path exports must have another one; None where it may stay."""
    _, room, *folders, file = path.split("/")
    lower = name.lower().lstrip("_")
    if begins(lower, [room, *WORDS.get(room, ())]) or re.fullmatch(FOREIGN.get(path, r"(?!)"), name):
        return None
    if path.startswith(PARTS):
        if begins(lower, set(rooms) - {room}):
            return f"{name} begins with the name of another room"
        if begins(lower, [*folders, *subfolders(room), os.path.splitext(file)[0]]):
            return None
    return f"{name} does not begin with {room}_"


@functools.lru_cache(maxsize=None)
def subfolders(room):
    return [n for n in os.listdir(os.path.join(ROOT, "src", room)) if "." not in n]


def headers():
    """Paths of the headers to check."""
    for folder, _, names in sorted(os.walk(os.path.join(ROOT, "src"))):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            if name.endswith(".h") and not name.endswith(".bpf.h") and WORDS.get(path.split("/")[1], ()) is not None:
                yield path


def main():
    rooms = check_includes.table()
    passed, problems = 0, []
    for path in headers():
        for _, name in exported(check_includes.read(path)) + opaque(path):
            problem = wrong(path, name, rooms)
            if problem:
                problems.append(f"{path}: {problem}")
            else:
                passed += 1
    for problem in problems:
        print("FAIL", problem)
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
