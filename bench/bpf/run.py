#!/usr/bin/env python3
"""What a recording of the whole machine costs it, with every processor busy compiling C++: by kind of capture and frequency.

Two tables. The first is of clang-19 -O2 on bench/cpu/big.cpp, one for each processor, and says what the recorder used itself
(user and system time of its process, with loading, tables, names and writing; again without names; and `later`, from --warm
seconds after its start on and before its end) and how long its programs ran in the kernel, by the kernel's own count (kernel.bpf_stats_enabled, which is put back). The kernel does not count
so for perf's copies of stacks. So the second table is of a program that does the same piece of work again and again (meter.c)
under a stack of a given depth on each processor, and says by how much its pieces took longer than without a recorder: all that
the interrupts cost it, whoever causes it. Medians of many pieces, with and without taking turns. Run as root.

`copies` is plumb's own capture by copies of stacks, unwound while recording, as other eBPF profilers do where they can't walk.

    bench/bpf/run.py [--seconds 30] [--warm 8] [--rounds 3] [--turns 8] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
CPUS = os.cpu_count()


def plumb(kind):
    return lambda args, hertz, out, seconds: [args.plumb, "record", "-a", "--capture", kind, "-F", hertz, "--duration",
                                              seconds, "-o", out]


def perf(args, hertz, out, seconds):
    return ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", hertz, "--call-graph", "dwarf", "-o", out, "--",
            "sleep", seconds]


RECORDERS = {"plumb bpf": plumb("bpf"), "plumb copies": plumb("perf"), "perf dwarf": perf}


def busy(folder):
    """Compilers, one for each processor, until they are stopped."""
    source = folder / "big.ii"
    subprocess.run(["clang++-19", "-std=c++17", "-E", ROOT / "bench/cpu/big.cpp", "-o", source], check=True)
    loop = 'while :; do clang++-19 -O2 -std=c++17 -w -x c++-cpp-output -c "$0" -o "$1"; done'
    return [subprocess.Popen(["sh", "-c", loop, source, folder / f"{cpu}.o"], start_new_session=True, stderr=subprocess.DEVNULL)
            for cpu in range(CPUS)]


def stop(processes):
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def programs(pid):
    """Nanoseconds and runs of the programs that a process holds, by name."""
    found = {}
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            number = re.search(r"^prog_id:\s*(\d+)", info.read_text(), re.M)
        except OSError:
            continue
        if number:
            shown = subprocess.run(["bpftool", "-j", "prog", "show", "id", number[1]], capture_output=True, text=True).stdout
            shown = json.loads(shown or "{}")
            found[shown.get("name", "?")] = (shown.get("run_time_ns", 0), shown.get("run_cnt", 0))
    return found


def used(pid):
    """Seconds that all threads of a process have run."""
    return sum(int(stat.read_text().split()[0]) for stat in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def record(args, name, hertz, folder):
    """Runs a recorder for a while: what it and its programs used, in seconds and for each sample."""
    out = folder / "recording"
    command = [str(word) for word in RECORDERS[name](args, hertz, out, args.seconds)]
    log = (folder / "log").open("w+")
    process = subprocess.Popen(command, stderr=log)
    # The same once it has met what runs, and before it ends.
    time.sleep(args.warm)
    began, before = time.monotonic(), used(process.pid)
    time.sleep(args.seconds - args.warm - 1)
    later = (used(process.pid) - before) / (time.monotonic() - began)
    ran = programs(process.pid) if name == "plumb bpf" else {}
    _, status, usage = os.wait4(process.pid, 0)
    log.seek(0)
    text = log.read()
    if status:
        sys.exit(f"{command} failed:\n{text}")
    row = {"own": usage.ru_utime + usage.ru_stime, "later": later, "bytes": out.stat().st_size, "kernel": sum(ns for ns, _ in ran.values()) / 1e9}
    if ran.get("sample", (0, 0))[1]:
        row["us"] = ran["sample"][0] / ran["sample"][1] / 1e3
    said = re.search(r"recording ([\d.]+) s", text)
    row["recording"] = float(said[1]) if said else row["own"]
    said = re.search(r"(\d+) samples in .*coverage ([\d.]+)%.*?(\d+) lost", text)
    row |= {"samples": int(said[1]), "coverage": float(said[2]), "lost": int(said[3])} if said else {}
    said = re.search(r"([\d.]+)% of stacks complete", text)
    row |= {"complete": float(said[1])} if said else {}
    said = re.search(r"([\d.]+)% of samples walked", text)
    row |= {"walked": float(said[1])} if said else {}
    return row


def compiling(args, folder):
    rows = {}
    compilers = busy(folder)
    try:
        time.sleep(1)
        for index in range(args.rounds):
            for hertz in args.hertz:
                for name in RECORDERS if index % 2 == 0 else reversed(RECORDERS):
                    rows.setdefault((hertz, name), []).append(record(args, name, hertz, folder))
    finally:
        stop(compilers)
    columns = ["programs %", "recorder %", "without names %", "all %", "recorder later %", "all later %", "us a sample", "samples", "coverage %", "lost", "complete %",
               "walked %", "MB"]
    print("| Hz | recorder | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns))
    whole = args.seconds * CPUS / 100
    for (hertz, name), rounds in rows.items():
        def median(of):
            known = [of(row) for row in rounds if of(row) is not None]
            return statistics.median(known) if known else None
        cells = [median(lambda row: row["kernel"] / whole) if name == "plumb bpf" else None,
                 median(lambda row: row["own"] / whole),
                 median(lambda row: row["recording"] / whole) if name != "perf dwarf" else None,
                 median(lambda row: (row["own"] + row["kernel"]) / whole) if name == "plumb bpf" else None,
                 median(lambda row: 100 * row["later"] / CPUS),
                 median(lambda row: 100 * row["later"] / CPUS + row["kernel"] / whole) if name == "plumb bpf" else None,
                 *(median(lambda row: row.get(key)) for key in ("us", "samples", "coverage", "lost", "complete", "walked")),
                 median(lambda row: row["bytes"] / 1e6)]
        print(f"| {hertz} | {name} | " + " | ".join("" if cell is None else f"{cell:.4g}" for cell in cells) + " |", flush=True)


def pieces(folder, depth, seconds):
    """Runs the meter on each processor: nanoseconds of all pieces but the first ones."""
    meters = [subprocess.Popen(["taskset", "-c", str(cpu), folder / "meter", str(seconds), str(depth)], stdout=subprocess.PIPE, text=True)
              for cpu in range(CPUS)]
    return [int(line) for meter in meters for line in meter.communicate()[0].split()[20:]]


def metering(args, folder):
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", folder / "meter",
                    ROOT / "bench/bpf/meter.c"], check=True)
    print("| frames | Hz | recorder | longer by % | us a sample | turns |\n|---|---|---|---|---|---|")
    for depth in args.depths:
        for name in RECORDERS:
            longer = []
            for _ in range(args.turns):
                bare = statistics.median(pieces(folder, depth, 2))
                command = RECORDERS[name](args, args.hertz[0], folder / "recording", 5)
                recorder = subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL)
                time.sleep(1.5)
                with_it = statistics.median(pieces(folder, depth, 2))
                recorder.wait()
                bare = (bare + statistics.median(pieces(folder, depth, 2))) / 2
                longer.append(100 * (with_it / bare - 1))
            middle = statistics.median(longer)
            spread = statistics.quantiles(longer, n=4) if len(longer) > 1 else [middle] * 3
            print(f"| {depth} | {args.hertz[0]} | {name} | {middle:.2f} ({spread[0]:.2f} to {spread[2]:.2f}) | "
                  f"{middle / 100 / args.hertz[0] * 1e6:.1f} | {args.turns} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--warm", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--hertz", type=int, nargs="+", default=[999, 99])
    parser.add_argument("--depths", type=int, nargs="+", default=[60])
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    args = parser.parse_args()
    args.plumb = args.plumb.resolve()
    print(f"Kernel {platform.release()}, {CPUS} processors, load {os.getloadavg()[0]:.1f}, {args.rounds} rounds of {args.seconds} s.\n",
          flush=True)
    before = STATS.read_text()
    with tempfile.TemporaryDirectory(prefix="plumb-bench-bpf-") as folder:
        try:
            STATS.write_text("1")
            if args.rounds:
                compiling(args, Path(folder))
        finally:
            STATS.write_text(before)
        print()
        if args.turns:
            metering(args, Path(folder))


main()
