#!/usr/bin/env python3
"""What it costs to sample a tracepoint and a function that are passed all the time, by how stacks are captured.

A program (calls.c) makes the system call getppid, and calls a function before it, as fast as it can, under a stack of --frames
functions. The table says how much processor time a round takes it, without a recorder and with each, and what the recorder used itself (user and
system time of its process, with loading, tables, names and writing). By default plumb takes each passing until there are too many, then
-F; `each` is -c 1, as perf does for tracepoints and functions. `only counted` is `perf stat`: the least that the kernel takes for such an
event. `copies` is plumb without programs of its own in the kernel. Medians of --rounds, which take turns. `passed` is what the
recorder says of what the program did, `rooted` the share of samples whose stack is complete (perf does not say).

    bench/events/run.py [--seconds 4] [--rounds 5] [--frames 20] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVENTS = {"syscalls:sys_enter_getppid": "getppid", "uprobe:./calls:probed": "function"}


def plumb(capture, *options):
    return lambda args, event: [args.plumb, "record", "--capture", capture, "-e", event, *options, "-o", "recording", "--"]


def perf_name(event):
    return "probe_calls:probed" if event.startswith("uprobe") else event


def perf(*options):
    return lambda args, event: ["perf", "record", "-q", "-e", perf_name(event), "--call-graph", "dwarf", *options, "-o", "recording", "--"]


RECORDERS = {
    "none": lambda args, event: [],
    "only counted": lambda args, event: ["perf", "stat", "-x", ",", "-o", "recording", "-e", perf_name(event), "--"],
    "plumb bpf": plumb("bpf"),
    "plumb copies": plumb("perf"),
    "perf dwarf -F 999": perf("-F", "999"),
    "plumb bpf, 1 in 100": plumb("bpf", "-c", "100"),
    "plumb bpf, each": plumb("bpf", "-c", "1"),
    "plumb copies, each": plumb("perf", "-c", "1"),
    "perf dwarf, each": perf("-c", "1"),
}


def run(args, name, event, folder):
    command = [str(word) for word in RECORDERS[name](args, event)] + ["./calls", str(args.frames), str(args.seconds)]
    recording = folder / "recording"
    recording.unlink(missing_ok=True)
    with (folder / "log").open("w+") as log, (folder / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        log.seek(0)
        said.seek(0)
        text = log.read()
        if status:
            sys.exit(f"{command} failed:\n{text}")
        numbers = re.search(r"^(\d+) ([\d.]+) ([\d.]+)$", said.read(), re.M)
    # The program is a child, whose own use is part of what is waited for.
    row = {"ns": float(numbers[2]), "own": usage.ru_utime + usage.ru_stime - float(numbers[3])}
    if name.startswith("plumb"):
        row["bytes"] = recording.stat().st_size
        report = json.loads(subprocess.run([args.plumb, "report", "--json", recording], capture_output=True, check=True).stdout)
        shown = report["reports"][0]
        row |= {"samples": shown["samples"], "lost": report["lost_samples"], "passed": shown.get("occurrences"),
                "rooted": shown["complete_percent"], "weight": shown["weight"]}
        walked = re.search(r"([\d.]+)% of samples walked", text)
        row["walked"] = float(walked[1]) if walked else None
    elif name.startswith("perf"):
        row["bytes"] = recording.stat().st_size
        lines = subprocess.run(["perf", "report", "-i", recording, "--stats"], capture_output=True, text=True).stdout
        count = lambda kind: sum(int(found) for found in re.findall(rf"{kind} events:\s+(\d+)", lines))
        row |= {"samples": count("SAMPLE"), "lost": count("LOST_SAMPLES") or count("LOST")}
    return row


def table(rows, events):
    print("| event | recorder | ns a round | dearer by ns | recorder's processor s | samples | lost | of what was passed | rooted % | walked in the kernel % | MB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for event in events:
        bare = statistics.median(row["ns"] for row in rows[event, "none"])
        for name in RECORDERS:
            of = rows[event, name]

            def median(key, digits=0):
                values = [row[key] for row in of if row.get(key) is not None]
                return f"{statistics.median(values):,.{digits}f}" if values else ""

            dearer = statistics.median(row["ns"] for row in of) - bare
            mb = statistics.median(row.get("bytes", 0) for row in of) / 1e6
            shares = [row["weight"] / row["passed"] * 100 for row in of if row.get("passed")]
            share = f"{statistics.median(shares):.2f}%" if shares else ""
            print(f"| {EVENTS[event]} | {name} | {median('ns')} | {dearer:,.0f} | {median('own', 2) if name != 'none' else ''} | {median('samples')} | {median('lost')} "
                  f"| {share} | {median('rooted', 2)} | {median('walked', 1)} | {f'{mb:,.2f}' if mb else ''} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--plumb", default=ROOT / "target/release/plumb", type=lambda path: Path(path).resolve())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-o", folder / "calls", ROOT / "bench/events/calls.c"], check=True)
        probe = subprocess.run(["perf", "probe", "-q", "-x", folder / "calls", "--add", "probed"], capture_output=True, text=True)
        if probe.returncode:
            sys.exit(f"perf probe: {probe.stderr}")
        rows = {}
        try:
            for index in range(args.rounds):
                for event in EVENTS:
                    names = list(RECORDERS)
                    for name in names if index % 2 == 0 else reversed(names):
                        rows.setdefault((event, name), []).append(run(args, name, event, folder))
        finally:
            subprocess.run(["perf", "probe", "-q", "--del", "probe_calls:probed"], check=False)
        load = os.getloadavg()[0]
        print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {load:.1f}, {args.frames} frames, {args.seconds:g} s, "
              f"{args.rounds} rounds, {subprocess.run(['perf', '--version'], capture_output=True, text=True).stdout.strip()}.\n")
        table(rows, EVENTS)


if __name__ == "__main__":
    main()
