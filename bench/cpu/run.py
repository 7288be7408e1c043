#!/usr/bin/env python3
"""Records six workloads with plumb, perf and (where installed) samply, and prints one table in Markdown.

Per recorder: samples, coverage, lost, complete stacks, size, the recorder's processor time beside the target's, and
the time to a first text report. `end ms` is the time from the target's end to the recorder's, `more wall ms` all that the
recorder's run took longer than the target's own, start and end together. Medians over the repeats; the recorders take turns
within a repeat, so that a change of the machine's speed meets all alike. Run as root for kernel frames and per-processor
events.

plumb keeps tables and kernel symbols from run to run: the row `plumb` is with what an earlier run of the same workload,
which isn't counted, has kept. With --cold there is a row `plumb cold` in which each run begins with an empty cache.

    bench/cpu/build.sh && bench/cpu/run.py [--repeats 3] [--plumb target/release/plumb] [--only recur,deep] [--inline-limit 200] [--cold]
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from workloads import BIN, HZ, ROOT, WORKLOADS

# What a stack that is complete ends in: entry points of a process and of a thread.
ENTRY = re.compile(r"^(_start|__libc_start_.*|start_thread|(__)?clone3?|_dl_start_user|_dl_start)$")


def run(command, stdout=subprocess.DEVNULL, timeout=None, env=None):
    """Wall and processor seconds (user + sys, with waited-for children) of a command; None if it ran into the limit."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdout=stdout, stderr=log, cwd=BIN, env=env)
        if timeout:
            try:
                child.wait(timeout)
                return time.monotonic() - start, float("nan")
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                return None
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status:
            log.seek(0)
            sys.exit(f"{' '.join(map(str, command))} failed:\n{log.read().decode(errors='replace')}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime


def target_seconds(file):
    """Wall and processor seconds of the target alone, as its launcher saw them, and when it ended on the monotonic clock."""
    figures = json.loads(Path(file).read_text())
    return figures["wall"], figures["user"] + figures["sys"], figures["end"]


def stacks(command):
    """The samples of a `perf script` style text: lists of (address, symbol, dso), leaf first."""
    out = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", cwd=BIN)
    stack = None
    for line in out.stdout:
        if not line.strip():
            if stack is not None:
                yield stack
            stack = None
        elif line[0] in " \t" and stack is not None:
            found = re.match(r"\s+([0-9a-f]+) (.*) \((.*?)\)$", line)
            if found:
                stack.append((int(found[1], 16), re.sub(r"\+0x[0-9a-f]+$", "", found[2]), found[3]))
        else:
            stack = []
    if stack is not None:
        yield stack


def rooted(command):
    """Samples, and the share with user frames whose outermost one is an entry point."""
    samples = user = whole = 0
    for stack in stacks(command):
        samples += 1
        frames = [frame for frame in stack if frame[0] < 1 << 63]
        if frames:
            user += 1
            whole += bool(ENTRY.match(frames[-1][1].split("@")[0]))
    return samples, 100 * whole / user if user else float("nan")


class Plumb:
    name = "plumb"

    def __init__(self, options):
        self.program = str(Path(options.plumb).resolve())
        self.warmed = set()

    def cache(self, folder, workload):
        """Where plumb keeps what it keeps, warm."""
        cache = os.path.join(folder, "warm")
        if workload not in self.warmed:
            self.warmed.add(workload)
            os.makedirs(cache, mode=0o700, exist_ok=True)
            run(self.record(os.path.join(folder, "warming"), WORKLOADS[workload]), env=os.environ | {"XDG_CACHE_HOME": cache})
        return cache

    def record(self, file, command):
        return [self.program, "record", "-q", "-F", str(HZ), "-o", file, "--", *command]

    def script(self, file):
        return [self.program, "script", "--no-inline", file]

    def reports(self, file):
        return {"report": [self.program, "report", file]}

    def lost(self, file):
        report = json.loads(subprocess.run([self.program, "report", "--json", file], capture_output=True, check=True).stdout)
        return report["lost_samples"]


class PlumbCold(Plumb):
    name = "plumb cold"

    def cache(self, folder, workload):
        return tempfile.mkdtemp(prefix="cold-", dir=folder)


class PlumbBpf(Plumb):
    name = "plumb bpf"

    def record(self, file, command):
        return [self.program, "record", "-q", "--capture", "bpf", "-F", str(HZ), "-o", file, "--", *command]


class Perf:
    name = "perf dwarf"
    mode = ["--call-graph", "dwarf"]

    def __init__(self, options):
        self.reported = set()

    def record(self, file, command):
        return ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), *self.mode, "-o", file, "--", *command]

    def script(self, file):
        return ["perf", "script", "--no-inline", "-F", "comm,tid,time,event,ip,sym,dso", "-i", file]

    def reports(self, file):
        # What takes minutes is measured once.
        base = ["perf", "report", "--stdio", "-i", file]
        first = {} if os.path.basename(file) in self.reported else {"report": base}
        self.reported.add(os.path.basename(file))
        return first | {"report --no-inline": [*base, "--no-inline"]}

    def lost(self, file):
        stats = subprocess.run(["perf", "report", "--stats", "-i", file], capture_output=True, text=True).stdout
        return sum(int(n) for n in re.findall(r"LOST(?:_SAMPLES)? events:\s+(\d+)", stats))


class PerfFp(Perf):
    name = "perf fp"
    mode = ["-g"]


class Samply(Perf):
    name = "samply"

    def record(self, file, command):
        return ["samply", "record", "-s", "-r", str(HZ), "-o", file + ".json.gz", "--", *command]


def measure(recorder, workload, folder, options):
    file = os.path.join(folder, f"{workload}.{recorder.name.replace(' ', '-')}")
    timing = file + ".tw"
    env = os.environ | {"XDG_CACHE_HOME": recorder.cache(folder, workload)} if isinstance(recorder, Plumb) else None
    wall, cpu = run(recorder.record(file, [str(BIN / "tw"), timing, *WORKLOADS[workload]]), env=env)
    ended = time.monotonic()
    target_wall, target_cpu, target_end = target_seconds(timing)
    row = {"target cpu s": target_cpu, "recorder cpu %": 100 * (cpu - target_cpu) / target_cpu}
    row |= {"end ms": 1000 * (ended - target_end), "more wall ms": 1000 * (wall - target_wall)}
    if isinstance(recorder, Samply):
        row["size MB"] = os.path.getsize(file + ".json.gz") / 1e6
        return row
    samples, row["rooted %"] = rooted(recorder.script(file))
    row |= {"samples": samples, "coverage %": 100 * samples / (target_cpu * HZ), "lost": recorder.lost(file), "size MB": os.path.getsize(file) / 1e6}
    for what, command in recorder.reports(file).items():
        took = run(command, timeout=options.inline_limit)
        row[what + " s"] = took[0] if took else float("inf")
    return row


def works(peer):
    """Whether a peer is installed and can record at all; says so if not."""
    with tempfile.TemporaryDirectory(prefix="plumb-bench-") as folder:
        command = peer.record(os.path.join(folder, "probe"), ["true"])
        if not shutil.which(command[0]):
            print(f"{peer.name}: not installed.")
            return False
        probe = subprocess.run(command, capture_output=True, text=True)
        if probe.returncode:
            print(f"{peer.name}: can't record here: {' '.join(probe.stderr.split())[:160]}")
        return not probe.returncode


def bare(workload, folder):
    timing = os.path.join(folder, "bare.tw")
    run([str(BIN / "tw"), timing, *WORKLOADS[workload]])
    return {"target cpu s": target_seconds(timing)[1]}


def cell(value):
    if value is None or value != value:
        return ""
    if value == float("inf"):
        return "over the limit"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")) + "/release/plumb")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(WORKLOADS))
    parser.add_argument("--peers", default="plumb-bpf,perf,perf-fp,samply")
    parser.add_argument("--inline-limit", type=float, default=200, help="seconds that a report of a peer may take")
    parser.add_argument("--cold", action="store_true", help="measure plumb with an empty cache too")
    options = parser.parse_args()
    kinds = {"plumb-bpf": PlumbBpf, "perf": Perf, "perf-fp": PerfFp, "samply": Samply}
    peers = [kinds[name](options) for name in options.peers.split(",") if name in kinds]
    recorders = [Plumb(options)] + ([PlumbCold(options)] if options.cold else []) + [p for p in peers if works(p)]
    columns = ["target cpu s", "target cpu x", "samples", "coverage %", "lost", "rooted %", "size MB", "recorder cpu %", "end ms", "more wall ms", "report s", "report --no-inline s"]
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, {HZ} Hz, median of {options.repeats}.", flush=True)
    versions = [["perf", "--version"], [recorders[0].program, "--version"]]
    print("Against " + ", ".join(subprocess.run(v, capture_output=True, text=True).stdout.strip() for v in versions) + ".\n")
    print("| workload | recorder | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns), flush=True)
    with tempfile.TemporaryDirectory(prefix="plumb-bench-") as folder:
        for workload in options.only.split(","):
            rows = {}
            for _ in range(options.repeats):
                rows.setdefault("bare", []).append(bare(workload, folder))
                for recorder in recorders:
                    row = measure(recorder, workload, folder, options)
                    row["target cpu x"] = row["target cpu s"] / rows["bare"][-1]["target cpu s"]
                    rows.setdefault(recorder.name, []).append(row)
            for name, repeats in rows.items():
                figures = [[r[c] for r in repeats if c in r] for c in columns]
                medians = [statistics.median(column) if column else None for column in figures]
                print(f"| {workload} | {name} | " + " | ".join(map(cell, medians)) + " |", flush=True)


main()
