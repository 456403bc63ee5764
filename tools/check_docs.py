#!/usr/bin/env python3
"""Checks that every command and option that `sonde help` names stands in the manual page and in both
completions, and that these name no option that does not exist. The word of each family of profile types stands
there as well: `sonde query -t` takes it."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ("man/sonde.1", "completions/sonde.bash", "completions/_sonde")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def commands(sonde):
    text = output(sonde, "help").split("Commands:", 1)[1]
    return [m.group(1) for m in re.finditer(r"^  ([a-z]+) ", text, re.M)]


def options(sonde, command):
    if command == "help":
        return []
    text = output(sonde, command, "--help").split("Options:", 1)[1]
    found = []
    for m in re.finditer(r"^  (?:-(\w), |    )--([a-z-]+)", text, re.M):
        found += ["--" + m.group(2)] + (["-" + m.group(1)] if m.group(1) else [])
    return found


def words(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    # In roff a dash is written \-.
    return text.replace("\\-", "-")


def families():
    """Of the registry, without their runtime: heap, mutex."""
    with open(os.path.join(ROOT, "src/pipeline/registry/types.c"), encoding="utf-8") as f:
        found = re.findall(r'\{"([a-z_]+)",\s*"[a-z_]+",\s*"[a-z]+"', f.read())
    return sorted({family.split("_", 1)[-1] for family in found})


def main():
    sonde = sys.argv[1] if len(sys.argv) > 1 else "build/sonde"
    known = {"--version", "-V", "--help", "-h"}
    passed, problems = 0, []
    texts = {path: words(path) for path in FILES}
    for command in commands(sonde):
        wanted = options(sonde, command)
        known |= set(wanted)
        for path, text in texts.items():
            for word in [command] + wanted:
                if re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), text):
                    passed += 1
                else:
                    problems.append(f"{path}: {word} of `sonde {command}` is missing")
    for path, text in texts.items():
        for word in families():
            if re.search(r"(?<![\w-])%s(?![\w-])" % word, text):
                passed += 1
            else:
                problems.append(f"{path}: the profile type {word} is missing")
        for word in sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - known):
            problems.append(f"{path}: there is no option {word}")
    for problem in problems:
        print("FAIL", problem)
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
