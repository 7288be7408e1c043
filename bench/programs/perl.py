#!/usr/bin/env python3
"""Functions of Perl by plumb beside what the program measures itself, and beside what `caller` says, as a table in Markdown.

Each ROOT is a folder with a Perl of some version, to be entered by chroot; / is the machine's own. What is recorded are the programs of
crates/cli/tests: ways to a function, each with its own time (shares.pl), and a call that hangs (hangs.pl).

usage: perl.py PLUMB ROOT...   (as root; SECONDS=0.4 is the time of each way)"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).parents[2] / "crates/cli/tests/programs"
# First something that takes a while, so that the tables are there by which stacks are walked.
RUN = "$i = 0; $i++ while $i < 30_000_000; do '%s'; die $@ if $@"
MARKS = ("[gone", "[native frames", "[frames that", "[more")


def measured(printed):
    """Seconds by way, as the program printed them."""
    ways = {}
    for line in printed.splitlines():
        name, cpu, _ = line.rsplit(" ", 2)
        ways[name] = int(cpu) / 1e9
    return ways


def shares(plumb, perl, program, folder):
    """The largest deviation of a way in percent of its time, and the samples with frames that are missing or out of place."""
    file = os.path.join(folder, "shares.plumb")
    seconds = os.environ.get("SECONDS", "0.4")
    command = [plumb, "record", "-q", "--capture", "bpf", "-o", file, "--", *perl, "-e", RUN % program, seconds]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    ways = measured(run.stdout)
    names = {name for way in ways for name in way.split(";")}
    found, marked = collections.Counter(), 0
    folded = subprocess.run([plumb, "fold", "--weights", file], capture_output=True, text=True, check=True).stdout
    for line in folded.splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = stack.split(";")
        found[";".join(frame for frame in frames if frame in names)] += int(weight) / 1e9
        marked += any(frame.startswith(MARKS) for frame in frames)
    worst = max(abs(found[way] - time) / time for way, time in ways.items())
    return len(ways), 100 * worst, marked


def hanging(plumb, perl, program):
    """What plumb says of the process, and whether its frames are those that the program printed."""
    process = subprocess.Popen([*perl, program], stdout=subprocess.PIPE, text=True)
    said = []
    for line in process.stdout:
        if line == "hangs\n":
            break
        name, path, number = line.rstrip("\n").split("\t")
        said.append((name, path, int(number)))
    output = subprocess.run([plumb, "stack", "--json", "-p", str(process.pid)], capture_output=True, text=True, check=True)
    process.kill()
    process.wait()
    told = json.loads(output.stdout)["processes"][0]
    frames = [frame for frame in told["threads"][0]["frames"] if frame["kind"] == "script"]
    return told["interpreter"], [(frame["symbol"], frame["file"], frame["line"]) for frame in frames] == said


def main():
    os.environ["LC_ALL"] = "C"
    plumb = os.path.abspath(sys.argv[1])
    print("| Perl | ways | largest deviation of a way | stacks with a mark | functions, files and lines as `caller` says |\n|---|--:|--:|--:|---|")
    for root in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=os.path.join(root, "tmp")) as inside:
            for name in ("shares.pl", "hangs.pl"):
                shutil.copy(PROGRAMS / name, inside)
            within = "/" + os.path.relpath(inside, root)
            perl = ["chroot", root, "/usr/bin/perl"] if root != "/" else ["perl"]
            count, worst, marked = shares(plumb, perl, within + "/shares.pl", folder)
            name, same = hanging(plumb, perl, within + "/hangs.pl")
        print(f"| {name} | {count} | {worst:.1f}% | {marked} | {'yes' if same else '**no**'} |", flush=True)


main()
