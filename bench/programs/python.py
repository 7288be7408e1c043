#!/usr/bin/env python3
"""Shares of Python functions by plumb and by py-spy, side by side on the same processes, as a table in Markdown.

Shares are of the samples that have `main` in their stack: what comes before, as imports, only one of the two may have seen. Each PYTHON
that has numpy also sorts with it; from 3.12 on it also runs with -X perf. plumb records the process by its id, as a command,
and as what a shell runs.

usage: python.py PLUMB PY-SPY PYTHON...   (as root; SECONDS=20 is the time of each)"""
import collections
import os
import subprocess
import sys
import tempfile
import time

PROGRAM = """
import time
try:
    import numpy
except ImportError:
    numpy = None
def leaf(n):
    return sum(i * i for i in range(n))
def by_key(n):
    leaf(60)
    return -n
def sorting():
    sorted(range(2000), key=by_key)
def direct():
    leaf(150000)
def numpy_sort(a):
    return numpy.sort(a)
def main(end):
    a = numpy.random.default_rng(1).random(1000000) if numpy else None
    while time.time() < end:
        direct()
        sorting()
        if numpy:
            numpy_sort(a)
import os
main(time.time() + float(os.environ["SECONDS"]) + 3)
"""
SECONDS = float(os.environ.get("SECONDS", "20"))
FUNCTIONS = ["direct", "sorting", "by_key", "numpy_sort"]
WAYS = ["-p", "command", "sh -c"]
# What numpy's wheels need elsewhere makes them crash here.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")} | {"SECONDS": str(SECONDS)}


def shares(folded):
    """Samples with each function anywhere in the stack, in percent of those with `main`, and these in percent of all."""
    counts, whole, inside = collections.Counter(), 0, 0
    for line in folded.splitlines():
        stack, samples = line.rsplit(" ", 1)
        names = {frame.split(" (")[0] for frame in stack.split(";")}
        whole += int(samples)
        if "main" in names:
            inside += int(samples)
            counts.update({name: int(samples) for name in names})
    return {name: 100 * counts[name] / max(inside, 1) for name in FUNCTIONS}, 100 * inside / max(whole, 1)


def python_of(process):
    """The process that runs Python: this one, or one that it has started."""
    if os.path.basename(os.readlink(f"/proc/{process}/exe")).startswith("python"):
        return process
    children = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()
    return next(filter(None, (python_of(int(child)) for child in children)), None)


def measure(plumb, py_spy, command, way, folder):
    profile, raw = os.path.join(folder, "profile.plumb"), os.path.join(folder, "raw")
    record = [plumb, "record", "-o", profile]
    if way == "-p":
        program = subprocess.Popen(command, env=ENVIRONMENT)
    else:
        words = command if way == "command" else ["sh", "-c", " ".join(command) + "; true"]
        program = subprocess.Popen([*record, "--", *words], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    pid = str(program.pid if way == "-p" else python_of(program.pid))
    spy = subprocess.Popen([py_spy, "record", "-p", pid, "-d", str(int(SECONDS)), "-r", "250", "-f", "raw", "-o", raw],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours = subprocess.Popen([*record, "-p", pid], stderr=subprocess.DEVNULL) if way == "-p" else None
    spy.wait()
    if ours:
        ours.send_signal(2)
        ours.wait()
    program.wait()
    folded = subprocess.run([plumb, "fold", profile], capture_output=True, text=True, check=True).stdout
    return shares(folded), shares(open(raw).read())


def main():
    plumb, py_spy, *pythons = sys.argv[1:]
    print("| program | recorded | function | plumb | py-spy | difference |\n|---|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(PROGRAM)
        for python in pythons:
            text = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
            has_perf = int(text.split(".")[1]) >= 12
            for options in [[], ["-X", "perf"]] if has_perf else [[]]:
                for way in WAYS:
                    (ours, inside), (theirs, _) = measure(plumb, py_spy, [python, *options, path], way, folder)
                    for name in FUNCTIONS:
                        row = [" ".join([text, *options]), way, name, f"{ours[name]:.1f}", f"{theirs[name]:.1f}"]
                        print("| " + " | ".join([*row, f"{ours[name] - theirs[name]:+.1f}"]) + " |", flush=True)
                    print(f"| {' '.join([text, *options])} | {way} | samples in main | {inside:.1f} | | |", flush=True)


main()
