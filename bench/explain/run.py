#!/usr/bin/env python3
"""How long `plumb explain` takes on a recording of clang, and what it says of a pool allocator before and after its environment is read once.

The recording of clang is made at the frequency that gives some 10,000 samples. Each way to write the report is timed as a whole process:
reading the recording, analysing, reading the code of the hot functions and naming its lines. Beside it `plumb report` on the same file.
The reports of the pool (bench/diff/pool.c) are printed as they are.

    bench/explain/run.py [--runs 15] [--samples 10000] [--plumb target/release/plumb] [--clang clang++-19]
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def timed(runs, *command):
    """Wall and processor time of runs of a command, in milliseconds."""
    walls, cpus = [], []
    for _ in range(runs):
        before, began = os.times(), time.monotonic()
        run(*command)
        after = os.times()
        walls.append((time.monotonic() - began) * 1e3)
        cpus.append((after.children_user + after.children_system - before.children_user - before.children_system) * 1e3)
    return walls, cpus


def compiler(args, folder):
    source = ROOT / "bench/cpu/big.cpp"
    command = [args.clang, "-std=c++17", "-O2", "-c", source, "-o", folder / "big.o"]
    recording = folder / "clang.plumb"
    frequency, taken = 999, 0
    for _ in range(4):
        run(args.plumb, "record", "-q", "-F", frequency, "-o", recording, "--", *command)
        taken = json.loads(run(args.plumb, "explain", "--json", recording))["quality"]["samples"]
        if abs(taken - args.samples) <= args.samples / 20:
            break
        frequency = min(20000, round(frequency * args.samples / taken))
    print(f"\n### {Path(args.clang).name} -O2 -c bench/cpu/big.cpp: {taken} samples at {frequency} Hz, {recording.stat().st_size / 1e6:.1f} MB\n")
    print(f"| {args.runs} runs of each | wall: least | median | most | processor time: median |\n|---|---:|---:|---:|---:|")
    for name, options in (("explain", []), ("explain --md", ["--md"]), ("explain --html", ["--html"]), ("explain --json", ["--json"])):
        line(f"plumb {name}", *timed(args.runs, args.plumb, "explain", *options, recording))
    line("plumb report", *timed(args.runs, args.plumb, "report", recording))


def line(name, walls, cpus):
    print(f"| {name} | {min(walls):.0f} ms | {statistics.median(walls):.0f} ms | {max(walls):.0f} ms | {statistics.median(cpus):.0f} ms |", flush=True)


def pool(args, folder):
    source = ROOT / "bench/diff/pool.c"
    for name, options in (("before", []), ("after", ["-DFIXED"])):
        program = folder / f"pool-{name}"
        run("cc", "-O2", "-g", *options, "-o", program, source)
        recording = folder / f"{name}.plumb"
        run(args.plumb, "record", "-q", "-F", "2999", "-o", recording, "--", program, args.operations)
        print(f"\n### The pool, {name} the fix\n\n```\n{run(args.plumb, 'explain', '--ignore', '^(__random|random|random_r|__random_r|rand)$', recording)}```")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--operations", type=int, default=20000000)
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    parser.add_argument("--clang", default="clang++-19")
    args = parser.parse_args()
    args.plumb = args.plumb.resolve()
    print(f"## plumb explain: {platform.machine()}, Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="plumb-explain-") as name:
        folder = Path(name)
        compiler(args, folder)
        pool(args, folder)
        print("\n### What operations cost that rules are about (costs.cpp, least of 15 rounds)\n")
        run("c++", "-std=c++17", "-O2", "-pthread", "-o", folder / "costs", HERE / "costs.cpp")
        print(run(folder / "costs"))


main()
