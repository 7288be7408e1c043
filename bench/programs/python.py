#!/usr/bin/env python3
"""Shares of Python functions by plumb and by py-spy, side by side on the same processes, as a table in Markdown.

usage: python.py PLUMB PY-SPY PYTHON...   (as root; each PYTHON that has numpy also sorts with it)"""
import collections
import os
import subprocess
import sys
import tempfile

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
main(time.time() + 9)
"""
FUNCTIONS = ["main", "direct", "sorting", "by_key", "numpy_sort"]


def shares(folded):
    """Samples with each function anywhere in the stack, in percent."""
    counts, whole = collections.Counter(), 0
    for line in folded.splitlines():
        stack, samples = line.rsplit(" ", 1)
        names = {frame.split(" (")[0] for frame in stack.split(";")}
        whole += int(samples)
        for name in names:
            counts[name] += int(samples)
    return {name: 100 * counts[name] / max(whole, 1) for name in FUNCTIONS}


def measure(plumb, py_spy, command, folder):
    process = subprocess.Popen(command)
    pid = ["-p", str(process.pid)]
    subprocess.run(["sleep", "1.5"], check=True)
    raw = os.path.join(folder, "raw")
    profile = os.path.join(folder, "profile.plumb")
    spy = subprocess.Popen([py_spy, "record", *pid, "-d", "6", "-r", "250", "-f", "raw", "-o", raw],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ours = subprocess.Popen([plumb, "record", *pid, "-o", profile], stderr=subprocess.DEVNULL)
    spy.wait()
    ours.send_signal(2)
    ours.wait()
    process.wait()
    folded = subprocess.run([plumb, "fold", profile], capture_output=True, text=True, check=True).stdout
    return shares(folded), shares(open(raw).read())


def main():
    plumb, py_spy, *pythons = sys.argv[1:]
    print("| program | function | plumb | py-spy | difference |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(PROGRAM)
        for python in pythons:
            text = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
            for options in [[], ["-X", "perf"]] if "3.12" in text else [[]]:
                ours, theirs = measure(plumb, py_spy, [python, *options, path], folder)
                for name in FUNCTIONS:
                    row = [" ".join([text, *options]), name, f"{ours[name]:.1f}", f"{theirs[name]:.1f}"]
                    print("| " + " | ".join([*row, f"{ours[name] - theirs[name]:+.1f}"]) + " |", flush=True)


main()
