#!/usr/bin/env python3
"""Unwinders on the same stacks of real programs: instructions, frames that differ from gimli's, bytes kept. Prints Markdown.

    bench/unwind/run.py [--only plumb,framehop,...] [--corpora cc1plus,...] [--record] [--json FILE]

Records the corpora first if they are not there ($PLUMB_CORPORA, or plumb-unwind-corpora in the temporary folder; some 100 MB
each; needs perf and permission to use it, g++, clang-19, python3.11, rustc). Instructions are counted by callgrind, as the
difference of two runs, so neither loading nor the machine's load is in them. Needs valgrind; libunwind-dev and libdw-dev for
those two. What the columns are stands below the table."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CORPORA = Path(os.environ.get("PLUMB_CORPORA", Path(tempfile.gettempdir()) / "plumb-unwind-corpora"))
TOOL = TARGET / "release" / "plumb-bench-unwind"
BIG = str(ROOT / "bench" / "cpu" / "big.cpp")
FREQUENCY = "997"
MOST = 3200  # Of each program; they run for 4 to 8 seconds, so that all have as many.
SLOW = 400  # So many samples are enough where an engine takes thousands of instructions a frame.
ALL = 1 << 32
OURS = ("plumb", "plumb-slots", "plumb-tables")


def cargo(what, folder):
    """This bench itself is what rustc is recorded on: all of it, libraries too, is optimised at once."""
    return ["cargo", what, "--quiet", "--release", "--config", "profile.release.lto='fat'", "--manifest-path", str(HERE / "Cargo.toml"),
            "--target-dir", str(folder / "target")]


def workloads(folder):
    """The process with most samples of each is what counts: g++'s is cc1plus."""
    out = ["-o", str(folder / "output")]
    return {
        "cc1plus": ["g++", "-std=c++17", "-O2", "-w", "-c", BIG, *out],
        "clang-19": ["clang-19", "-std=c++17", "-O2", "-w", "-c", BIG, *out],
        "rustc": [*cargo("rustc", folder), "--", "--cfg", "recorded"],
        "python3.11": ["/usr/bin/python3.11", str(ROOT / "bench" / "cpu" / "script.py"), "1500"],
    }


def corpus(name):
    return CORPORA / f"{name.replace('.', '_')}.corpus"


def record(names):
    CORPORA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, command in workloads(Path(folder)).items():
            if name not in names:
                continue
            data = Path(folder) / "perf.data"
            if name == "rustc":
                subprocess.run(cargo("build", Path(folder)), check=True)
            perf = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", FREQUENCY, "--call-graph", "dwarf,32768", "-o", data, "--"]
            print(f"recording {name}", file=sys.stderr)
            subprocess.run([*perf, *command], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([TOOL, "convert", data, corpus(name), str(MOST)], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([TOOL, "truth", corpus(name)], check=True)
            data.unlink()


def build():
    subprocess.run(["cargo", "build", "--quiet", "--release", "--manifest-path", HERE / "Cargo.toml"], check=True,
                   env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)})
    built = []
    for name, libraries in {"libunwind": ["-lunwind-x86_64", "-lunwind"], "libdw": ["-ldw"]}.items():
        command = ["gcc", "-O2", HERE / "c" / f"{name}.c", "-o", TARGET / "release" / f"bench-{name}", *libraries]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
            built.append(name)
        else:
            print(f"{name}: skipped, {name}-dev is not installed", file=sys.stderr)
    return [*OURS, "framehop", "gimli", *built]


def command(engine, mode, times, name, samples):
    if engine in ("libunwind", "libdw"):
        return [TARGET / "release" / f"bench-{engine}", mode, str(times), corpus(name), str(samples)]
    return [TOOL, "run", engine, mode, str(times), corpus(name), str(samples)]


def instructions(*arguments):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command(*arguments)],
                         capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not found:
        return None
    return int(found[1])


def difference(more, less):
    return None if more is None or less is None else more - less


def compare(engine, name):
    """Frames against gimli's."""
    if engine == "gimli":
        return None
    with tempfile.NamedTemporaryFile() as frames:
        if engine in ("libunwind", "libdw"):
            subprocess.run(command(engine, "frames", frames.name, name, ALL), check=True)
        else:
            subprocess.run([TOOL, "frames", engine, corpus(name), frames.name], check=True)
        run = subprocess.run([TOOL, "compare", corpus(name), frames.name], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def heap(engine, name, times):
    run = subprocess.run(command(engine, "heap", times, name, ALL), check=True, capture_output=True, text=True)
    return int(run.stdout)


def measure(engine, name, whole):
    samples = ALL if engine in (*OURS, "framehop") else SLOW
    count = {"frames": 0, "addresses": 0}
    for key, value in whole.items():
        count[key] = value
    if samples != ALL:
        run = subprocess.run([TOOL, "count", corpus(name), str(samples)], check=True, capture_output=True, text=True)
        count = json.loads(run.stdout)
    runs = {key: instructions(engine, mode, times, name, samples)
            for key, mode, times in (("none", "stream", 0), ("once", "stream", 1), ("twice", "stream", 2), ("first", "warm", 1), ("again", "warm", 2))}
    per_frame = lambda value: None if value is None else value / count["frames"]
    result = {
        "warm": per_frame(difference(runs["again"], runs["first"])),
        "stream": per_frame(difference(runs["twice"], runs["once"])),
        "first": per_frame(difference(runs["once"], runs["none"])),
        "heap": heap(engine, name, 1),
    }
    if engine == "gimli":
        result["miss"] = result["first"]
    elif engine in (*OURS, "libdw"):
        more = difference(difference(runs["once"], runs["none"]), difference(runs["twice"], runs["once"]))
        result["miss"] = None if more is None else more / count["addresses"]
    else:
        cold = difference(instructions(engine, "cold", 1, name, samples), instructions(engine, "cold", 0, name, samples))
        result["miss"] = None if cold is None else cold / count["steps"]
    return result


def cells(results, key, form):
    return " / ".join("–" if result is None or result.get(key) is None else form(result[key]) for result in results)


def table(measured, compared, names):
    number = lambda value: f"{value:.1f}" if value < 100 else f"{value:.0f}"
    yield f"Cells are {' / '.join(names)}.\n"
    yield "| unwinder | warm | stream | first pass | missed address | frames that differ | in stacks cut by the copy | further | KB kept |"
    yield "|---|---|---|---|---|---|---|---|---|"
    yield "| *goal for plumb* | *≤ 16* | *≤ 20* | | *≤ 400* | *0* | *0* | | |"
    for engine, by_name in measured.items():
        rows, found = [by_name.get(name) for name in names], [compared[engine].get(name) for name in names]
        columns = [cells(rows, key, number) for key in ("warm", "stream", "first", "miss")]
        differing = [cells(found, key, str) for key in ("different_frames", "cut_frames", "further_frames")]
        yield f"| {engine} | {' | '.join(columns + differing)} | {cells(rows, 'heap', lambda v: f'{v / 1024:.0f}')} |"


NOTES = """
*plumb* yields frames, *plumb-slots* the places of return addresses in the stack, for those who look at few
of them (`trace`), and *plumb-tables* the same with the tables of rules for callers made beforehand.
Columns 2 to 5 are instructions (callgrind): *warm*: a frame, the same stack walked again at once; *stream*: a frame, all
samples in order once they have all been walked before; *first pass*: a frame, all samples in order, with nothing remembered
at first; *missed address*: what the first sight of an address costs more: (first pass − stream) ÷ distinct addresses for plumb
and libdw, one frame from a forgotten cache for libunwind, one frame with a new cache for framehop (making it, with 509 slots,
is in it), a frame for gimli. *Frames that differ* from gimli evaluating all registers, counted from the first other caller of
a stack to its end; those of stacks that end with the copied 32 KiB apart, where unwinders guess; *further*: frames after
gimli ends for lack of information. *KB kept*: heap grown by the first pass.
"""


def report(compared, names, out):
    total = {key: sum(compared["plumb"][name][key] for name in names if name in compared["plumb"])
             for key in ("samples", "frames", "different_samples", "cut_samples", "further_samples")}
    print(f"plumb against gimli with all registers: {total['samples']} samples, {total['frames']} frames, "
          f"{total['different_samples'] + total['cut_samples']} deviations, {total['further_samples']} samples go on where gimli "
          "has no information.", file=out)
    for name in names:
        for place, count in compared["plumb"].get(name, {}).get("places", []):
            print(f"- {name}: {place}: {count}", file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="engines, separated by commas")
    parser.add_argument("--corpora", help="programs, separated by commas")
    parser.add_argument("--record", action="store_true", help="record again")
    parser.add_argument("--compare-only", action="store_true", help="count no instructions")
    parser.add_argument("--json", help="write the figures there as well")
    arguments = parser.parse_args()
    engines = build()
    if arguments.only:
        engines = [engine for engine in engines if engine in arguments.only.split(",")]
    names = [name for name in workloads(Path()) if not arguments.corpora or name in arguments.corpora.split(",")]
    record([name for name in names if arguments.record or not corpus(name).exists()])
    measured, compared = {}, {}
    for engine in engines:
        measured[engine], compared[engine] = {}, {}
        for name in names:
            print(f"{engine}: {name}", file=sys.stderr)
            compared[engine][name] = compare(engine, name)
            count = subprocess.run([TOOL, "count", corpus(name), str(ALL)], check=True, capture_output=True, text=True)
            if not arguments.compare_only:
                measured[engine][name] = measure(engine, name, json.loads(count.stdout))
    print("\n".join(table(measured, compared, names)))
    print(NOTES)
    if "plumb" in compared:
        report(compared, names, sys.stdout)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"measured": measured, "compared": compared}, indent=1))


if __name__ == "__main__":
    main()
