#!/usr/bin/env python3
"""What it costs to record the time that threads are off the processor, where they are switched often.

The target (pipe.c) is two processes on one processor that hand a byte to and fro, at full speed and with something to do in between.
For each recorder, in turns: how much longer a switch takes the target, in its own processor time, to which what programs and events do
at the switch is charged; of plumb also what its programs took by the kernel's own count, in a run of its own
(kernel.bpf_stats_enabled, which makes them slower and is put back); what the recorder itself used (user and system time, with loading, names and writing; `while recording` is
without names, as it says itself); bytes; and of plumb how much of the time off has a stack.

`plumb old` is another plumb, given with --old. `copies` has each stack copied (--capture perf). perf sched record takes no user stacks,
perf record -e sched:sched_switch copies them. Run as root. Medians, with the quartiles of what the target lost.

    bench/off_cpu/run.py [--seconds 4] [--rounds 5] [--depth 20] [--busy 0 20000 500000] [--plumb target/release/plumb] [--old PATH]
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
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


def recorders(args):
    """Commands that come before the target's, with the file that they write."""
    plumb = lambda path, *more: lambda out: [path, "record", "--off-cpu", *more, "-o", out, "--"]
    found = {"none": lambda out: []}
    found["plumb"] = plumb(args.plumb)
    found["plumb copies"] = plumb(args.plumb, "--capture", "perf")
    if args.old:
        found["plumb old"] = plumb(args.old)
        found["plumb old, walked"] = plumb(args.old, "--capture", "bpf")
    found["perf sched record"] = lambda out: ["perf", "sched", "record", "-o", out, "--"]
    found["perf sched_switch dwarf"] = lambda out: ["perf", "record", "-q", "-e", "sched:sched_switch", "--call-graph", "dwarf", "-o", out, "--"]
    return found


def measure(command, target, out):
    """One run: nanoseconds of the target for each switch, the recorder's seconds, bytes, what was lost."""
    before = children()
    process = subprocess.Popen([str(word) for word in command + target], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    text, said = process.communicate()
    used = children() - before
    numbers = re.search(r"^(\d+) (\d+)$", text, re.M)
    if process.returncode or not numbers:
        sys.exit(f"{command} failed:\n{text}{said}")
    trips, own = int(numbers[1]), int(numbers[2])
    row = {"switch": own / (2 * trips), "rate": 2 * trips, "own": used - own / 1e9}
    row["bytes"] = out.stat().st_size if out.exists() else None
    recording = re.search(r"recording ([\d.]+) s", said)
    row["recording"] = float(recording[1]) if recording else None
    lost = re.search(r"(\d+) lost", said)
    row["lost"] = int(lost[1]) if lost else None
    return row


def shown():
    """What the kernel says of the programs that it holds, by number."""
    return {one["id"]: one for one in json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, text=True).stdout)}


def programs(command, target, seconds):
    """Nanoseconds that the programs of a recorder take for each switch, in the second half of a run."""
    before = STATS.read_text()
    STATS.write_text("1")
    try:
        process = subprocess.Popen([str(word) for word in command + target], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(seconds / 2)
        own = set()
        for info in Path(f"/proc/{process.pid}/fdinfo").iterdir():
            try:
                number = re.search(r"^prog_id:\s*(\d+)", info.read_text(), re.M)
            except OSError:
                continue
            own |= {int(number[1])} if number else set()
        first = shown()
        time.sleep(seconds / 4)
        second = shown()
        process.communicate()
    finally:
        STATS.write_text(before)
    own &= first.keys() & second.keys()
    took = sum(second[one].get("run_time_ns", 0) - first[one].get("run_time_ns", 0) for one in own)
    switches = max((second[one].get("run_cnt", 0) - first[one].get("run_cnt", 0) for one in own if "switch" in second[one].get("name", "")), default=0)
    return took / switches if switches else None


def children():
    """Processor time of all that was waited for, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def with_stack(args, path, out):
    """Of the time off the processor so much has a stack, in percent."""
    text = subprocess.run([path, "script", out, "-F", "event,period,sym"], capture_output=True, text=True).stdout
    known = everything = 0
    for sample in text.split("\n\n"):
        lines = sample.strip().splitlines()
        weight = re.search(r"(\d+)", lines[0]) if lines else None
        if not weight:
            continue
        everything += int(weight[1])
        known += int(weight[1]) * any("hand" == line.strip() for line in lines[1:])
    return 100 * known / everything if everything else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 20000, 500000])
    parser.add_argument("--plumb", default=ROOT / "target/release/plumb")
    parser.add_argument("--old")
    args = parser.parse_args()
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {args.rounds} rounds of {args.seconds:g} s.\n")
    columns = ["switches a second", "ns a switch", "longer by %", "quartiles", "programs ns", "recorder s", "while recording s", "bytes", "bytes a switch", "lost", "with stack %"]
    print("| busy ns | recorder | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, out = folder / "pipe", folder / "recording"
        subprocess.run(["cc", "-O2", "-fno-optimize-sibling-calls", "-o", program, ROOT / "bench/off_cpu/pipe.c"], check=True)
        for busy in args.busy:
            rows, longer = {}, {}
            target = [program, args.seconds, args.depth, busy]
            for index in range(args.rounds):
                order = list(recorders(args).items())
                plain = None
                for kind, command in order:
                    out.unlink(missing_ok=True)
                    row = measure(command(out), target, out)
                    if kind == "none":
                        plain = row["switch"]
                    elif kind.startswith("plumb") and index == 0:
                        path = args.old if "old" in kind else args.plumb
                        row["stack"] = with_stack(args, path, out)
                        row["programs"] = programs(command(out), target, args.seconds)
                    rows.setdefault(kind, []).append(row)
                    longer.setdefault(kind, []).append(100 * (row["switch"] / plain - 1))
            for kind, rounds in rows.items():
                def median(key):
                    known = [row[key] for row in rounds if row.get(key) is not None]
                    return statistics.median(known) if known else None
                rate = median("rate")
                size = median("bytes")
                low, middle, high = statistics.quantiles(longer[kind], n=4) if args.rounds > 1 else longer[kind] * 3
                is_plain = kind == "none"
                cells = [rate / args.seconds, median("switch"), None if is_plain else middle,
                         None if is_plain else f"{low:.1f} to {high:.1f}", median("programs"), None if is_plain else median("own"), median("recording"),
                         size, size and size / rate, median("lost"), median("stack")]
                text = ["" if cell is None else cell if isinstance(cell, str) else f"{cell:.0f}" if cell >= 1000 else f"{cell:.3g}" for cell in cells]
                print(f"| {busy} | {kind} | " + " | ".join(text) + " |", flush=True)


if __name__ == "__main__":
    main()
