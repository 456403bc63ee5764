#!/usr/bin/env python3
"""Runs every fuzz target for a while. New inputs go to build/fuzz/NAME, not into the corpus."""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def fuzz(binary, name, seconds):
    corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", name)
    found = os.path.join(ROOT, "build", "fuzz", name)
    os.makedirs(found, exist_ok=True)
    command = [binary, f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=10",
               "-print_final_stats=1", f"-artifact_prefix={found}/crash-", found]
    if os.path.isdir(corpus):
        command.append(corpus)
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace")
    runs = re.search(r"number_of_executed_units:\s*(\d+)", p.stdout)
    print(f"{name:<12} {'ok' if p.returncode == 0 else 'FAILED':<7}"
          f" {int(runs.group(1)) if runs else 0:>10} runs", flush=True)
    if p.returncode != 0:
        print("\n".join(p.stdout.splitlines()[-40:]))
    return p.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--asan", default="build-asan")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    args = parser.parse_args()
    folder = os.path.join(ROOT, args.asan, "tests", "fuzz")
    targets = sorted(n for n in os.listdir(folder) if re.fullmatch(r"fuzz_\w+", n))
    good = [fuzz(os.path.join(folder, t), t.removeprefix("fuzz_"), args.seconds) for t in targets]
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
