#!/usr/bin/env python3
"""Hand-written parts of plumb beside the libraries that do the same. Prints Markdown.

    bench/libraries/run.py FILE

FILE: a program with much debug information, such as bench/bin/bigdbg (bench/cpu/build.sh). Instructions are counted by callgrind;
processor time and memory are medians of 15 runs, beside whatever else the machine does. Needs valgrind, and no root."""
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")) / "release" / "plumb-bench-libraries"
OBJECT = HERE.parents[1] / "crates" / "capture-bpf" / "bpf" / "capture.bpf.o"


def said(*arguments):
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, errors="replace", preexec_fn=bound)
    killed = [] if done.returncode >= 0 else ["aborted: " + done.stderr.split("\n")[0]]
    return ", ".join(done.stdout.split("\n")[:-1] + killed)


def instructions(*arguments):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", TOOL, *arguments]
    return int(re.search(r"Collected : (\d+)", subprocess.run(command, capture_output=True, text=True).stderr)[1]) // 1_000_000


def cost(*arguments):
    """Processor milliseconds and megabytes at the peak."""
    times, sizes = [], []
    for _ in range(15):
        child = subprocess.Popen([TOOL, *arguments], stdout=subprocess.PIPE, text=True)
        sizes.append(int(re.search(r"(\d+) KiB", child.stdout.read())[1]) / 1024)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        times.append(1e3 * (usage.ru_utime + usage.ru_stime))
    return f"{statistics.median(times):.0f}", f"{statistics.median(sizes):.1f}"


def addresses(file, count):
    text = subprocess.run(["readelf", "-SW", file], capture_output=True, text=True, check=True).stdout
    place = re.search(r"\.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", text)
    start, size = (int(number, 16) for number in place.groups())
    dice = random.Random(7)
    # Each once: plumb keeps an address that is asked for twice as one frame.
    return "".join(f"{address:x}\n" for address in dice.sample(range(start, start + size), count))


def main():
    subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=HERE, check=True)
    file = sys.argv[1]
    print("| addresses | by | found | million instructions |\n|---|---|---|---|")
    for count in (250, 1000, 7000, 30000):
        with tempfile.NamedTemporaryFile("w") as asked:
            asked.write(addresses(file, count))
            asked.flush()
            for by in ("plumb", "addr2line"):
                work = ("dwarf", by, file, asked.name)
                print(f"| {count:,} | {by} | {said(*work)} | {instructions(*work):,} |", flush=True)
    print("\n| types of the kernel | million instructions | processor ms | MB |\n|---|---|---|---|")
    for which in (("whole", OBJECT), ("trimmed", OBJECT), ("read",)):
        print(f"| {which[0]} | {instructions('types', *which)} | {' | '.join(cost('types', *which))} |", flush=True)
    print("\n| a table that claims | the parquet crate alone |\n|---|---|")
    for claim in ("nothing", "groups", "entries", "size", "bomb"):
        print(f"| {claim} | {said('pages', claim)} |", flush=True)
    print(f"\nLoad, of {os.cpu_count()} processors, at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
