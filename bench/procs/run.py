#!/usr/bin/env python3
"""A shell runs dirname 3,000 times: does `plumb procs` know every process, and where their time went?

Truth comes from elsewhere: how many ran from the script, processor time from bash's own `times`, and how it splits from
`perf record -a` with the stacks of `perf script`, sorted into parts by hand (below). bash and dirname run from copies with
names of their own, so that nothing else on the machine is mistaken for them, and so that nobody has seen their files
before. The recorders take turns; shares are over all rounds. Run as root.

With --variant the dirname is one that nobody ever saw before (a new file for each recording, linked anew), deleted once the shell runs it,
in a mount namespace of its own on a file system of its own, or linked statically.

    bench/procs/run.py [--rounds 6] [--count 3000] [--capture perf|bpf] [--variant plain|new|deleted|mounted|static] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["user", "fork", "exec", "fault", "exit", "kernel"]
# The hand split: the first function from the root of the kernel stack that says what the kernel was about.
HAND = [
    ("fork", re.compile(r"sys_(clone3?|v?fork)$|^kernel_clone$|^schedule_tail$")),
    ("exec", re.compile(r"sys_execve(at)?$|^do_execveat_common")),
    ("exit", re.compile(r"sys_exit(_group)?$|^do_(group_)?exit$")),
    ("fault", re.compile(r"^asm_exc_page_fault$")),
]


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **more)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stderr}")
    return done.stdout


def seconds_of_times(text):
    """User and kernel seconds of the shell and its children, from what `times` printed."""
    pairs = re.findall(r"(\d+)m([\d.]+)s", text)
    return sum(60 * int(minutes) + float(rest) for minutes, rest in pairs[-4:])


DIRNAME = """#include <libgen.h>
#include <stdio.h>
static const char id[] = "%s";
int main(int argc, char **argv) { return argc < 2 ? id[0] == 0 : puts(dirname(argv[1])) < 0; }
"""


def prepare(variant, folder):
    """Makes the dirname of a variant; how the shell's command begins."""
    program = folder / "benchdirname"
    program.unlink(missing_ok=True)
    if variant in ("new", "static"):
        source = folder / "dirname.c"
        source.write_text(DIRNAME % os.urandom(16).hex())
        run(["gcc", "-O2", "-o", program, source] + (["-static"] if variant == "static" else []))
    else:
        shutil.copy(os.path.realpath(shutil.which("dirname")), program)
    if variant == "mounted":
        mount = 'mkdir -p "$0" && mount -t tmpfs none "$0" && cp "$1" "$0/benchdirname" && shift && exec "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, folder / "mounted", program]
    return []


def with_plumb(plumb, folder, command):
    recording = folder / "x.plumb"
    recording.unlink(missing_ok=True)
    out = run([plumb, "record", "-q", "--capture", with_plumb.capture, "-o", recording, "--", *command])
    report = json.loads(run([plumb, "procs", "--json", recording]))
    facts = json.loads(run([plumb, "report", "--json", recording]))
    parts = dict.fromkeys(PARTS, 0)
    for program in report["programs"]:
        for part, weight in program["parts"].items():
            parts[part] += weight
    ran = {(program["comm"], program["forked"]): program for program in report["programs"]}
    shell, child = ran.get(("benchsh", False), {}), ran.get((with_plumb.child, False), {})
    return {
        "seconds": seconds_of_times(out),
        "weight": report["weight"] / 1e9,
        "samples": report["samples"],
        "lost": facts["lost_samples"],
        "coverage_kernel": facts["reports"][0]["coverage_percent"],
        "complete": facts["reports"][0]["complete_percent"],
        "parts": {part: 100 * weight / report["weight"] for part, weight in parts.items()},
        "shells": shell.get("processes", 0),
        "dirnames": child.get("processes", 0),
        "others": report["processes"] - shell.get("processes", 0) - child.get("processes", 0),
        "parent": report["programs"][child["parent"]]["comm"] if child.get("parent") is not None else "nobody",
        "accounted": sum(program.get("accounted_ns") or 0 for program in report["programs"]) / 1e9,
        "dirname_share": 100 * child.get("self_weight", 0) / report["weight"],
        "starts": child.get("started_from_by_samples", []),
        "rules": sorted({advice["rule"] for advice in report["advice"]}),
        "bytes": recording.stat().st_size,
        "life": child.get("mean_life_ns", 0) / 1e6,
    }


def with_perf(plumb, folder, command):
    data = folder / "perf.data"
    # The command's own output and perf's stay apart: perf writes to standard error.
    out = run(["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", "999", "-o", data, "--", *command])
    parts, shares, total = dict.fromkeys(PARTS, 0), {"benchsh": 0, with_plumb.child: 0}, 0
    for record in run(["perf", "script", "-F", "comm,ip,sym,dso", "-i", data]).split("\n\n"):
        lines = record.strip("\n").split("\n")
        comm = lines[0].strip()
        if comm not in shares:
            continue
        total += 1
        shares[comm] += 1
        frames = [line.split(None, 1)[1] for line in reversed(lines[1:]) if len(line.split(None, 1)) == 2]
        kernel = [frame.rsplit(" (", 1)[0].split(".")[0] for frame in frames if "[kernel" in frame]
        # A sample that hit user code has no kernel frame at all.
        part = "kernel" if kernel else "user"
        for function in kernel:
            found = next((name for name, pattern in HAND if pattern.search(function)), None)
            if found:
                part = found
                break
        parts[part] += 1
    report = json.loads(run([plumb, "procs", "--json", data]))
    counts = {}
    for program in report["programs"]:
        key = (program["comm"], program["forked"])
        counts[key] = counts.get(key, 0) + program["processes"]
    return {
        "seconds": seconds_of_times(out),
        "samples": total,
        "parts": {part: 100 * count / total for part, count in parts.items()},
        "dirname_share": 100 * shares[with_plumb.child] / total,
        "dirnames": counts.get((with_plumb.child, False), 0),
        "bytes": data.stat().st_size,
    }


def median(rounds, key):
    return statistics.median(one[key] for one in rounds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--capture", default="perf")
    parser.add_argument("--variant", default="plain", choices=["plain", "new", "deleted", "mounted", "static"])
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="plumb-bench-procs-"))
    try:
        for name, path in [("benchsh", "bash"), ("benchdirname", "dirname")]:
            shutil.copy(os.path.realpath(shutil.which(path)), folder / name)
        with_plumb.capture, with_plumb.child = args.capture, "benchdirname"
        place = folder / "mounted" if args.variant == "mounted" else folder
        command = [folder / "benchsh", ROOT / "bench/procs/loop.sh", place / "benchdirname", args.count]
        if args.variant == "deleted":
            # The kernel names it by its descriptor.
            command[1], with_plumb.child = ROOT / "bench/procs/deleted.sh", "9"
        plumb, perf = [], []
        for index in range(args.rounds):
            pair = [(plumb, with_plumb), (perf, with_perf)]
            for rounds, record in pair if index % 2 == 0 else reversed(pair):
                rounds.append(record(args.plumb.resolve(), folder, prepare(args.variant, folder) + command))
    finally:
        shutil.rmtree(folder)
    show(args, plumb, perf)


def show(args, plumb, perf):
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, 999 Hz, "
          f"{args.rounds} rounds of {args.count} x dirname ({args.variant}), --capture {args.capture}, {run(['perf', '--version']).strip()}.\n")
    print("| round | dirname processes | shells | others | processor s by `times` | by accounts | by samples | coverage % | by the kernel's account % | lost | rooted % | bytes |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for index, one in enumerate(plumb, 1):
        coverage = 100 * one["weight"] / one["seconds"]
        print(f"| {index} | {one['dirnames']} | {one['shells']} | {one['others']} | {one['seconds']:.2f} | {one['accounted'] or float('nan'):.2f} | {one['weight']:.2f} | "
              f"{coverage:.1f} | {one['coverage_kernel']:.1f} | {one['lost']} | {one['complete']:.2f} | {one['bytes']} |")
    print(f"\nplumb reading perf's file counts {', '.join(str(one['dirnames']) for one in perf)} dirname processes; "
          f"perf.data has {median(perf, 'bytes') / 1e6:.1f} MB.\n")
    print("| part | plumb procs % | perf -a by hand % | plumb / perf | standard error of the ratio by chance |")
    print("|---|---|---|---|---|")
    for part in PARTS:
        # All samples of all rounds together: a part of a few percent has too few in one.
        ours, theirs = (sum(one["parts"][part] * one["samples"] for one in rounds) / sum(one["samples"] for one in rounds)
                        for rounds in (plumb, perf))
        counts = [sum(one["samples"] for one in rounds) * share / 100 for rounds, share in ((plumb, ours), (perf, theirs))]
        chance = 100 * sum(1 / max(count, 1) for count in counts) ** 0.5
        print(f"| {part} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.3f} | {chance:.1f}% |")
    print(f"\nShare of samples named dirname, the moments before its exec included: plumb {median(plumb, 'dirname_share'):.1f}%; "
          f"without them: perf {median(perf, 'dirname_share'):.1f}%.")
    last = plumb[-1]
    print(f"Average life {median(plumb, 'life'):.2f} ms; started by {last['parent']}; rules that held: {', '.join(last['rules'])}.")
    for start in last["starts"][:2]:
        names = " < ".join(frame["function"] for frame in start["leaf_first"][:6])
        print(f"From ({start['samples']} samples): {names}")


main()
