#!/usr/bin/env python3
"""Whether the time of a service's threads adds up: threads x wall = processor time + run-queue wait + time off the processor.

The target (service.c) works, sleeps, takes a lock and waits for a pipe; it is observed with -p, --tree and --cgroup, as root. Another, a
command (many_naps.c of the tests), sleeps for 50 us, 10,000 times a second. Processor time
is what the kernel accounts to the target while it is recorded; run-queue wait and time off are the recording's.
Another program keeps the processors busy for half of the runs, so that there is run-queue wait.

    bench/off_cpu/closes.py [--seconds 3] [--repeats 3] [--workers 4] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cgroups():
    """Where cgroups of version 2 are."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next(Path(words[1]) for words in lines if words[2] == "cgroup2")


def tasks(pids):
    return [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]


def times_of(plumb, recording):
    """Seconds: processor, run queue, off, wall by plumb's own clock."""
    report = json.loads(subprocess.run([plumb, "report", "--json", str(recording)], capture_output=True, check=True).stdout)
    weights = {one["event"]: one["weight"] / 1e9 for one in report["reports"]}
    return report["target_cpu_ns"] / 1e9, weights.get("run-queue", 0), weights.get("off-cpu", 0), report["duration_ns"] / 1e9


def print_row(how, beside, threads, times):
    cpu, queue, off, wall = times
    total, whole = cpu + queue + off, wall * threads
    print(f"| `{how}` | {beside} | {threads} | {cpu:.3f} | {queue:.3f} | {off:.3f} | {total:.3f} "
          f"| {whole:.3f} | {(total / whole - 1) * 100:+.2f}% |", flush=True)


def observe(plumb, how, service, pids, seconds, folder):
    """The times of a service that runs."""
    group = None
    if how == "--cgroup":
        group = cgroups() / f"closes-{os.getpid()}"
        group.mkdir(exist_ok=True)
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
    names = {"-p": ",".join(map(str, pids)), "--tree": str(service), "--cgroup": str(group)}
    out = folder / "out.plumb"
    command = [plumb, "record", "--off-cpu", how, names[how], "--duration", str(seconds), "-o", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = process.communicate()[1]
    if process.returncode:
        sys.exit(said)
    if group:
        for pid in pids:
            (cgroups() / "cgroup.procs").write_text(str(pid))
        group.rmdir()
    return times_of(plumb, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--plumb", default=str(ROOT / "target/release/plumb"))
    args = parser.parse_args()
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print("| target | beside | threads | processor, s | run queue, s | off, s | sum, s | threads x wall, s | difference |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["gcc", "-O2", "-pthread", "-o", folder / "service", Path(__file__).parent / "service.c"], check=True)
        source = ROOT / "crates/cli/tests/programs/many_naps.c"
        subprocess.run(["gcc", "-O2", "-o", folder / "many_naps", source], check=True)
        for _ in range(args.repeats):
            recorded = folder / "naps.plumb"
            command = [args.plumb, "record", "--off-cpu", "-o", recorded, folder / "many_naps", "20000"]
            subprocess.run(command, check=True, capture_output=True)
            print_row("./many_naps", "", 1, times_of(args.plumb, recorded))
        for how, processes in [("-p", 1), ("--tree", 3), ("--cgroup", 3)]:
            for busy in (False, True):
                for _ in range(args.repeats):
                    service = subprocess.Popen([folder / "service", str(args.workers), str(processes)])
                    beside = subprocess.Popen(["sh", "-c", "while :; do :; done"]) if busy else None
                    time.sleep(0.5)
                    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
                    pids = [service.pid, *map(int, children)]
                    try:
                        threads = len(tasks(pids))
                        times = observe(args.plumb, how, service.pid, pids, args.seconds, folder)
                    finally:
                        for pid in pids:
                            os.kill(pid, 9)
                        service.wait()
                        if beside:
                            beside.kill()
                            beside.wait()
                    print_row(how, "a busy loop" if busy else "", threads, times)


main()
