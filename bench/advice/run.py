#!/usr/bin/env python3
"""A program whose allocator gives the heap back after each request: does the advice say so, and is its promise kept?

`plumb kernel --advice` promises a share of processor time; `plumb stat` measures the program as it is, with the settings that the
advice names, and with another allocator loaded before it. strace -c is beside it, for what it sees of the same program. Runs take
turns, so that a machine that gets slower does so for all.

    bench/advice/run.py [--rounds 300] [--runs 10] [--plumb target/release/plumb]
"""
import argparse
import glob
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
REMEDY = {"MALLOC_TRIM_THRESHOLD_": "1073741824", "MALLOC_TOP_PAD_": "67108864"}


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **more)


def measured(plumb, variables, command):
    """One run by plumb stat."""
    words = [f"{name}={value}" for name, value in variables.items()]
    done = run([plumb, "stat", "--no-calls", "--silent", "--json", "--", *words, *command])
    if done.returncode:
        sys.exit(f"plumb stat failed:\n{done.stderr}")
    result = json.loads(done.stderr)
    cpu = result["metrics"]["cpu_ns"]["median"]
    kernel = result["modes"]["kernel_share"] * cpu if result["modes"] else float("nan")
    return cpu, kernel


def interval(values):
    """The median, and the interval between order statistics that holds it with 95% (2nd and 9th of 10)."""
    ordered = sorted(values)
    cut = {6: 0, 7: 0, 8: 0, 9: 1, 10: 1, 11: 1, 12: 2}.get(len(ordered), max(0, int(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5)))
    return statistics.median(ordered), ordered[cut], ordered[len(ordered) - 1 - cut]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    args = parser.parse_args()
    plumb = args.plumb.resolve()
    folder = Path(tempfile.mkdtemp(prefix="plumb-advice-"))
    program = folder / "heap"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).with_name("heap.c")], check=True)
    command = [program, args.rounds]
    allocators = {"as it is": {}, "with the settings advised": REMEDY}
    for name in ("jemalloc", "mimalloc", "tcmalloc_minimal"):
        for library in sorted(glob.glob(f"/usr/lib/*/lib{name}.so.*"))[:1]:
            allocators[f"with {name} (LD_PRELOAD)"] = {"LD_PRELOAD": library}

    kernel = run([plumb, "kernel", "--advice", "--json", "--", *command])
    if kernel.returncode:
        sys.exit(kernel.stderr)
    advice = json.loads(kernel.stdout[kernel.stdout.index("{"):])["advice"]
    churn = next((one for one in advice["advice"] if one["rule"] == "brk-churn"), None)

    times = {name: [] for name in allocators}
    for _ in range(args.runs):
        for name, variables in allocators.items():
            times[name].append(measured(plumb, variables, command))
    strace = run(["strace", "-f", "-c", "-o", folder / "strace", *command]) if shutil.which("strace") else None
    seen = None
    if strace and not strace.returncode:
        total = re.search(r"^\s*100\.00\s+([\d.]+)", (folder / "strace").read_text(), re.M)
        seen = float(total.group(1)) * 1e9 if total else None
    shutil.rmtree(folder)

    base = statistics.median(cpu for cpu, _ in times["as it is"])
    print(f"## Advice and what it promises: {platform.machine()}, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}\n")
    print(f"`heap {args.rounds}`, {args.runs} runs of each, taking turns.\n")
    if churn:
        figures = ", ".join(f"{one['what']} {one['value']:.1f}{one['unit']}" for one in churn["measured"])
        print(f"brk-churn: {figures}; promised: {churn['cpu_percent']:.1f}% of processor time")
    else:
        print("brk-churn was NOT seen")
    print(f"(others: {', '.join(one['rule'] for one in advice['advice'] if one is not churn) or 'none'};"
          f" {advice['dropped']} of {advice['watched']} calls and faults dropped)\n")
    print("| | CPU, median [95%] | saved of all | of it in the kernel |\n|---|---:|---:|---:|")
    kernel_base = statistics.median(kernel for _, kernel in times["as it is"])
    for name, values in times.items():
        cpu, low, high = interval([cpu for cpu, _ in values])
        # Pairs of one round, so that what the machine did meanwhile is in both.
        saved = interval([1 - one[0] / other[0] for one, other in zip(values, times["as it is"])])
        inside = (kernel_base - statistics.median(kernel for _, kernel in values)) / base
        share = "" if name == "as it is" else f"{saved[0]:.1%} [{saved[1]:.1%} .. {saved[2]:.1%}]"
        print(f"| {name} | {cpu / 1e9:.3f} s [{low / 1e9:.3f} .. {high / 1e9:.3f}] | {share} | "
              f"{'' if name == 'as it is' else f'{inside:.1%}'} |")
    if seen is not None:
        print(f"\nstrace -f -c finds {seen / 1e9:.3f} s of {kernel_base / 1e9:.3f} s that the program is in the kernel"
              f" ({seen / kernel_base:.0%}).")


main()
