#!/usr/bin/env python3
"""Where processor time goes, by plumb kernel, strace -fc and perf trace -s, on programs that measure themselves.

Three tables, as Markdown on standard output:

1. What watching costs: user and system time of the program and its children, by its own getrusage, as a ratio to the runs without
   a watcher before and after, and the ratio of the least times. Times of the watcher itself are not in it. Ratios of processor time, not of wall time: the machine
   may be busy. Median of the rounds, with the least and the most.
2. How far plumb's sum is from what the kernel accounts, in percent.
3. What each says of known cases, beside what the program measured itself with rdtsc.

Needs root, cc, and for the other columns strace and perf. The programs write what they measured where $TRUTH says.

    bench/kernel/run.py [--rounds 5] [--plumb target/release/plumb] [--quick]
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ["brkmem", "forkexec", "getppid", "mixed", "procdents", "twothreads"]

# Name, command, and the least factor that goals allow: sampling, --calls, --time.
CASES = [
    ("getppid, 1,000,000 calls", ["getppid", "1000000"], (1.05, 1.7, 3.0)),
    ("brkmem", ["brkmem", "150"], (1.03, None, 1.05)),
    ("/proc by 256 bytes", ["procdents", "1000", "256"], (1.03, None, 1.15)),
    ("/proc by 32 KiB", ["procdents", "1000", "32768"], (1.03, None, None)),
    ("fork+exec, 0 MB", ["forkexec", "300", "0"], (1.03, None, 1.05)),
    ("fork+exec, 100 MB", ["forkexec", "100", "100"], (1.03, None, 1.05)),
    ("fork+exec, 500 MB", ["forkexec", "40", "500"], (1.03, None, 1.05)),
    ("twothreads", ["twothreads", "128", "10"], (1.03, None, None)),
    ("mixed, 500 µs of user code", ["mixed", "1000", "500"], (1.03, None, None)),
]
# A shell's loop: the shell does not measure itself.
TRUE = ("1000 × /bin/true", ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done"])
# Others take so long for each call that fewer have to do, beside runs of their own without a watcher.
FEWER = {"getppid": ["getppid", "100000"]}


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        for name in PROGRAMS:
            source = HERE / f"{name}.c"
            subprocess.run(["cc", "-O2", "-pthread", "-w", "-o", folder / name, source], check=True)

    def run(self, watcher, command):
        """What the program measured, and what the watcher wrote."""
        truth, out = self.folder / "truth", self.folder / "out"
        truth.unlink(missing_ok=True)
        program = [str(self.folder / command[0]) if command[0] in PROGRAMS else command[0], *command[1:]]
        with open(out, "wb") as to:
            env = dict(os.environ, TRUTH=str(truth))
            subprocess.run([*watcher, *program], cwd=self.folder, env=env, stdout=to, stderr=subprocess.DEVNULL)
        measured = json.loads(truth.read_text()) if truth.exists() else None
        return measured, out.read_text(errors="replace")

    def plumb(self, *options):
        return [self.args.plumb, "kernel", "--json", *options, "--"]

    def record(self):
        return ["perf", "record", "-q", "-F", "999", "-o", str(self.folder / "perf.data"), "--"]

    def strace(self):
        return ["strace", "-f", "-c", "-o", str(self.folder / "strace.out")]

    def perf(self):
        return ["perf", "trace", "-s", "-o", str(self.folder / "perf.out")]


def used(truth):
    """User and system time of the program and its children, in seconds."""
    return truth["user"] + truth["sys"] + truth["cuser"] + truth["csys"]


def ratio(values, digits=2):
    if not values:
        return ""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def head(titles):
    row(titles)
    row(["---"] * len(titles))


def rows_of(report):
    """Processor seconds by row, and calls."""
    return {one["name"]: (one["cpu_ns"] / 1e9, one["calls"]) for one in report["rows"]}


def slowdown(bench):
    print("\n## 1. What watching costs the program\n")
    print("Processor time of the program and its children, times that without a watcher: the median of the rounds, and the ratio of"
          " the\nleast times, which were disturbed least. In brackets the goal. perf record -F 999 without stacks is what a sample"
          " costs on this\nmachine whoever takes it.\n")
    head(["program", "sampling", "--calls", "--latency", "perf record", "strace -fc", "perf trace -s"])
    for name, command, goals in CASES:
        mine = [(bench.plumb(), goals[0]), (bench.plumb("--calls"), goals[1]), (bench.plumb("--latency"), goals[2])]
        sampler = [] if bench.args.quick else [(bench.record(), None)]
        others = [] if bench.args.quick else [(bench.strace(), None), (bench.perf(), None)]
        cells = [name]
        cells += slower(bench, mine + sampler, command, bench.args.rounds)
        cells += slower(bench, others, FEWER.get(command[0], command), bench.args.others)
        row(cells)


def slower(bench, watchers, command, rounds):
    """A cell for each watcher."""
    ratios, times, bare = [[] for _ in watchers], [[] for _ in watchers], []
    for _ in range(rounds):
        for one, (watcher, _) in enumerate(watchers):
            # Before and after, as the machine changes its pace.
            before, watched, after = (bench.run(with_it, command)[0] for with_it in ([], watcher, []))
            if watched:
                bare += [used(before), used(after)]
                times[one].append(used(watched))
                ratios[one].append(used(watched) / (sum(bare[-2:]) / 2))
    goals = [f" [{goal}]" if goal else "" for _, goal in watchers]
    return [f"{ratio(ratios[one])}, least {min(times[one]) / min(bare):.2f}{goals[one]}" for one in range(len(watchers))]


def closure(bench):
    print("\n## 2. The sum beside what the kernel accounts\n")
    print("In percent of what the kernel accounts; the goal is no more than 5 either way.\n")
    head(["program", "plumb kernel, off by %", "samples"])
    for name, command in [(name, command) for name, command, _ in CASES] + [TRUE]:
        off, samples = [], []
        for _ in range(bench.args.rounds):
            report = json.loads(bench.run(bench.plumb(), command)[1])
            off.append(report["off_percent"])
            samples.append(report["samples"])
        row([name, ratio(off, 1), f"{statistics.median(samples):.0f}"])


def strace_table(text):
    """Seconds by call as strace -c says them."""
    lines = (line.split() for line in text.splitlines())
    return {words[-1]: float(words[1]) for words in lines if len(words) >= 5 and re.fullmatch(r"[\d.]+", words[0])}


def accuracy(bench):
    print("\n## 3. What each says of what is known\n")
    head(["what", "by the program itself", "plumb kernel", "goal", "strace -fc"])
    cases = [brkmem, twothreads, *[mixed(us) for us in (100, 500, 1500)], wait4, getppid]
    for case in cases:
        found = [case(bench) for _ in range(bench.args.rounds)]
        what, goal, digits, unit = found[0][0]
        columns = list(zip(*[values for _, values in found]))
        shown = [f"{ratio([v for v in column if v is not None], digits)}{unit}" if any(v is not None for v in column) else ""
                 for column in columns]
        row([what, shown[0], shown[1], goal, shown[2]])


def with_strace(bench, command, value):
    if bench.args.quick:
        return None
    bench.run(bench.strace(), command)
    return value(strace_table((bench.folder / "strace.out").read_text()))


def brkmem(bench):
    command = ["brkmem", "100"]
    truth, text = bench.run(bench.plumb(), command)
    report = json.loads(text)
    rows, phases = rows_of(report), truth["phases"]
    faults = phases["touch_pages(faults)"]["s"] + phases["touch_kept(faults)"]["s"]
    known = faults / sum(phase["s"] for phase in phases.values())
    seen = rows["page-fault"][0] / (report["kernel_ns"] / 1e9)
    assert "exit" in rows, "an exit line"
    # The program can only tell how long touching pages took, its own part of that with it.
    return ("brkmem: page faults, of kernel time (by itself: touching pages, of all)", "80 to 86%, and an exit line", 1, "%"), (known * 100, seen * 100, 0.0)


def twothreads(bench):
    command = ["twothreads", "128", "10"]
    report = json.loads(bench.run(bench.plumb(), command)[1])
    rows = rows_of(report)
    sleep = sum(rows.get(name, (0, None))[0] for name in ("clock_nanosleep", "nanosleep"))
    share = sleep / (report["kernel_ns"] / 1e9) * 100

    def of_strace(table):
        asleep = sum(table.get(name, 0) for name in ("clock_nanosleep", "nanosleep"))
        return asleep / max(sum(table.values()) - table.get("total", 0), 1e-9) * 100
    return ("twothreads: sleeping, of kernel time", "at most 2%", 1, "%"), (None, share, with_strace(bench, command, of_strace))


def mixed(us):
    def case(bench):
        command = ["mixed", "1000", str(us)]
        truth, text = bench.run(bench.plumb(), command)
        # Others on the machine lengthen both of its parts by its own clock: so by the share of pread.
        known = truth["phases"]["pread64"]["s"] / truth["wall"]
        own = used(truth)
        seen = rows_of(json.loads(text))["pread64"][0] / own

        def of_strace(table):
            truth = json.loads((bench.folder / "truth").read_text())
            return table.get("pread64", 0) / used(truth) / (truth["phases"]["pread64"]["s"] / truth["wall"])
        strace = with_strace(bench, command, of_strace)
        return ((f"mixed, {us} µs of user code: pread, times its own measure", "0.9 to 1.1", 2, ""), (1.0, seen / known, strace))
    return case


def wait4(bench):
    command = ["forkexec", "300", "0"]
    truth, text = bench.run(bench.plumb(), command)
    wall = truth["phases"]["wait4"]["s"]
    seen = rows_of(json.loads(text)).get("wait4", (0, None))[0]

    def of_strace(table):
        truth = json.loads((bench.folder / "truth").read_text())
        return table.get("wait4", 0) / truth["phases"]["wait4"]["s"] * 100
    strace = with_strace(bench, command, of_strace)
    return ("fork+exec: wait4 on the processor, of its wall time", "at most 5%", 1, "%"), (None, seen / wall * 100, strace)


def getppid(bench):
    calls = 1_000_000
    bare, _ = bench.run([], ["getppid", str(calls)])
    report = json.loads(bench.run(bench.plumb(), ["getppid", str(calls)])[1])
    rows = rows_of(report)
    # All that the program does is this call: its own time is the call's, with the C library's part of it.
    known = used(bare) / calls * 1e9
    seen = (rows["getppid"][0] + rows["user"][0]) / calls * 1e9

    def of_strace(table):
        return table.get("getppid", 0) / 100_000 * 1e9
    strace = with_strace(bench, FEWER["getppid"], of_strace)
    return ("getppid: one call with what calls it, in ns", "within 1.3 times", 0, ""), (known, seen, strace)


def timed(bench):
    print("\n## What --time says of getppid\n")
    print("Nanoseconds of one call, without what measuring costs, beside processor time of the bare loop for each call.\n")
    head(["bare", "--time, mean", "times"])
    for _ in range(min(bench.args.rounds, 3)):
        bare, _ = bench.run([], ["getppid", "1000000"])
        report = json.loads(bench.run(bench.plumb("--latency"), ["getppid", "1000000"])[1])
        call = next(call for call in report["calls"] if call["name"] == "getppid")
        known, mean = used(bare) * 1e3, call["on_cpu_ns"] / call["timed_calls"]
        row([f"{known:.0f}", f"{mean:.0f}", f"{mean / known:.2f}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--others", type=int, default=2, help="rounds of strace and perf, which take long")
    parser.add_argument("--plumb", default=str(HERE.parents[1] / "target/release/plumb"))
    parser.add_argument("--quick", action="store_true", help="without strace and perf")
    args = parser.parse_args()
    args.plumb = str(Path(args.plumb).resolve())
    missing = [tool for tool in ("strace", "perf") if not args.quick and not shutil.which(tool)]
    if missing:
        sys.exit(f"{' and '.join(missing)}: not here (or --quick)")
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {load} at the start, {args.rounds} rounds"
          f"{'' if args.quick else f', {args.others} of the others'}.")
    with tempfile.TemporaryDirectory(prefix="plumb-kernel-") as folder:
        bench = Bench(args, Path(folder))
        slowdown(bench)
        closure(bench)
        accuracy(bench)
        timed(bench)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\nLoad {load} at the end.")


if __name__ == "__main__":
    main()
