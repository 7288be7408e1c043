#!/usr/bin/env python3
"""How the repository changed: what was large, what was tangled, what it costs to build, test and run; before and now, as Markdown.

"Before" is the last commit before the day on which crates were taken apart (2026-11-23); its tree is measured by the same
`xtask measure` as this one. "Now" is the tree as it is, with what is not committed.

  circle     files of a crate of which each needs, in the end, all others
  siblings   places where a file of one command of plumb names another command
  names      public types of libraries whose name stands in more than two crates
  skippable  tests in files that say how a test skips where the machine lacks something; by words, so a bound from above

Binaries are given: --plumb OLD --plumb NEW, both release builds. Then their sizes are compared, and the recorder's processor time at 999 Hz on
the six programs of bench/cpu (build them first): that of `plumb record` with all it waited for, less what the target used
by its own account. Medians over the repeats; the two take turns.

Times of this tree, on a quiet machine: --build, a release build from an empty folder; --make-demo and --make-test, these goals, with what
they find built. All take minutes. --binary prints the size of one build of this tree; --frames the instructions a frame, from the output of
bench/unwind/run.py --json. How many files a change touches is tried and written down by hand.

    bench/house/run.py [--before COMMIT] [--plumb OLD --plumb NEW] [--repeats 3] [--only recur,deep] [--binary PLUMB]
                       [--frames JSON] [--build] [--make-demo] [--make-test]
"""
import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "cpu"))
from workloads import BIN, HZ, WORKLOADS  # noqa: E402

DAY = "2026-11-23 00:00 +0000"
ROWS = [
    ("circle", "files in the largest circle"),
    ("struct", "fields of the largest struct"),
    ("function", "lines of the longest function"),
    ("file", "lines of the longest file, without tests"),
    ("siblings", "imports between commands"),
    ("names", "public type names in more than two crates"),
    ("lines", "lines of `src`"),
    ("without_tests", "lines of `src` without tests"),
    ("cli_without_tests", "lines of the command without tests"),
    ("prose", "comments and texts of rules that open badly, by `xtask tidy`"),
    ("tests", "tests"),
    ("skippable", "of these in files that can skip some"),
]
# Runs a command, and writes what it and this program used.
LAUNCHER = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, check=True)
used = sum(getattr(resource.getrusage(who), part) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
           for part in ("ru_utime", "ru_stime"))
json.dump(used, open(sys.argv[1], "w"))
"""


def text(command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout.rstrip("\n")


def measures(root):
    """What `xtask measure` says of a tree: for each name the number, and which one it is."""
    lines = text(["cargo", "run", "-q", "-p", "xtask", "--", "measure", str(root)], cwd=ROOT).splitlines()
    return {name: (int(number), which) for name, number, which in (line.split("\t") for line in lines)}


def tree_of(commit, folder):
    """The files of a commit, in a repository of their own: what is measured are files that git knows."""
    archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "x", "-C", folder], stdin=archive.stdout, check=True)
    if archive.wait():
        sys.exit(f"git archive {commit} failed")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def recorder_seconds(plumb, workload, folder):
    """Processor seconds of a recorder for one run of a workload, and those of the target."""
    launcher, used = Path(folder, "launcher.py"), Path(folder, "used.json")
    launcher.write_text(LAUNCHER)
    command = [plumb, "record", "-q", "-F", str(HZ), "-o", str(Path(folder, "profile.plumb")), "--",
               sys.executable, str(launcher), str(used), *workload]
    child = subprocess.Popen(command, cwd=BIN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit(f"{' '.join(command)} failed: {status}")
    target = json.loads(used.read_text())
    return usage.ru_utime + usage.ru_stime - target, target


def recorders(plumbs, only, repeats):
    print("\n## The recorder\n")
    sizes = [Path(plumb).stat().st_size / 1e6 for plumb in plumbs]
    print("| | before | now |\n|---|---:|---:|")
    print(f"| size of the binary | {sizes[0]:.1f} MB | {sizes[1]:.1f} MB |")
    for name, workload in WORKLOADS.items():
        if only and name not in only:
            continue
        seconds, targets = ([], []), []
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(repeats):
                for side in ((0, 1) if turn % 2 == 0 else (1, 0)):
                    own, target = recorder_seconds(plumbs[side], workload, folder)
                    seconds[side].append(own)
                    targets.append(target)
        target = statistics.median(targets)
        cells = [f"{statistics.median(one):.2f} s ({statistics.median(one) / target:.1%})" for one in seconds]
        print(f"| recorder at {HZ} Hz: {name}, {target:.1f} s | {cells[0]} | {cells[1]} |", flush=True)
    print(f"\nMedians of {repeats} runs, in turns; in percent of the target's processor time.")


def timed(title, command):
    """Prints the row of a command: how long it takes, and the processor time that it and its children use."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    status = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL).returncode
    elapsed, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"| {title} | | {elapsed:.0f} s, {used:.0f} s of processors{'' if status == 0 else ', FAILED'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the commit to compare with")
    parser.add_argument("--plumb", action="append", default=[], help="a release build: the old one, then the new one")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", type=lambda names: names.split(","), help="of the six programs these")
    parser.add_argument("--binary", type=Path, help="a build of this tree, whose size is printed")
    parser.add_argument("--frames", type=Path, help="what bench/unwind/run.py --json has written")
    parser.add_argument("--build", action="store_true", help="make a release build in an empty folder and measure it")
    parser.add_argument("--make-demo", action="store_true", help="run make demo and measure it")
    parser.add_argument("--make-test", action="store_true", help="run make test and measure it")
    args = parser.parse_args()
    if len(args.plumb) not in (0, 2):
        parser.error("--plumb is given twice or not at all")
    before = text(["git", "rev-list", "-1", f"--before={DAY}", "HEAD"], cwd=ROOT) if args.before is None else args.before
    what = text(["git", "log", "-1", "--format=%h of %ad, \"%s\"", "--date=format:%Y-%m-%d %H:%M", before], cwd=ROOT)
    now = text(["git", "log", "-1", "--format=%h of %ad", "--date=format:%Y-%m-%d %H:%M"], cwd=ROOT)
    print(f"# The house before and now, {time.strftime('%Y-%m-%d')}\n")
    print(f"`bench/house/run.py`. Before: {what}. Now: {now}. Linux {platform.release()}, {os.cpu_count()} processors.\n")
    with tempfile.TemporaryDirectory() as folder:
        tree_of(before, folder)
        sides = measures(folder), measures(ROOT)
    print("| | before | now |\n|---|---|---|")
    for name, title in ROWS:
        cells = [f"{number:,}" + (f" ({which})" if which else "") for number, which in (side[name] for side in sides)]
        print(f"| {title} | {cells[0]} | {cells[1]} |")
    if args.binary:
        print(f"| size of the binary | | {args.binary.stat().st_size / 1e6:.1f} MB |")
    if args.frames:
        found = json.loads(args.frames.read_text())["measured"]["plumb"]
        frames = ", ".join(f"{name} {one['warm']:.1f}" for name, one in found.items())
        print(f"| instructions a frame, the same stack walked again | | {frames} |")
    if args.build:
        with tempfile.TemporaryDirectory() as folder:
            timed("time of a release build from an empty folder", ["cargo", "build", "--release", "-q", "-p", "plumb", "--target-dir", folder])
    if args.make_demo:
        timed("time of `make demo`", ["make", "demo"])
    if args.make_test:
        timed("time of `make test`", ["make", "test"])
    if args.plumb:
        recorders([str(Path(plumb).resolve()) for plumb in args.plumb], args.only, args.repeats)


if __name__ == "__main__":
    main()
