#!/usr/bin/env python3
"""Unwinders on the same stacks of real programs: instructions, frames that differ from gimli's, bytes kept. Prints Markdown.

    bench/unwind/run.py [--only plumb,framehop,...] [--corpora cc1plus,...] [--record] [--json FILE]

Records the corpora first if they are not there ($PLUMB_CORPORA, or plumb-unwind-corpora in the temporary folder; 120 MB each;
needs perf and permission to use it, g++, clang-19, python3.11, cargo), which takes some minutes, and everything else a quarter
of an hour. Instructions are counted by callgrind, as the difference of two runs, so neither loading nor the machine's load is in
them. Needs valgrind; libunwind-dev and libdw-dev for those two. What the columns are stands below the table."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CORPORA = Path(os.environ.get("PLUMB_CORPORA", Path(tempfile.gettempdir()) / "plumb-unwind-corpora"))
TOOL = TARGET / "release" / "plumb-bench-unwind"
BIG = str(ROOT / "bench" / "cpu" / "big.cpp")
FREQUENCY = "997"
MOST = 3200  # Of each program; they run for 4 to 8 seconds, so that all have as many.
FEW = 400  # So many of these, evenly spread, are enough where an engine takes thousands of instructions a frame.
ALL = 1 << 32
AT_A_TIME = 2  # Runs that are counted; what they count does not depend on each other.
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


def corpus(name, few=False):
    return CORPORA / f"{name.replace('.', '_')}{'-few' if few else ''}.corpus"


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


def thin_out(name):
    """Some samples of all of the program's run, for engines that would take too long with all."""
    subprocess.run([TOOL, "thin", corpus(name), str(FEW), corpus(name, True)], check=True)
    subprocess.run([TOOL, "truth", corpus(name, True)], check=True)


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


def command(engine, mode, times, path):
    if engine in ("libunwind", "libdw"):
        return [TARGET / "release" / f"bench-{engine}", mode, str(times), path, str(ALL)]
    return [TOOL, "run", engine, mode, str(times), path, str(ALL)]


def instructions(*what):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *what], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not found:
        print(f"{' '.join(map(str, what))}: {run.stderr[-500:]}", file=sys.stderr)
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
            subprocess.run(command(engine, "frames", frames.name, corpus(name)), check=True)
        else:
            subprocess.run([TOOL, "frames", engine, corpus(name), frames.name], check=True)
        run = subprocess.run([TOOL, "compare", corpus(name), frames.name], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def output(*what):
    return json.loads(subprocess.run(what, check=True, capture_output=True, text=True).stdout)


def runs_of(engine):
    """Which runs are counted: a name, how, how often."""
    if engine == "gimli":
        return {"none": ("stream", 0), "once": ("stream", 1)}
    runs = {"none": ("stream", 0), "once": ("stream", 1), "twice": ("stream", 2), "first": ("warm", 1), "again": ("warm", 2)}
    if engine in ("framehop", "libunwind"):
        runs |= {"forgotten none": ("cold", 0), "forgotten once": ("cold", 1)}
    return runs


def measure(engine, name, pool):
    few = engine not in (*OURS, "framehop")
    path = corpus(name, few)
    count = output(TOOL, "count", path, str(ALL))
    waiting = {key: pool.submit(instructions, *command(engine, mode, times, path)) for key, (mode, times) in runs_of(engine).items()}
    if engine == "plumb-tables":
        waiting |= {f"tables {times}": pool.submit(instructions, TOOL, "tables", str(times), path) for times in (1, 2)}
    runs = {key: run.result() for key, run in waiting.items()}
    less = lambda more, other: difference(runs.get(more), runs.get(other))
    per_frame = lambda value: None if value is None else value / count["frames"]
    result = {"frames": count["frames"], "heap": output(*command(engine, "heap", 1, corpus(name)))}
    result["first"] = per_frame(less("once", "none"))
    if engine == "gimli":
        # It remembers nothing, so that one frame takes as long as another.
        return result | {key: result["first"] for key in ("warm", "stream", "miss")}
    result |= {"warm": per_frame(less("again", "first")), "stream": per_frame(less("twice", "once"))}
    if engine in ("framehop", "libunwind"):
        cold = less("forgotten once", "forgotten none")
        result["miss"] = None if cold is None else cold / count["steps"]
    else:
        more = difference(less("once", "none"), less("twice", "once"))
        result["miss"] = None if more is None else more / count["addresses"]
    if engine == "plumb-tables":
        tables = output(TOOL, "tables", "5", path)
        made = less("tables 2", "tables 1")
        result |= {"tables": tables["bytes"], "build": None if made is None else made / tables["eh_frame"], "build_s": tables["seconds"]}
    return result


def cells(results, key, form, reason):
    """A column of a row: a figure for each program, or why there is none."""
    if all(result is None or result.get(key) is None for result in results):
        return reason
    return " / ".join("failed" if result is None or result.get(key) is None else form(result[key]) for result in results)


def table(measured, compared, names):
    number = lambda value: f"{value:.1f}" if value < 100 else f"{value:,.0f}"
    kilo = lambda value: f"{value / 1024:.0f}"
    yield f"Cells are {' / '.join(names)}.\n"
    yield ("| unwinder | warm | stream | first pass | missed address | frames that differ | in stacks cut by the copy | further | KB kept "
           "| KB of tables | made: instructions a byte | made: ms |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    yield "| *goal for plumb* | *≤ 16* | *≤ 20* | | *≤ 400, with tables ≤ 90* | *0* | *0* | | | | *≤ 12* | |"
    for engine, by_name in measured.items():
        rows, found = [by_name.get(name) for name in names], [compared[engine].get(name) for name in names]
        columns = [cells(rows, key, number, "not counted") for key in ("warm", "stream", "first", "miss")]
        columns += [cells(found, key, str, "is the measure") for key in ("different_frames", "cut_frames", "further_frames")]
        columns += [cells(rows, "heap", kilo, "not counted"), cells(rows, "tables", kilo, "makes none")]
        columns += [cells(rows, "build", number, "makes none")]
        columns += [cells(rows, "build_s", lambda seconds: f"{seconds * 1e3:.1f}", "makes none")]
        yield f"| {engine} | {' | '.join(columns)} |"


NOTES = """
*plumb* yields frames, *plumb-slots* the places of return addresses in the stack, for those who look at few
of them (`trace`), and *plumb-tables* the same with the tables of rules for callers, by length, made beforehand.
Columns 2 to 5 are instructions (callgrind): *warm*: a frame, the same stack walked again at once; *stream*: a frame, all
samples in order once they have all been walked before; *first pass*: a frame, all samples in order, with nothing remembered
at first; *missed address*: what the first sight of an address costs more: (first pass − stream) ÷ distinct addresses for plumb
and libdw, one frame from a forgotten cache for libunwind, one frame with a new cache for framehop (making it, with 509 slots,
is in it), a frame for gimli, which remembers nothing and so is counted once.
gimli, libunwind (with a remote address space and its cache, as perf has it) and libdw are counted on {few} samples of each program, evenly spread over its run;
all else is of all samples. *Frames that differ* from gimli evaluating all registers, counted from the first other caller of
a stack to its end; those of stacks that end with the copied 32 KiB apart, where unwinders guess; *further*: frames after
gimli ends for lack of information. *KB kept*: heap set aside for remembering and grown by the first pass over all samples; what
libunwind and libdw map without malloc is not in it.
*Tables*: those of all files that the program has mapped; made from `.eh_frame` alone, instructions for each byte of that, milliseconds
at best of five (depends on the machine's load).
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
    for name in names:
        thin_out(name)
    began = time.monotonic()
    measured, compared = {}, {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for engine in engines:
            measured[engine], compared[engine] = {}, {}
            for name in names:
                print(f"{time.monotonic() - began:.0f} s: {engine}: {name}", file=sys.stderr)
                compared[engine][name] = compare(engine, name)
                if not arguments.compare_only:
                    measured[engine][name] = measure(engine, name, pool)
    print("\n".join(table(measured, compared, names)))
    print(NOTES.format(few=FEW))
    if "plumb" in compared:
        report(compared, names, sys.stdout)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"measured": measured, "compared": compared}, indent=1))


if __name__ == "__main__":
    main()
