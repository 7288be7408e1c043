#!/usr/bin/env python3
"""What the tables of the rules for callers come to: rows, bytes, and the instructions that making one takes. Prints Markdown.

    bench/unwind/tables.py [FILE...]

Without files: libLLVM-19, cc1plus, python3.11, libc, those that are there. Instructions are counted by callgrind, as the
difference of making a table once and twice. Times, which depend on what else the machine does, are the best and the
median of 25; the load is written below. Needs valgrind."""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TOOL = TARGET / "release" / "examples" / "build_table"


def usual():
    cc1plus = subprocess.run(["gcc", "-print-prog-name=cc1plus"], capture_output=True, text=True).stdout.strip()
    libraries = Path("/usr/lib/x86_64-linux-gnu")
    files = [libraries / "libLLVM.so.19.1", Path(cc1plus), Path("/usr/bin/python3.11"), libraries / "libc.so.6"]
    return [str(file) for file in files if file.is_file()]


def run(*arguments):
    counted = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", TOOL, *arguments],
                             capture_output=True, text=True, check=True)
    numbers = dict(re.findall(r"(\w+) (\d+)", counted.stdout))
    return int(re.search(r"Collected : (\d+)", counted.stderr)[1]), {key: int(value) for key, value in numbers.items()}


def times(*arguments):
    timed = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True).stderr
    return " / ".join(re.search(rf"{which} ([0-9.]+)", timed)[1] for which in ("best", "median"))


def main():
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "plumb-unwind", "--example", "build_table"], cwd=ROOT, check=True)
    print("| file | .eh_frame, bytes | rows by length | bytes | instructions a byte of .eh_frame | ms, best / median | rows of calls | bytes | instructions a byte | ms, best / median |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for file in sys.argv[1:] or usual():
        cells = []
        for content in ("length", "calls"):
            (once, numbers), (twice, _) = run(file, "1", content), run(file, "2", content)
            cells += [f"{numbers['rows']:,}", f"{numbers['bytes']:,}", f"{(twice - once) / numbers['eh_frame']:.1f}",
                      times(file, "25", content)]
        print(f"| {Path(file).name} | {numbers['eh_frame']:,} | {' | '.join(cells)} |", flush=True)
    print(f"\nLoad, of {os.cpu_count()} processors, at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
