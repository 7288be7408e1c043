#!/usr/bin/env python3
"""Goroutines that no thread runs, as plumb stack shows them, held against runtime.Stack of the program itself, for versions of Go and ways to link.

    run.py [PLUMB]    PLUMB: the command [target/debug/plumb]

VERSIONS: of Go, which its proxy has [1.21.0 ... 1.27.0]. Prints a table of Markdown; the exit code is 1 if a goroutine differs."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PLUMB = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "target/debug/plumb"))
VERSIONS = os.environ.get("VERSIONS", "1.21.0 1.22.0 1.23.0 1.24.0 1.25.0 1.26.8 1.27.0").split()
LINKED = [("with symbols", []), ("without", ["-ldflags=-s"]), ("position-independent, without", ["-ldflags=-s", "-buildmode=pie"])]


def said(text):
    """What Go says of those that wait, by number: state and functions, the innermost first. It leaves out the middle of a long stack."""
    found, current = {}, None
    for line in text.splitlines():
        head = re.match(r"goroutine (\d+) .*?\[(.*)\]:", line)
        if head:
            current = found[int(head[1])] = (head[2], [])
        elif current and line[:1] not in ("", "\t", " ") and not line.startswith("created by") and "(" in line:
            current[1].append(line.rsplit("(", 1)[0])
    return {number: (state, names) for number, (state, names) in found.items() if state != "running" and len(names) < 100}


def shown(process):
    """The same as plumb shows it, without the runtime's own functions and the compiler's wrappers, which Go does not print."""
    found = {}
    for group in process["goroutines"]:
        names = [frame["symbol"] for frame in group["frames"]]
        # Before 1.22 a wrapper is a function of its own.
        names = [name for name in names if not re.match(r"runtime\.", name) and not re.search(r"\.gowrap\d+$|^main\.main\.func\d+$", name)]
        found.update({number: (group["state"], names, group["complete"]) for number in group["ids"]})
    return found


def compare(folder, version, options):
    program = os.path.join(folder, "parked")
    environment = dict(os.environ, GOTOOLCHAIN=f"go{version}", GOFLAGS="-buildvcs=false", CGO_ENABLED="0")
    subprocess.run(["go", "build", "-o", program, *options, os.path.join(folder, "parked.go")], env=environment, check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as child:
        lines = []
        for line in child.stdout:
            if line == "ready\n":
                break
            lines.append(line)
        time.sleep(0.2)
        output = subprocess.run([PLUMB, "stack", "--json", str(child.pid)], capture_output=True, check=True).stdout
        child.kill()
    process = json.loads(output)["processes"][0]
    theirs, ours = said("".join(lines)), shown(process)
    equal = sum(ours.get(number, ())[:2] == one for number, one in theirs.items())
    whole = sum(one[2] for one in ours.values())
    return len(theirs), equal, len(ours), whole, process["held_ns"] / 1e6


def main():
    print("| Go | linked | goroutines that Go prints | equal | that plumb shows | whole | process held |\n|---|---|---|---|---|---|---|")
    differ = False
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(ROOT, "crates/cli/tests/programs/parked.go")) as source, open(os.path.join(folder, "parked.go"), "w") as older:
            # Go 1.21 has no range over a number.
            older.write(source.read().replace("for range 1000", "for i := 0; i < 1000; i++"))
        for version in VERSIONS:
            for name, options in LINKED:
                theirs, equal, ours, whole, held = compare(folder, version, options)
                differ |= equal != theirs
                print(f"| {version} | {name} | {theirs:,} | {equal:,} | {ours:,} | {whole:,} | {held:.1f} ms |", flush=True)
    return differ


if __name__ == "__main__":
    sys.exit(main())
