#!/usr/bin/env python3
"""Judges `plumb explain`: is the cause that it names the cause, and is the gain that it predicts the gain?

Each program of programs.toml has a planted cause, and the fix of it, or nothing to fix. It is built both ways, what the fix gains is
measured (and kept in measured.json), and plumb explains the variant before the fix. Prints a table, the totals, and what was wrong.

    bench/verdict/run.py [--only NAME] [--plumb target/release/plumb] [--pairs 5] [--measure] [--gains] [--json FILE] [--live] [--python python3.11]
"""
import argparse
import dataclasses
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import judge
import measure
import programs


def number(value):
    return f"{value:.0f}" if abs(value) < 99 else f"{value:.1f}"


def gain_cell(gain):
    return f"{number(gain['median'])} ({number(gain['min'])}..{number(gain['max'])})"


def predicted_cell(bounds, gain):
    if bounds is None:
        return "—"
    shown = f"≤{number(bounds[1])}" if bounds[0] == 0 else f"{number(bounds[0])}–{number(bounds[1])}"
    return shown + (" ✓" if judge.within(bounds, gain) else " ✗")


def print_line(program, gain, verdict):
    cells = [program.name, program.language, program.cause or "nothing", f"**{verdict.outcome}**" if verdict.outcome == judge.FALSE else verdict.outcome]
    cells += [verdict.failed or verdict.leading, ", ".join(verdict.listed_false), verdict.place]
    if gain:
        cells += [gain_cell(gain["cpu_gain"]), predicted_cell(verdict.cpu, gain["cpu_gain"])]
        cells += [gain_cell(gain["wall_gain"]), predicted_cell(verdict.wall, gain["wall_gain"])]
    else:
        cells += ["", "—" if verdict.cpu is None else f"≤{number(verdict.cpu[1])}", "", ""]
    cells += [str(verdict.lines), f"{verdict.milliseconds:.0f} ms"]
    print("| " + " | ".join(cells) + " |", flush=True)


def percent(part, whole):
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f}%)" if whole else "")


def width(bounds):
    return bounds[1] / bounds[0] if bounds[0] > 0 else float("inf")


def print_totals(results):
    planted = [result for result in results if not result[0].is_clean]
    clean = [result for result in results if result[0].is_clean]
    count = {outcome: sum(verdict.outcome == outcome for _, _, verdict in planted) for outcome in (judge.RIGHT, judge.HALF, judge.NONE, judge.FALSE)}
    print("\n## Totals\n\n| | found | wanted |\n|---|---|---|")
    print(f"| cause in the headline | {percent(count[judge.RIGHT], len(planted))} | ≥ 90% |")
    print(f"| half: listed below, or the headline leads to it | {percent(count[judge.HALF], len(planted))} | |")
    print(f"| no cause named | {percent(count[judge.NONE], len(planted))} | |")
    print(f"| false cause in the headline | {percent(count[judge.FALSE], len(planted))} | 0 |")
    print(f"| clean programs with a cause in the headline | {percent(sum(verdict.outcome == judge.FALSE for _, _, verdict in clean), len(clean))} | 0 |")
    print(f"| programs with a false cause anywhere in the report | {percent(sum(bool(verdict.listed_false) for _, _, verdict in results), len(results))} | |")
    print(f"| the user's function or line in the headline | {percent(sum(verdict.place.startswith('headline') for _, _, verdict in planted), len(planted))} | |")
    print(f"| clean programs with a gain promised | {percent(sum(bool(verdict.cpu) for _, _, verdict in clean), len(clean))} | 0 |")
    print_predictions(planted)
    lines = [verdict.lines for _, _, verdict in results if verdict.lines]
    print(f"| reports of at most 40 lines | {percent(sum(one <= 40 for one in lines), len(lines))}, median {statistics.median(lines):.0f} | all |")
    slowest = max(results, key=lambda result: result[2].milliseconds)[2]
    print(f"| slowest report on a recording | {slowest.milliseconds:.0f} ms, {slowest.samples} samples | < 1 s for 10,000 |")


def print_predictions(planted):
    for what, name in (("cpu", "CPU"), ("wall", "wall")):
        promised = [(getattr(verdict, what), gain[f"{what}_gain"], verdict) for _, gain, verdict in planted if getattr(verdict, what)]
        inside = [judge.within(bounds, gain) for bounds, gain, _ in promised]
        of_causes = [right for right, (_, _, verdict) in zip(inside, promised) if verdict.is_cause]
        of_intervals = [right for right, (bounds, _, _) in zip(inside, promised) if bounds[0] > 0]
        print(f"| {name} gain within the prediction, where there is one | {percent(sum(inside), len(inside))} | ≥ 85% |")
        print(f"| the same, where the leading row is a cause and not a function or a call | {percent(sum(of_causes), len(of_causes))} | |")
        print(f"| the same, where the prediction has a lower end | {percent(sum(of_intervals), len(of_intervals))} | |")
        widths = [width(bounds) for bounds, _, _ in promised]
        if widths:
            middle = statistics.median(widths)
            print(f"| width of the {name} prediction, high ÷ low, median | {'no lower bound' if middle == float('inf') else f'{middle:.2f}'} | ≤ 1.5 |")


def print_misses(results):
    print("\n## Where the headline is not right\n")
    for program, _, verdict in results:
        if verdict.outcome != judge.RIGHT or verdict.failed:
            print(f"- **{program.name}** ({verdict.outcome}; planted: {program.cause or 'nothing'}): {verdict.failed or verdict.headline}")


def skipped(program, python):
    reason = programs.missing(program, python)
    if reason:
        print(f"{program.name} is left out: {reason}", file=sys.stderr, flush=True)
    return reason


def interpreter(name):
    """The Python that runs, not a script that starts it."""
    done = subprocess.run([name, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"cannot run {name}: {done.stderr.strip()}")
    return done.stdout.strip()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only programs whose name contains NAME")
    parser.add_argument("--plumb", default=programs.ROOT / "target/release/plumb", type=Path)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs that a gain is measured by")
    parser.add_argument("--measure", action="store_true", help="measure gains again")
    parser.add_argument("--gains", action="store_true", help="measure gains and judge nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write gains and verdicts as JSON")
    parser.add_argument("--live", action="store_true", help="take the JSON report from a run of its own, not from the recording of the text")
    parser.add_argument("--python", default="python3.11")
    return parser.parse_args()


def print_head(args):
    model = measure.processor()
    print(f"## plumb explain: {model}, {os.cpu_count()} processors, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}\n")
    print("Gains in percent of the time before: median (least..most). ✓: the median is within the prediction, give or take a point or half of the range of the pairs.\n")
    print("| program | language | planted | headline | leading row | false causes listed | place | CPU gain | predicted | wall gain | predicted | lines | time |")
    print("|---|---|---|---|---|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
    if not shutil.which(str(args.plumb)):
        sys.exit(f"cannot run {args.plumb}; build it with cargo build --release, or give --plumb PATH")


def main():
    args = arguments()
    args.python, args.plumb = interpreter(args.python), args.plumb.resolve()
    everything, causes = programs.load()
    chosen = [program for program in everything if not args.only or any(name in program.name for name in args.only)]
    chosen = [program for program in chosen if not skipped(program, args.python)]
    if not chosen:
        sys.exit("no program has such a name")
    if not args.gains:
        print_head(args)
    results = []
    for program in chosen:
        gain = measure.gain_of(program, args.pairs, args.python, args.measure)
        if args.gains:
            if gain:
                print(f"{program.name}: CPU {gain_cell(gain['cpu_gain'])} of {gain['cpu_seconds_before']} s, wall {gain_cell(gain['wall_gain'])} of {gain['wall_seconds_before']} s", flush=True)
            continue
        verdict = judge.judge(program, causes, args.plumb, args.python, live=args.live)
        results.append((program, gain, verdict))
        print_line(program, gain, verdict)
    if results:
        print_totals(results)
        print_misses(results)
    if args.json:
        rows = [{"program": program.name, "planted": program.cause, "gain": gain, **dataclasses.asdict(verdict)} for program, gain, verdict in results]
        args.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
