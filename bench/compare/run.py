#!/usr/bin/env python3
"""How often `plumb compare` is wrong: A against A, and A against 10% less of the same work.

A verdict of faster or slower for A against A is a false alarm; one for 10% less work that isn't faster is a miss. The naive way is beside
it: one run of each, "differs by more than 5%". The machine is as noisy as it is: the load is printed.

    bench/compare/run.py [--trials 200] [--runs 10] [--steps 6000] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def trial(plumb, runs, one, other):
    done = subprocess.run([str(plumb), "compare", "-n", str(runs), "--warmup", "0", "--json", one, other], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def naive(result, name):
    """Whether the first runs of each differ by more than 5%."""
    figure = next(figure for figure in result["figures"] if figure["name"] == name)
    a, b = figure["values"][0][0], figure["values"][1][0]
    return abs(b / a - 1) > 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="plumb-compare-"))
    program = folder / "spin"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).with_name("spin.c")], check=True)
    same, less = f"{program} {args.steps}", f"{program} {args.steps * 9 // 10}"
    counts = {"aa": {}, "less": {}}
    alarms = {"wall_ns": 0, "cpu_ns": 0}
    found = {"wall_ns": 0, "cpu_ns": 0}
    one_run = {"wall_ns": 0, "cpu_ns": 0}
    for number in range(args.trials):
        print(f"\rtrial {number + 1} of {args.trials}", end="", file=sys.stderr)
        for kind, other, into in (("aa", same, alarms), ("less", less, found)):
            result = trial(args.plumb.resolve(), args.runs, same, other)
            counts[kind][result["verdict"]] = counts[kind].get(result["verdict"], 0) + 1
            for figure in result["figures"]:
                if figure["name"] in into and figure["comparison"]:
                    told = figure["comparison"]["verdict"]
                    into[figure["name"]] += told == "less" or (kind == "aa" and told == "more")
                    if kind == "aa":
                        one_run[figure["name"]] += naive(result, figure["name"])
    print(file=sys.stderr)
    print(f"## plumb compare: {platform.machine()}, Linux {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print(f"{args.trials} trials of {args.runs} runs of each, `spin {args.steps}`.\n")
    print("| | verdicts | by wall | by user+sys | one run each, differs by 5%: wall | user+sys |\n|---|---|---:|---:|---:|---:|")
    share = lambda count: f"{count / args.trials:.1%}"
    words = lambda kind: ", ".join(f"{word} {count}" for word, count in sorted(counts[kind].items()))
    print(f"| A against A: false alarms | {words('aa')} | {share(alarms['wall_ns'])} | {share(alarms['cpu_ns'])} | "
          f"{share(one_run['wall_ns'])} | {share(one_run['cpu_ns'])} |")
    print(f"| 10% less work: found | {words('less')} | {share(found['wall_ns'])} | {share(found['cpu_ns'])} | | |")


main()
