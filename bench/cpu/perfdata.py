#!/usr/bin/env python3
"""Holds `plumb report` on a perf.data against `perf report --no-inline`, for each of the six workloads.

Samples must be equal, and the self share of every command, file and symbol within 0.1 percentage points. Addresses
without a symbol are summed up per file, and names of one address taken together, because the two choose differently. Two
things that plumb names and perf 6.1 doesn't count as perf has them: stubs for functions that are chosen when a file is
loaded (`*ABS*+0x9be70@plt`, as binutils and later perfs say; perf 6.1 `@plt`), and the entry point of a stripped
program (`_start` by the file's header; perf has the bare address). Prints one table in Markdown, and the rows that differ.

    bench/cpu/build.sh && bench/cpu/perfdata.py [--plumb target/release/plumb] [--only recur,deep]
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from workloads import BIN, HZ, ROOT, WORKLOADS

LIMIT = 0.1


def symbol(name):
    """A name without what perf and plumb spell differently: spaces, and addresses that have no name."""
    name = re.sub(r"^\[[.kguH]\] ", "", name.strip())
    if re.fullmatch(r"(0x)?[0-9a-f]{16}", name) or name == "[unknown]":
        return "(no symbol)"
    return re.sub(r"^\*ABS\*\+0x[0-9a-f]+@plt$", "@plt", name.replace(" ", ""))


def perf(file):
    command = ["perf", "report", "--no-inline", "--stdio", "--no-children", "-g", "none", "--percent-limit", "0"]
    command += ["-F", "overhead,sample,comm,dso,sym", "-t", "|", "-i", file]
    text = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    rows, samples = collections.Counter(), 0
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        _, count, comm, dso, sym = line.split("|", 4)
        rows[comm.strip(), os.path.basename(dso.strip()), symbol(sym)] += int(count)
        samples += int(count)
    return samples, rows


def plumb(program, file):
    start = time.monotonic()
    text = subprocess.run([program, "report", file], capture_output=True, check=True).stdout
    seconds = time.monotonic() - start
    assert text
    command = [program, "report", "--json", "--no-inline", "--sort", "comm,dso,sym", file]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["reports"][0]
    rows, paths = collections.Counter(), {}
    for row in report["rows"]:
        if row["self_samples"]:
            paths[os.path.basename(row["dso"])] = row["dso"]
            rows[row["comm"], os.path.basename(row["dso"] or "[unknown]"), symbol(row["sym"])] += row["self_samples"]
    return report["samples"], rows, seconds, paths


class Aliases:
    """Several names for one address are one symbol: perf shows `cfree@GLIBC_2.2.5`, plumb `free`."""

    def __init__(self):
        self.known = {}

    def of(self, dso, paths):
        if dso not in self.known:
            names = {}
            for line in self.symbols(paths.get(dso, dso)):
                fields = line.split()
                if len(fields) >= 3:
                    names[fields[2].split("@")[0]] = fields[0]
                    names[fields[2]] = fields[0]
            self.known[dso] = names
        return self.known[dso]

    def symbols(self, path):
        if path.startswith("["):
            return Path("/proc/kallsyms").read_text().splitlines()
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
        found = re.search(r"Build ID: ([0-9a-f]+)", notes)
        debug = f"/usr/lib/debug/.build-id/{found[1][:2]}/{found[1][2:]}.debug" if found else path
        files = [[path], ["-D", path], [debug]]
        return [line for file in files for line in subprocess.run(["nm", *file], capture_output=True, text=True).stdout.splitlines()]

    def merged(self, rows, paths):
        merged = collections.Counter()
        for (comm, dso, name), count in rows.items():
            known = self.of(dso, paths)
            unnamed = name == "_start" and name not in known
            merged[comm, dso, "(no symbol)" if unnamed else known.get(name, name)] += count
        return merged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")) + "/release/plumb")
    parser.add_argument("--only", default=",".join(WORKLOADS))
    options = parser.parse_args()
    program = str(Path(options.plumb).resolve())
    print("| workload | size MB | samples, perf | samples, plumb | rows | rows over 0.1 points apart | largest distance | plumb report s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    apart, aliases = [], Aliases()
    for workload in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="plumb-bench-") as folder:
            file = os.path.join(folder, "perf.data")
            record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "--call-graph", "dwarf", "-o", file, "--"]
            subprocess.run([*record, *WORKLOADS[workload]], check=True, cwd=BIN, stdout=subprocess.DEVNULL)
            theirs, their_rows = perf(file)
            ours, our_rows, seconds, paths = plumb(program, file)
            size = os.path.getsize(file) / 1e6
        our_rows, their_rows = aliases.merged(our_rows, paths), aliases.merged(their_rows, paths)
        distances = {key: 100 * (our_rows[key] / ours - their_rows[key] / theirs) for key in our_rows | their_rows}
        far = {key: d for key, d in distances.items() if abs(d) > LIMIT}
        apart += [(workload, key, d) for key, d in far.items()]
        largest = max(map(abs, distances.values()))
        print(f"| {workload} | {size:.1f} | {theirs} | {ours} | {len(distances)} | {len(far)} | {largest:.3f} | {seconds:.2f} |", flush=True)
    for workload, key, distance in sorted(apart, key=lambda row: -abs(row[2])):
        print(f"\n{workload}: {' / '.join(key)}: plumb {distance:+.3f} points", end="")
    print()


main()
