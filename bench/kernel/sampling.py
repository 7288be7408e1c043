#!/usr/bin/env python3
"""What sampling costs a program: plumb kernel beside perf record without stacks, at the same frequency, in many short rounds.

Processor time of the program and its children by its own getrusage. The order within a round is drawn. The least times were disturbed
least; what perf record costs is what a sample costs on this machine whoever takes it.

    bench/kernel/sampling.py [--rounds 30] [--plumb target/release/plumb]
"""
import argparse
import os
import random
import statistics
import tempfile
from pathlib import Path

import run

COMMANDS = [["getppid", "1000000"], ["procdents", "1000", "256"], ["forkexec", "300", "0"], ["brkmem", "100"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--plumb", default=str(run.HERE.parents[1] / "target/release/plumb"))
    args = parser.parse_args()
    args.plumb = str(Path(args.plumb).resolve())
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"Load {load} at the start, {args.rounds} rounds. Times those without a watcher: of medians, of least times.\n")
    with tempfile.TemporaryDirectory(prefix="plumb-sampling-") as folder:
        bench = run.Bench(args, Path(folder))
        watchers = {"bare": [], "perf record": bench.record(), "plumb kernel": bench.plumb()}
        run.head(["program", "without, median", "perf record", "plumb kernel"])
        for command in COMMANDS:
            times = {name: [] for name in watchers}
            for _ in range(args.rounds):
                for name in random.sample(list(watchers), len(watchers)):
                    times[name].append(run.used(bench.run(watchers[name], command)[0]))
            middle, least = ({name: by(all_of) for name, all_of in times.items()} for by in (statistics.median, min))
            cells = [f"{middle[name] / middle['bare']:.3f}, {least[name] / least['bare']:.3f}" for name in ("perf record", "plumb kernel")]
            run.row([" ".join(command), f"{middle['bare'] * 1e3:.0f} ms", *cells])


if __name__ == "__main__":
    main()
