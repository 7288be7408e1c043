#!/usr/bin/env python3
"""Are the stacks of real programs whole? Compilers, a database, run times with JIT compilers, garbage collectors and stacks of
their own, and a stack of 384 KiB.

Each program is recorded with `plumb record --capture bpf`, `--capture perf`, and `perf record --call-graph dwarf`. Two tables come
out. The first counts samples with a user part. `rooted` are those that plumb says are whole, `own reason` those that end in code
that was made at run time and for which the program tells nobody how to find callers (JIT), `by name` is a second opinion that
holds for all recorders alike: the outermost function is one that nobody calls (_start, clone3, runtime.goexit and so on, in ROOTS).
The second table has what the other samples end in. `roots` are the outermost functions that plumb found, most frequent first.

plumb begins each program without what it keeps of files from run to run, unless --warm is given.

Programs that are not there are left out, with a line that says so. Servers listen on a socket in a temporary folder, as `postgres`
or `nobody`. Run as root.

    bench/programs/run.py [--only clang,go] [--recorders bpf,copies,perf] [--hertz 999] [--warm] [--plumb target/release/plumb]
"""
import argparse
import collections
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
# What nobody calls: entry points of processes, threads and goroutines, and where Go's scheduler begins anew on a stack of its own.
ROOTS = re.compile(
    r"^(_start|_dl_start_user|_dl_start|__libc_start_(main|call_main)\S*|start_thread|(__)?clone3?|_rt0_amd64\S*"
    r"|runtime\.(goexit(\.abi0)?|mcall|morestack(\.abi0)?|mstart(\.abi0)?|rt0_go(\.abi0)?))$")
# A stripped program's _start has no name; who it calls has.
CALLED_BY_START = re.compile(r"^__libc_start_main")
USER = 1 << 63
# How plumb script shows where a stack is cut, and what of that is the program's own doing.
CUTS = ["stack deeper than its copy", "no unwind information", "damaged unwind information", "JIT code without unwind information",
        "return address in no mapping", "file could not be read", "stack memory not readable", "register not known",
        "stack points at itself", "frame limit reached", "no user stack recorded",
        "another architecture, whose stacks are not unwound"]
OWN = "JIT code without unwind information"


class Missing(Exception):
    """A program is not installed."""


def need(*names):
    """The first of these that is there."""
    for name in names:
        found = shutil.which(name)
        if found:
            return os.path.realpath(found) if not found.endswith("rustc") else found
    raise Missing(" or ".join(names))


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **more)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def clang(folder):
    compiler = need("clang++-19", "clang-19")
    run([compiler, "-x", "c++", "-std=c++17", "-E", ROOT / "bench/cpu/big.cpp", "-o", folder / "big.ii"])
    return [compiler, "-O2", "-std=c++17", "-w", "-x", "c++-cpp-output", "-c", folder / "big.ii", "-o", "/dev/null"]


def rustc(folder):
    source = folder / "many.rs"
    one = ("pub fn f{n}(words: &[String]) -> std::collections::BTreeMap<String, Vec<(usize, [u8; {n}])>> {{\n"
           "    let mut map = std::collections::BTreeMap::new();\n"
           "    for (i, word) in words.iter().enumerate().filter(|(i, _)| i % {n} != 1) {{\n"
           "        map.entry(word.replace('a', \"{n}\")).or_insert_with(Vec::new).push((i, [0; {n}]));\n"
           "    }}\n    map\n}}\n")
    source.write_text("".join(one.format(n=n) for n in range(2, 90)))
    return [need("rustc"), "--edition=2021", "-O", "--crate-type=lib", "-o", folder / "many.rlib", source]


def python(folder):
    return [need("python3.11", "python3"), ROOT / "bench/cpu/script.py", "300"]


def deep(folder):
    run([need("gcc"), "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", ROOT / "bench/cpu/deep.c", "-o", folder / "deep"])
    # 1,920 frames of 200 bytes are 384 KB.
    return [folder / "deep", "4000", "1920"]


def node(folder):
    return [need("node", "nodejs"), HERE / "work.js", "6"]


def java(folder):
    need("javac")
    run(["javac", "-d", folder, HERE / "Work.java"])
    return [need("java"), "-cp", folder, "Work", "6"]


def the_go():
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or need("go")


def go_environment(folder):
    return {"GOCACHE": str(folder / "go-cache"), "GOPATH": str(folder / "go-path"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local",
            "GOPROXY": "off", "HOME": str(folder)}


def go(folder):
    """Building a program with all of the library that it uses: the compiler and the linker are Go programs."""
    shutil.rmtree(folder / "go-cache", ignore_errors=True)
    return ["env", *(f"{name}={value}" for name, value in go_environment(folder).items()), the_go(), "build", "-o", folder / "gowork",
            HERE / "work.go"]


def go_program(folder):
    """What was built: goroutines, channels, garbage."""
    run([the_go(), "build", "-o", folder / "gowork", HERE / "work.go"], env=os.environ | go_environment(folder))
    return [folder / "gowork", "6"]


def postgres(folder, *how):
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not tools:
        raise Missing("postgresql")
    tools, data = tools[-1], folder / "postgres"
    owner = "postgres" if subprocess.run(["getent", "passwd", "postgres"], capture_output=True).returncode == 0 else "nobody"
    as_owner = ["setpriv", f"--reuid={owner}", "--regid=" + run(["id", "-g", owner]).strip(), "--clear-groups"]
    if not data.exists():
        data.mkdir()
        shutil.chown(data, owner)
        run([*as_owner, tools / "initdb", "-D", data / "db", "-A", "trust", "-U", "bench", "--no-sync"], cwd=data)
    script = (f"cd {data}; T={tools}; $T/pg_ctl -D db -w -s -l log -o \"-c listen_addresses= -c unix_socket_directories={data}\" start; "
              f"export PGHOST={data} PGUSER=bench PGDATABASE=postgres; $T/pgbench -i -q -s 5 >/dev/null 2>&1; "
              f"$T/pgbench -n -c 4 -T 6 {' '.join(how)} >/dev/null; $T/pg_ctl -D db -w -s -m fast stop")
    return [*as_owner, "sh", "-ec", script]


PROGRAMS = {
    "clang": clang,
    "rustc": rustc,
    "postgres": postgres,
    "postgres -S": lambda folder: postgres(folder, "-S"),
    "node": node,
    "java": java,
    "go build": go,
    "go program": go_program,
    "python": python,
    "deep": deep,
}


def plumb(capture):
    def record(args, out, command):
        return [args.plumb, "record", "-q", "-F", args.hertz, "--capture", capture, "-o", out, "--", *command]
    return record


def perf(args, out, command):
    return ["perf", "record", "-q", "-e", "cpu-clock", "-F", args.hertz, "--call-graph", "dwarf", "-o", out, "--", *command]


RECORDERS = {"bpf": ("plumb bpf", plumb("bpf")), "copies": ("plumb copies", plumb("perf")), "perf": ("perf dwarf", perf)}


def stacks(args, file, is_perf):
    """The user part of each sample that has one: (address, function, file), leaf first, and in what it is cut."""
    if is_perf:
        command = ["perf", "script", "--no-inline", "-F", "comm,tid,time,event,ip,sym,dso", "-i", file]
    else:
        command = [args.plumb, "script", "--no-inline", file]
    text = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    deadline = time.monotonic() + args.limit
    frames, cut = None, None
    for line in text.stdout:
        if time.monotonic() > deadline:
            text.kill()
            raise TimeoutError
        line = line.rstrip("\n")
        found = re.match(r"\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$", line)
        if not line:
            if frames or cut:
                yield frames, cut
            frames, cut = [], None
        elif found and frames is not None:
            address, name, where = int(found[1], 16), found[2], found[3]
            reason = next((cut for cut in CUTS if cut in name), None)
            if reason and not is_perf:
                cut = (reason, os.path.basename(where))
            elif address < USER:
                frames.append((address, name, where))
        elif not line[0].isspace():
            frames, cut = [], None
    if frames or cut:
        yield frames, cut
    text.wait()


def is_root(frames):
    outermost = frames[-1][1].split("@")[0]
    below = frames[-2][1].split("@")[0] if len(frames) > 1 else ""
    return bool(ROOTS.match(outermost) or CALLED_BY_START.match(below))


def judge(args, file, is_perf):
    row = collections.Counter()
    reasons, roots = collections.Counter(), collections.Counter()
    for frames, cut in stacks(args, file, is_perf):
        row["samples"] += 1
        row["frames"] += len(frames)
        if cut is None and frames:
            row["rooted"] += 1
            row["named"] += is_root(frames)
            roots[frames[-1][1].split("@")[0] if not frames[-1][1].startswith("[") else "(" + os.path.basename(frames[-1][2]) + ")"] += 1
        elif cut and cut[0] == OWN:
            row["own"] += 1
        if cut:
            last = os.path.basename(frames[-1][2]) if frames else "nowhere"
            reasons[cut[0], cut[1] if cut[1] not in ("", "[unknown]") else last, frames[-1][1] if frames else ""] += 1
    return row, reasons, roots


def measure(args, program, recorder, folder):
    name, make = RECORDERS[recorder]
    out = folder / "recording"
    out.unlink(missing_ok=True)
    (folder / f"cache-{recorder}").mkdir(mode=0o700, exist_ok=True)
    command = [str(word) for word in make(args, out, PROGRAMS[program](folder))]
    for _ in range(2 if args.warm else 1):
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", cwd=folder,
                              env=os.environ | {"XDG_CACHE_HOME": str(folder / f"cache-{recorder}")})
    if done.returncode:
        return None, f"{name} on {program} failed: {done.stderr.strip()[-300:]}"
    if args.keep:
        shutil.copy(out, args.keep / f"{program.replace(' ', '')}.{recorder}")
    try:
        return judge(args, out, recorder == "perf"), None
    except TimeoutError:
        return None, f"{name} on {program}: its script takes more than {args.limit} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--recorders", default=",".join(RECORDERS))
    parser.add_argument("--hertz", type=int, default=999)
    parser.add_argument("--limit", type=float, default=200, help="seconds that reading a recording as text may take")
    parser.add_argument("--warm", action="store_true", help="each recorder has seen the program once before")
    parser.add_argument("--keep", type=Path, help="a folder for the recordings")
    parser.add_argument("--plumb", type=Path, default=ROOT / "target/release/plumb")
    args = parser.parse_args()
    args.plumb = args.plumb.resolve()
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {args.hertz} Hz, "
          f"{run(['perf', '--version']).strip() if shutil.which('perf') else 'no perf'}.\n", flush=True)
    print("| program | recorder | user samples | frames each | rooted % | rooted or own reason % | by name % | roots |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    others, notes = [], []
    for program in args.only.split(","):
        with tempfile.TemporaryDirectory(prefix="plumb-bench-programs-") as folder:
            folder = Path(folder)
            folder.chmod(0o755)
            for recorder in args.recorders.split(","):
                try:
                    found, note = measure(args, program, recorder, folder)
                except Missing as missing:
                    notes.append(f"{program}: {missing} is not installed.")
                    break
                if note:
                    notes.append(note)
                    continue
                row, reasons, roots = found
                def share(count, row=row):
                    return f"{100 * count / max(row['samples'], 1):.2f}"
                shown = ", ".join(f"{root} {share(count)}%" for root, count in roots.most_common(4))
                is_perf = recorder == "perf"
                print(f"| {program} | {RECORDERS[recorder][0]} | {row['samples']} | {row['frames'] / max(row['samples'], 1):.1f} | "
                      f"{'' if is_perf else share(row['rooted'])} | {'' if is_perf else share(row['rooted'] + row['own'])} | "
                      f"{share(row['named'])} | {'' if is_perf else shown} |", flush=True)
                for (reason, where, function), count in reasons.most_common(6):
                    others.append(f"| {program} | {RECORDERS[recorder][0]} | {share(count)} | {reason} | {where} | {function} |")
    print("\n| program | recorder | % of user samples | ends in | where | outermost function found |\n|---|---|---|---|---|---|")
    print("\n".join(others))
    print("\n" + "\n".join(notes) if notes else "")


main()
