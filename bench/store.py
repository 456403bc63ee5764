"""The embedded store beside plain rows in SQLite: bytes, CPU of writing, CPU of sums.

Part of a day is written, which takes less than a minute; dictionaries, which a day pays once, weigh
more on a part than on the whole, so its figures per sample are upper bounds.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")


def measure(build=BUILD, hours=2, rows_hours=1):
    """Runs the benchmark in a folder of its own; its figures as a dict."""
    with tempfile.TemporaryDirectory(prefix="sonde-store-") as folder:
        done = subprocess.run(
            [os.path.join(build, "bench", "store_bench"), folder, str(hours), str(rows_hours)],
            check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def table(r):
    """The figures as a table in Markdown."""
    day = f"{r['merge_rolled_day_ms']:.1f}"
    return "\n".join([
        f"{r['samples'] / 1e6:.1f} M samples in {r['hours']} h; {r['stacks']} stacks in an answer; "
        f"the writer holds {r['writer_mb']:.0f} MB at most.",
        "",
        "| store | M samples per CPU-s | bytes/sample | sum of 1 h, ms CPU | of all, ms | rolled up, ms |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| plain rows | {r['rows_million_samples_per_cpu_s']:.2f} | "
        f"{r['rows_bytes_per_sample']:.1f} | {r['rows_merge_1h_ms']:.1f} | - | - |",
        f"| embedded | {r['million_samples_per_cpu_s']:.2f} "
        f"({r['million_samples_per_cpu_s_last_hour']:.2f} in the last hour) | "
        f"{r['closed_bytes_per_sample']:.2f} ({r['day_bytes_per_sample']:.2f} extrapolated to 24 h "
        f"of the same dictionaries) | {r['merge_1h_ms']:.1f} | "
        f"{r['merge_all_ms']:.1f} | {day} |",
    ])


if __name__ == "__main__":
    print(table(measure(*sys.argv[1:2])))
