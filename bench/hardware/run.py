#!/usr/bin/env python3
"""Whether recording slows a program or the machine down, with hardware counters and without: each way to record beside the same program
alone, in turns. Prints a table in Markdown.

  run.py [--repeats 10] [--preload LIBRARY.so] [--label TEXT] [--only PROGRAM]

--preload: a library that plumb is run with, such as one that hides the machine's counters (crates/fixtures/programs/pmu.c). Needs root for -a,
bench/cpu/build.sh first, and plumb built with `cargo build --release`. The goals: the slowest run takes no more than 1.3 times as long as
the median of the program alone, coverage 98 to 102%, no sample of the idle task, kernel.perf_event_max_sample_rate as before.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "bench" / "bin"
PLUMB = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "plumb"
PROGRAMS = {
    "recur": [str(BIN / "recur"), "250"],
    "compiler": ["g++", "-fsyntax-only", str(BIN / "big.ii")],
}
WAYS = {
    "default": [],
    "-e cpu-clock": ["-e", "cpu-clock"],
    "-e cycles": ["-e", "cycles"],
    "-e cycles -c 4000000": ["-e", "cycles", "-c", "4000000"],
}
RATE = Path("/proc/sys/kernel/perf_event_max_sample_rate")
DURATION = 3


def timed(command, env=None):
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env=env)
    return time.monotonic() - began, done


class Row:
    """What the runs of one way showed."""

    def __init__(self):
        self.alone, self.beside, self.coverage, self.idle, self.rates, self.refused = [], [], [], 0, set(), None

    def text(self, name, way):
        if self.refused:
            return f"| {name} | {way} | refused: {self.refused} ||||||"
        alone = statistics.median(self.alone)
        cover = f"{min(self.coverage):.1f}–{max(self.coverage):.1f}" if self.coverage else "–"
        rate = "as before" if self.rates <= {0} else f"changed by {sorted(self.rates)}"
        ratio = [value / alone for value in self.beside]
        return (f"| {name} | {way} | {alone:.2f} | {statistics.median(ratio):.2f} | {max(ratio):.2f} | {cover} "
                f"| {self.idle} | {rate} |")


def idle_samples(file):
    out = subprocess.run([PLUMB, "script", file], capture_output=True, text=True, errors="replace").stdout
    return sum(1 for line in out.splitlines() if line.startswith("swapper"))


def look(row, done, file, before):
    found = re.search(r"coverage (?:about )?([0-9.]+)%", done.stderr)
    row.coverage += [float(found[1])] if found else []
    row.idle += idle_samples(file)
    row.rates.add(int(RATE.read_text()) - before)


def command_run(row, program, way, env, file):
    before = int(RATE.read_text())
    row.alone.append(timed(program)[0])
    seconds, done = timed([PLUMB, "record", "-o", file, *way, "--", *program], env)
    if done.returncode:
        row.refused = done.stderr.splitlines()[0][:70]
        return
    row.beside.append(seconds)
    look(row, done, file, before)


def machine_run(row, program, way, env, file):
    """The program beside a recording of the machine; the recording must not take longer than it was told to either."""
    before = int(RATE.read_text())
    row.alone.append(timed(program)[0])
    recorder = subprocess.Popen([PLUMB, "record", "-a", "--duration", str(DURATION), "-o", file, *way],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env=env)
    began = time.monotonic()
    time.sleep(0.3)
    seconds = timed(program)[0]
    _, said = recorder.communicate()
    took = time.monotonic() - began
    if recorder.returncode:
        row.refused = said.splitlines()[0][:70]
        return
    row.beside.append(max(seconds, row.alone[-1] * (took - 0.5) / DURATION))
    look(row, subprocess.CompletedProcess([], 0, "", said), file, before)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeats", type=int, default=10)
    options.add_argument("--preload")
    options.add_argument("--label", default="")
    options.add_argument("--only", choices=PROGRAMS, help="this program alone")
    args = options.parse_args()
    env = dict(os.environ, **({"LD_PRELOAD": args.preload} if args.preload else {}))
    uname = os.uname()
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"Kernel {uname.release}, {os.cpu_count()} × {model}; {args.repeats} runs of each way, in turns. {args.label}\n")
    print("| program | record | alone, s (median) | × alone, median | × alone, slowest | coverage, % | idle samples "
          "| max_sample_rate |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, program in PROGRAMS.items():
            if args.only not in (None, name):
                continue
            for scope, run in ((name, command_run), (f"{name}, -a beside it", machine_run)):
                rows = {way: Row() for way in WAYS}
                for _ in range(args.repeats):
                    for way, arguments in WAYS.items():
                        if not rows[way].refused:
                            run(rows[way], program, arguments, env, os.path.join(folder, "r.plumb"))
                for way, row in rows.items():
                    print(row.text(scope, way), flush=True)


if __name__ == "__main__":
    sys.exit(main())
