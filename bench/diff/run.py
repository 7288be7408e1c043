#!/usr/bin/env python3
"""How often `plumb diff` is wrong: recordings of the same program against each other, and of one whose function f1 takes 10% more.

f1 has a fifth of the time of shares.c. A trial in which any function is marked though nothing changed is a false alarm. Found is a trial
in which f1 is marked as costing more. Recordings are made one after the other, base and new taking turns, and no recording is in two
trials of a line. The naive way is beside it: any function of at least 1% whose share differs by a twentieth of itself. What the scatter of
shares between recordings is beside that of drawing samples by chance is printed too: it is what a single recording can't know.

    bench/diff/run.py [--trials 100] [--samples 7000] [--frequency 4999] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
# Steps of f1: as it is; 10% more of its time; 10% more of its share (0.22 of 1, beside 0.8 of the others).
STEPS = {"same": 2000, "time": 2200, "share": 2256}
SIDE = 3


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.count = args, folder, 0
        self.program = folder / "shares"
        subprocess.run(["cc", "-O2", "-g1", "-o", self.program, HERE / "shares.c"], check=True)
        self.rounds = 20000
        for _ in range(3):
            taken = self.samples(self.record(STEPS["same"]))
            self.rounds = int(self.rounds * args.samples / taken * 1.03)

    def record(self, steps=None, command=None):
        self.count += 1
        path = self.folder / f"{self.count}.plumb"
        command = command or [self.program, str(self.rounds), str(steps)]
        done = subprocess.run([self.args.plumb, "record", "-q", "-F", str(self.args.frequency), "-o", path, "--", *command],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return path

    def samples(self, path):
        return self.diff([path], [path])["base"][0]["samples"]

    def diff(self, base, new, *options):
        done = subprocess.run([self.args.plumb, "diff", "--json", *options, *base, "--", *new], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return json.loads(done.stdout)


def marked(result):
    return [row for row in result["rows"] if row["mark"] != "noise"]


def found(result):
    return any(row["function"] == "f1" and row["mark"] == "more" for row in marked(result))


def naive(result):
    return any(max(row["share"]) >= 0.01 and abs(row["share"][1] - row["share"][0]) > 0.05 * row["share"][0] for row in result["rows"])


def dispersion(results):
    """Variance of a function's share between recordings as a multiple of that of drawing samples, by function; of at least 1%."""
    shares, counts = {}, []
    for result in results:
        for side in (0, 1):
            counts.append(sum(one["samples"] for one in result[("base", "new")[side]]))
            for row in result["rows"]:
                shares.setdefault((row["function"], row["dso"]), []).append(row["share"][side])
    factors = []
    for name, values in shares.items():
        mean = sum(values) / len(counts)
        if mean >= 0.01 and len(values) == len(counts):
            factors.append((statistics.variance(values) / (mean * (1 - mean) / statistics.mean(counts)), mean, name[0]))
    return sorted(factors)


def names(results):
    """What was marked, and how often."""
    counts = {}
    for result in results:
        for row in marked(result):
            counts[row["function"]] = counts.get(row["function"], 0) + 1
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])[:8])


def line(name, hits, trials):
    print(f"| {name} | {hits} of {trials} | {hits / trials:.1%} |" if trials else f"| {name} | | |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--samples", type=int, default=7000)
    parser.add_argument("--frequency", type=int, default=4999)
    parser.add_argument("--compile", type=int, default=20, help="trials with a compiler as the program")
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    args = parser.parse_args()
    args.plumb = args.plumb.resolve()
    with tempfile.TemporaryDirectory(prefix="plumb-diff-") as folder:
        run(args, Bench(args, Path(folder)))


def run(args, bench):
    recordings = {kind: [] for kind in STEPS}
    for trial in range(args.trials):
        print(f"\rtrial {trial + 1} of {args.trials}", end="", file=sys.stderr)
        # Base, changed, changed, base: all kinds see the same machine.
        kinds = ["same", "time", "share", "same"]
        for kind in kinds if trial % 2 == 0 else reversed(kinds):
            recordings[kind].append(bench.record(STEPS[kind]))
    print(file=sys.stderr)
    same = recordings["same"]
    # Each trial's recordings were made within a minute of each other; those of one trial next to each other.
    pairs = [(same[2 * at], same[2 * at + 1]) for at in range(len(same) // 2)]
    aa = [bench.diff([one], [other]) for one, other in pairs]
    print(f"## plumb diff: {platform.machine()}, Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    taken = [side["samples"] for result in aa for name in ("base", "new") for side in result[name]]
    print(f"`shares {bench.rounds}`, {args.frequency} samples a second, {statistics.median(taken):.0f} samples a recording.\n")
    print("| one recording a side | trials | |\n|---|---:|---:|")
    line("the same: any function marked (false alarm)", sum(bool(marked(result)) for result in aa), len(aa))
    line("the same: a share differs by a twentieth (the naive way)", sum(naive(result) for result in aa), len(aa))
    alarms = names(aa)
    for kind, what in (("time", "f1 takes 10% more time: found"), ("share", "f1 has 22% instead of 20%: found")):
        results = [bench.diff([one], [other]) for (one, _), other in zip(pairs, recordings[kind])]
        line(what, sum(map(found, results)), len(results))
        others = sum(any(row["function"] != "f1" for row in marked(result)) for result in results)
        line(what.split(":")[0] + ": others marked", others, len(results))
    print(f"\nFalse alarms: {alarms or 'none'}.")
    print(f"\n| {SIDE} recordings a side, taking turns | trials | |\n|---|---:|---:|")
    groups = [same[at:at + 2 * SIDE] for at in range(0, len(same) - 2 * SIDE + 1, 2 * SIDE)]
    turns = lambda group: ([group[at] for at in range(2 * SIDE) if at % 4 in (0, 3)], [group[at] for at in range(2 * SIDE) if at % 4 in (1, 2)])
    results = [bench.diff(*turns(group)) for group in groups]
    line("the same: any function marked (false alarm)", sum(bool(marked(result)) for result in results), len(results))
    for kind, what in (("time", "f1 takes 10% more time: found"), ("share", "f1 has 22% instead of 20%: found")):
        changed = recordings[kind]
        results = [bench.diff([pairs[number][0] for number in range(at, at + SIDE)], changed[at:at + SIDE])
                   for at in range(0, len(changed) - SIDE + 1, SIDE)]
        line(what, sum(map(found, results)), len(results))
    spread("shares", dispersion(aa))
    if args.compile:
        compiler(args, bench)


def spread(name, factors):
    print(f"\nVariance of shares between recordings of {name}, as a multiple of chance: median "
          f"{statistics.median(factor for factor, *_ in factors):.2f}, of functions of at least 1%: "
          + ", ".join(f"{function} ({mean:.1%}) {factor:.2f}" for factor, mean, function in factors))


def compiler(args, bench):
    source = ROOT / "bench/demo/slow.cpp"
    command = ["g++", "-std=c++17", "-O2", "-c", source, "-o", bench.folder / "slow.o"]
    results = []
    for trial in range(args.compile):
        print(f"\rcompile {trial + 1} of {args.compile}", end="", file=sys.stderr)
        results.append(bench.diff([bench.record(command=command)], [bench.record(command=command)]))
    print(file=sys.stderr)
    samples = statistics.median(side["samples"] for result in results for side in result["base"])
    print(f"\n`{' '.join(map(str, command[:4]))} bench/demo/slow.cpp`, {samples:.0f} samples a recording.\n")
    print("| one recording a side | trials | |\n|---|---:|---:|")
    line("the same: any function marked (false alarm)", sum(bool(marked(result)) for result in results), len(results))
    line("the same: a share differs by a twentieth (the naive way)", sum(naive(result) for result in results), len(results))
    print(f"\nFalse alarms: {names(results) or 'none'}.")
    spread("the compiler", dispersion(results))


main()
