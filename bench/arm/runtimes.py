#!/usr/bin/env python3
"""Reads the console of runtimes.guest.sh and prints a row for each recording: the largest difference of a share from what the program measured of
itself, in standard errors; the share of stacks that begin at a root; what is wrong."""
import collections
import math
import re
import sys

ROOTS = ("_start", "start_thread", "thread_start", "__clone", "clone3", "__clone3", "runtime.goexit.abi0", "runtime.rt0_go.abi0",
         "runtime.clone.abi0", "runtime.morestack.abi0", "runtime.mcall")


def begins_at_root(stack):
    # Debian's C library has no symbol where threads begin.
    return any(frame in ROOTS or frame.startswith("libc.so.6+") for frame in stack[:2])


def recordings(lines):
    name, part = None, None
    for line in lines:
        line = line.rstrip("\r\n")
        if line.startswith("BEGIN "):
            name, printed, stacks, part = line[6:], [], [], "printed"
        elif line == "STACKS":
            part = "stacks"
        elif line.startswith("END ") and name:
            yield name, printed, stacks
            name = None
        elif name:
            (printed if part == "printed" else stacks).append(line)
        elif line.startswith(("FAILED", "KERNEL")):
            print("#", line)


def measured_of(printed):
    truth = next((re.search(r"TRUTH alpha (\S+) beta (\S+) gamma (\S+)", line) for line in printed if "TRUTH" in line), None)
    if truth:
        return {f"T.{name}": float(share) for name, share in zip(("alpha", "beta", "gamma"), truth.groups())}
    rows = (re.fullmatch(r"(\S.*) (\d+) (\d+)", line) for line in printed if not line.startswith("plumb:"))
    return {row[1]: int(row[2]) for row in rows if row}


def as_compiled(name, measured):
    """CPython 3.12 and newer compile comprehensions into their function."""
    version = re.fullmatch(r"python3\.(\d+) .*", name)
    if not version or int(version[1]) < 12:
        return measured
    found = collections.Counter()
    for way, ns in measured.items():
        found[re.sub(r"[^;]*<listcomp>;", "", way)] += ns
    return found


def main():
    print("| runtime | capture | samples | worst share | true | found | sigma | from the root |\n|---|---|---|---|---|---|---|---|")
    for name, printed, lines in recordings(sys.stdin):
        stacks = collections.Counter()
        for line in lines:
            if re.search(r" \d+$", line):
                stack, count = line.rsplit(" ", 1)
                stacks[tuple(stack.split(";")[1:])] += int(count)
        measured = as_compiled(name, measured_of(printed))
        known = {part for way in measured for part in way.split(";")}
        found = collections.Counter()
        for stack, count in stacks.items():
            way = [frame for frame in stack if frame in known]
            found[";".join(way[-1:] if name.startswith("java") else way)] += count
        all_, rooted = sum(stacks.values()), sum(count for stack, count in stacks.items() if begins_at_root(stack))
        in_ways, total = sum(found[way] for way in measured) or 1, sum(measured.values()) or 1
        worst = (0, "", 0, 0)
        for way, truth in measured.items():
            share = truth / total
            seen = found[way] / in_ways
            sigma = abs(seen - share) / math.sqrt(max(share * (1 - share), 1e-9) / in_ways)
            worst = max(worst, (sigma, way, share, seen))
        runtime, capture = name.split()
        print(f"| {runtime} | {capture} | {in_ways} of {all_} | {worst[1][-50:]} | {100 * worst[2]:.1f}% | {100 * worst[3]:.1f}% | {worst[0]:.1f} | {100 * rooted / max(all_, 1):.2f}% |")
        others = collections.Counter()
        for stack, count in stacks.items():
            if not begins_at_root(stack):
                others[" < ".join(stack[:3])] += count
        for end, count in others.most_common(2):
            print(f"<!-- {100 * count / all_:.2f}% {end} -->")


main()
