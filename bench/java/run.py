#!/usr/bin/env python3
"""Holds stacks and shares of Java programs against what is true: bench/java/run.py PLUMB JAVA...

T.java measures the shares of three functions by the thread's own clock; S.java does what programs do (collections, streams, exceptions, strings,
zip, method handles, recursion) in two threads. JAVA: the program java of each version to try; classes are compiled by the javac on the path.
A stack is whole if it reaches a function that begins threads or processes: plumb's own word for it is not asked. Stacks of the kernel alone, of
threads that have no memory any more, are not counted."""

import collections
import os
import re
import subprocess
import sys
import tempfile

ROOTS = ("start_thread", "clone3", "__clone", "_start")


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def stacks(folded):
    for line in folded.splitlines():
        stack, count = line.rsplit(" ", 1)
        yield stack.split(";"), int(count)


def record(plumb, folder, options, command):
    out = os.path.join(folder, "r.plumb")
    done = run([plumb, "record", *options, "-o", out, *command], cwd=folder)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stderr, list(stacks(run([plumb, "fold", out]).stdout))


def whole(found):
    """The share of stacks that reach a root, and the most frequent ends of others."""
    ends = collections.Counter()
    total = good = 0
    for stack, count in found:
        if any(name in ("entry_SYSCALL_64_after_hwframe", "ret_from_fork_asm") for name in stack[1:2]):
            continue
        total += count
        if any(name.split("+")[0] in ROOTS for name in stack[1:5]):
            good += count
        else:
            ends[" < ".join(stack[1:4])] += count
    return 100 * good / max(total, 1), total, ends


def shares(found):
    spent = collections.Counter()
    for stack, count in found:
        inner = [name for name in stack if re.fullmatch(r"T\.(alpha|beta|gamma)", name)]
        if inner:
            spent[inner[-1][2:]] += count
    total = sum(spent.values()) or 1
    return " / ".join(f"{100 * spent[name] / total:.1f}" for name in ("alpha", "beta", "gamma"))


def main():
    plumb, javas = os.path.abspath(sys.argv[1]), sys.argv[2:]
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        done = run(["javac", "--release", "17", "-d", folder, f"{here}/T.java", f"{here}/S.java"])
        if done.returncode:
            sys.exit(done.stderr)
        print("| java | program | stacks | reach a root | shares found | shares true | overhead |\n|---|---|---|---|---|---|---|")
        for java in javas:
            for name, arguments in (("T", ["plain"]), ("T", ["thread"]), ("S", ["4"])):
                for capture in ("auto", "perf"):
                    said, found = record(plumb, folder, ["--capture", capture], ["--", java, "-cp", folder, name, *arguments])
                    share, total, ends = whole(found)
                    truth = re.search(r"TRUTH alpha (\S+) beta (\S+) gamma (\S+)", said)
                    cost = re.search(r"processor time, (\S+) of the target's", said)
                    shown = (shares(found), " / ".join(truth.groups())) if truth else ("", "")
                    print(f"| {java} | {name} {arguments[0]}, {capture} | {total} | {share:.2f}% | {shown[0]} | {shown[1]} | {cost[1] if cost else ''} |")
                    for end, count in ends.most_common(3):
                        print(f"<!-- {100 * count / total:.2f}% {end} -->")


main()
