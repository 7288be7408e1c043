#!/usr/bin/env python3
"""What tracing system calls loses, costs and measures: plumb trace beside perf trace and strace.

The first table is of a program that makes 300,000 getppid a second, and of one that makes as many as it can: how many calls it made,
how many of them were shown, how many the tracer says it lost, and whether that adds up; then what the calls cost the program
(user and system time, over that of a run without a tracer) and what the tracer itself used.

The second is of a daemon that reads /proc each second in buffers of 256 bytes: how long its calls of getdents64 took by its own
time stamp counter in runs without a tracer, which take turns with the others, by the same counter while it is traced, and by
what the tracer shows. Medians of all calls.

    bench/trace/run.py [--plumb target/release/plumb] [--rounds 3] [--seconds 4] [--times 5] [--pause 1000]
"""
import argparse
import os
import platform
import re
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def build(folder):
    for name in ["paced", "daemon"]:
        subprocess.run(["cc", "-O2", "-o", folder / name, HERE / f"{name}.c"], check=True)


def used():
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times.ru_utime + times.ru_stime


def run(folder, words):
    """Runs; what the program said, what the tracer wrote, what both used in seconds."""
    out, said = folder / "out.txt", folder / "said.txt"
    before = used()
    with open(out, "wb") as lines, open(said, "wb") as errors:
        subprocess.run([str(word) for word in words], stdout=lines, stderr=errors, check=False, timeout=600)
    return said.read_text(errors="replace"), out, used() - before


def plumb(args, folder, program):
    return [args.plumb, "trace", "-e", program[-1], "--", *program[:-1]]


def perf(args, folder, program):
    return ["perf", "trace", "-e", program[-1], "-o", folder / "trace.txt", "--", *program[:-1]]


def strace(args, folder, program):
    return ["strace", "-T", "-e", program[-1], "-o", folder / "trace.txt", "--", *program[:-1]]


def bare(args, folder, program):
    return program[:-1]


TRACERS = {"none": bare, "plumb trace": plumb, "perf trace": perf, "strace": strace}


def shown(tracer, folder, out, call):
    """Lines of calls, and what is said to be lost."""
    lost, calls = 0, 0
    path = out if tracer == "plumb trace" else folder / "trace.txt"
    with open(path, errors="replace") as lines:
        for line in lines:
            if call + "(" in line and "continued" not in line:
                calls += 1
            elif found := re.match(r"\.\.\. (\d+) calls dropped|LOST (\d+) events", line):
                lost += int(found[1] or found[2])
    return calls, lost


def losses(args, folder):
    print("| calls | tracer | made | shown | said to be lost | adds up | program's CPU, ns a call | over none | tracer's CPU, ns a call |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rate in [300_000, 0]:
        alone = None
        for tracer, words in TRACERS.items():
            # What is slow enough is shown with less to do.
            seconds = args.seconds if tracer in ["none", "plumb trace"] else 1
            rows = []
            for _ in range(args.rounds):
                program = [folder / "paced", rate, seconds, "getppid"]
                (folder / "trace.txt").unlink(missing_ok=True)
                said, out, all_used = run(folder, words(args, folder, program))
                found = re.search(r"^(\d+) ([\d.]+)$", said, re.M)
                made, own = int(found[1]), float(found[2])
                calls, lost = shown(tracer, folder, out, "getppid") if tracer != "none" else (0, 0)
                if tracer == "perf trace":
                    lost += sum(int(number) for number in re.findall(r"LOST (\d+) events", said))
                # perf leaves its command to be waited for by others.
                tracers = all_used - own if all_used > own else all_used
                rows.append((made, calls, lost, own / made * 1e9, tracers / made * 1e9))
            made, calls, lost, own, other = rows[-1]
            own = statistics.median(row[3] for row in rows)
            other = statistics.median(row[4] for row in rows)
            alone = alone or own
            adds = "" if tracer == "none" else "yes" if all(row[1] + row[2] == row[0] for row in rows) else "NO"
            name = f"{rate:,} a second" if rate else "as many as it can"
            print(f"| {name} | {tracer} | {made:,} | {calls:,} | {lost:,} | {adds} | {own:,.0f} | {own / alone:.2f} | "
                  f"{other if tracer != 'none' else 0:,.0f} |", flush=True)


def own_times(said):
    return [float(line) for line in said.splitlines() if re.fullmatch(r"\d+", line)]


def traced_times(tracer, folder, out):
    """Latencies that a tracer shows, in nanoseconds."""
    path = out if tracer == "plumb trace" else folder / "trace.txt"
    text = path.read_text(errors="replace")
    if tracer == "strace":
        return [float(found) * 1e9 for found in re.findall(r"getdents64\(.*<([\d.]+)>$", text, re.M)]
    return [float(found) * 1e6 for found in re.findall(r"\(\s*([\d.]+) ms\):.*getdents64\(", text)]


def latencies(args, folder):
    program = [folder / "daemon", args.times, args.pause, 256, "getdents64"]
    own, seen = {name: [] for name in TRACERS}, {name: [] for name in TRACERS}
    for _ in range(args.rounds):
        for tracer, words in TRACERS.items():
            (folder / "trace.txt").unlink(missing_ok=True)
            said, out, _ = run(folder, words(args, folder, program))
            own[tracer] += own_times(said)
            if tracer != "none":
                seen[tracer] += traced_times(tracer, folder, out)
    truth = statistics.median(own["none"])
    print(f"\n{len(own['none'])} calls of getdents64 without a tracer, median {truth:,.0f} ns by the time stamp counter.\n")
    print("| tracer | calls | shown | median by its own clock while traced, ns | median that is shown, ns | off the truth |")
    print("|---|---|---|---|---|---|")
    for tracer in list(TRACERS)[1:]:
        said = statistics.median(seen[tracer]) if seen[tracer] else float("nan")
        print(f"| {tracer} | {len(own[tracer]):,} | {len(seen[tracer]):,} | {statistics.median(own[tracer]):,.0f} | {said:,.0f} | "
              f"{(said - truth) / truth:+.1%} |")


def picture(args, folder):
    words = [args.plumb, "trace", "--spikes", "-e", "getdents64", "--", folder / "daemon", args.times, args.pause, 256]
    said, out, _ = run(folder, words)
    print("\n`plumb trace --spikes -e getdents64` of the same daemon:\n\n```")
    print(out.read_text().rstrip())
    print("```")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plumb", default=ROOT / "target/release/plumb", type=Path)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--seconds", default=4, type=int)
    parser.add_argument("--times", default=5, type=int)
    parser.add_argument("--pause", default=1000, type=int)
    args = parser.parse_args()
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {args.rounds} rounds.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder)
        losses(args, folder)
        latencies(args, folder)
        picture(args, folder)


if __name__ == "__main__":
    main()
