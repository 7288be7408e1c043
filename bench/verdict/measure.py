"""What a fix gains: processor time and elapsed time before and after, in pairs that take turns.

Processor time is what the kernel accounts to the command and all its children (wait4). Results are kept in measured.json by the hash of
the program and the name of the processor. The two variants must give the same result. Nothing here runs plumb.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date

import programs

KEPT = programs.HERE / "measured.json"


def processor():
    """The processor's name, as measurements of another one don't count here."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def run_once(program, variant, python):
    """Processor time and elapsed time of one run, in seconds, and what it printed."""
    programs.fresh_scratch(programs.build(program, variant))
    with tempfile.TemporaryFile() as printed:
        began = time.monotonic()
        child = subprocess.Popen(
            programs.command(program, variant, python), cwd=programs.SCRATCH, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=printed,
            preexec_fn=programs.raised,
        )
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(child.pid, signal.SIGKILL))
        signal.alarm(programs.LIMIT)
        _, status, usage = os.wait4(child.pid, 0)
        elapsed = time.monotonic() - began
        signal.alarm(0)
        child.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        result = printed.read().decode(errors="replace").strip()
    if child.returncode:
        sys.exit(f"{program.name} ({variant}) ended with {child.returncode}: {result}")
    return usage.ru_utime + usage.ru_stime, elapsed, result


def range_of(values):
    return {"median": round(statistics.median(values), 2), "min": round(min(values), 2), "max": round(max(values), 2)}


def measure(program, pairs, python):
    """Runs the pairs and returns the gains in percent of the time before."""
    before, after = [], []
    for _ in range(pairs):
        before.append(run_once(program, "before", python))
        after.append(run_once(program, "after", python))
    results = {one[2] for one in before + after}
    if not program.is_clean and len(results) > 1:
        sys.exit(f"{program.name}: the variants differ in their results: {sorted(results)}")
    gains = [[100 * (1 - b[which] / a[which]) for a, b in zip(before, after)] for which in (0, 1)]
    return {
        "program": program.name,
        "processor": processor(),
        "date": str(date.today()),
        "pairs": pairs,
        "load": round(os.getloadavg()[0], 1),
        "cpu_seconds_before": round(statistics.median(one[0] for one in before), 3),
        "wall_seconds_before": round(statistics.median(one[1] for one in before), 3),
        "cpu_gain": range_of(gains[0]),
        "wall_gain": range_of(gains[1]),
    }


def gain_of(program, pairs, python, again):
    """The gain as it was kept, or measured now."""
    if program.is_clean:
        return None
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    known = kept.get(program.digest)
    if known and known["processor"] == processor() and not again:
        return known
    kept = {key: value for key, value in kept.items() if value["program"] != program.name}
    kept[program.digest] = measure(program, pairs, python)
    ordered = dict(sorted(kept.items(), key=lambda item: item[1]["program"]))
    KEPT.write_text(json.dumps(ordered, indent=1) + "\n")
    return kept[program.digest]
