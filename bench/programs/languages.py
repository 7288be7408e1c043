#!/usr/bin/env python3
"""Are the stacks of programs in many languages whole, and their shares right, under the names that the language has?

Each program (split/) has three functions, `sixty`, `thirty` and `ten`, that take 60, 30 and 10 percent of its time. It is recorded as a
command and, while it runs, with -p, with stacks copied (`--capture perf`) and walked in the kernel (`--capture bpf`).

  complete   the share of samples whose stack reaches a root, as plumb says
  names      whether the language's own functions are named; `no: why` quotes the summary's remedy, if it has one
  off        how far the three shares are from 60/30/10, in percentage points, at most; in parentheses what chance allows (3 standard errors).
             Of the samples in one of the three: some runtimes take half a second before they run anything

Programs that are not installed are named below the table: `xtask/deps.sh programs` installs what Debian, PyPI and npm have. Run as root.

    bench/programs/languages.py [--only "C -O2|Go"] [--seconds 3] [--hertz 999] [--ways "command perf,-p bpf"] [--plumb target/release/plumb]
"""
import argparse
import json
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
SPLIT = Path(__file__).resolve().parent / "split"
LOCAL = Path(os.environ.get("PLUMB_LANGUAGES", "/opt/plumb-languages"))
SHARES = {"sixty": 60.0, "thirty": 30.0, "ten": 10.0}
PHP_JIT = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit=function", "-d", "opcache.jit_buffer_size=64M"]
WAYS = ["command perf", "command bpf", "-p perf", "-p bpf"]


class Missing(Exception):
    """A program is not installed."""


def need(name):
    found = shutil.which(name) or shutil.which(name, path=f"{LOCAL}/node_modules/.bin:{LOCAL}/bin:/usr/local/go/bin")
    if not found:
        raise Missing(name)
    return found


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **more)
    if done.returncode:
        raise Missing(f"{Path(str(command[0])).name} ({(done.stderr or done.stdout).strip()[-120:]})")


def compiled(compiler, *options, source, strip=False, after=()):
    def make(folder):
        out = folder / "split"
        run([need(compiler), *options, SPLIT / source, *after, "-o", out], cwd=folder)
        if strip:
            run(["strip", out])
        return [out, "SECONDS"]
    return make


def rust(*options):
    def make(folder):
        run([need("rustc"), "--edition=2021", "-O", *options, "-o", folder / "split", SPLIT / "split.rs"])
        return [folder / "split", "SECONDS"]
    return make


def go(source, *options, cgo="0"):
    def make(folder):
        environment = os.environ | {"GOCACHE": "/tmp/plumb-go-cache", "GOPATH": str(folder / "path"), "GOTOOLCHAIN": "local", "GOPROXY": "off",
                                    "GOFLAGS": "-mod=mod", "HOME": str(folder), "CGO_ENABLED": cgo}
        run([need("go"), "build", *options, "-o", folder / "split", SPLIT / source], env=environment)
        return [folder / "split", "SECONDS"]
    return make


def script(*words):
    def make(folder):
        return [need(words[0]), *(SPLIT / word if (SPLIT / word).exists() else word for word in words[1:])]
    return make


def java(*options):
    def make(folder):
        run([need("javac"), "-d", folder, SPLIT / "Split.java"])
        return [need("java"), *options, "-cp", folder, "Split", "SECONDS"]
    return make


def copied(folder, name):
    shutil.copy(SPLIT / name, folder / name)
    return folder / name


def ada(folder):
    run([need("gnatmake"), "-q", "-O2", copied(folder, "split.adb"), "-o", folder / "split"], cwd=folder)
    return [folder / "split", "SECONDS"]


def pascal(folder):
    run([need("fpc"), "-O2", f"-FE{folder}", SPLIT / "split.pas"])
    return [folder / "split", "SECONDS"]


def ocaml(folder):
    source = copied(folder, "split.ml")
    run([need("ocamlfind") if shutil.which("ocamlfind") else need("ocamlopt"), *(["ocamlopt", "-package", "unix", "-linkpkg"]
        if shutil.which("ocamlfind") else ["unix.cmxa"]), source, "-o", folder / "split"], cwd=folder)
    return [folder / "split", "SECONDS"]


def haskell(folder):
    run([need("ghc"), "-O1", "-g", copied(folder, "split.hs"), "-o", folder / "split"], cwd=folder)
    return [folder / "split", "SECONDS"]


def nim(folder):
    run([need("nim"), "c", "-d:release", "--hints:off", f"--nimcache:{folder}/cache", f"-o:{folder}/split", SPLIT / "split.nim"])
    return [folder / "split", "SECONDS"]


def zig(folder):
    run([need("python3"), "-c", "import ziglang"])
    run([need("python3"), "-m", "ziglang", "build-exe", "-O", "ReleaseFast", "-fno-strip", SPLIT / "split.zig"], cwd=folder,
        env=os.environ | {"ZIG_GLOBAL_CACHE_DIR": "/tmp/plumb-zig-cache", "ZIG_LOCAL_CACHE_DIR": str(folder)})
    return [folder / "split"]


def poly(folder):
    run([need("polyc"), "-o", folder / "split", SPLIT / "split.sml"])
    return [folder / "split"]


def chicken(folder):
    source = folder / "split.scm"
    source.write_text("(import (chicken time posix) (chicken time))\n(define (current-time) (inexact->exact (floor (current-seconds))))\n"
                      + (SPLIT / "split.scm").read_text())
    run([need("csc"), "-O2", source, "-o", folder / "split"], cwd=folder)
    return [folder / "split"]


def mono(*options):
    def make(folder):
        run([need("mcs"), f"-out:{folder}/Split.exe", SPLIT / "Split.cs"])
        return [need("mono"), *options, folder / "Split.exe", "SECONDS"]
    return make


def erlang(*options):
    def make(folder):
        run([need("erlc"), "-o", folder, SPLIT / "split.erl"])
        return [need("erl"), *options, "-noshell", "-pa", folder, "-run", "split", "main", "SECONDS"]
    return make


def in_shell(words):
    def make(folder):
        return ["sh", "-c", f"{need(words[0])} {SPLIT / words[1]} SECONDS; true"]
    return make


def assembly(folder):
    source = folder / "main.c"
    text = (SPLIT / "split.c").read_text()
    begin, end = text.index("__attribute__"), text.index("int main")
    source.write_text(text[:begin] + "uint32_t sixty(uint32_t), thirty(uint32_t), ten(uint32_t);\n" + text[end:])
    run(["gcc", "-O2", source, SPLIT / "split.s", "-o", folder / "split"])
    return [folder / "split", "SECONDS"]


# Name: how it is made, and whether a file or the process holds names that plumb can be expected to find.
PROGRAMS = {
    "C -O2": compiled("gcc", "-O2", source="split.c"),
    "C -O0": compiled("gcc", "-O0", source="split.c"),
    "C -O3 LTO": compiled("gcc", "-O3", "-flto", source="split.c"),
    "C static": compiled("gcc", "-O2", "-static", source="split.c"),
    "C static-pie": compiled("gcc", "-O2", "-static-pie", source="split.c"),
    "C stripped": compiled("gcc", "-O2", source="split.c", strip=True),
    "C clang": compiled("clang-19", "-O2", source="split.c"),
    "C musl": compiled("musl-gcc", "-O2", source="split.c"),
    "C musl static": compiled("musl-gcc", "-O2", "-static", source="split.c"),
    "C tcc": compiled("tcc", "-g", source="split.c"),
    "C no tables": compiled("gcc", "-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", source="split.c"),
    "C frame pointers": compiled("gcc", "-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", source="split.c"),
    "C coroutines": compiled("gcc", "-O2", source="splitco.c"),
    "assembly": assembly,
    "C++": compiled("g++", "-O2", "-std=c++17", source="split.cpp"),
    "C++ clang": compiled("clang++-19", "-O2", "-std=c++17", source="split.cpp"),
    "Rust": rust(),
    "Rust abort": rust("-Cpanic=abort"),
    "Rust abort, no tables": rust("-Cpanic=abort", "-Cforce-unwind-tables=no"),
    "Rust stripped": rust("-Cstrip=symbols"),
    "Go": go("split.go"),
    "Go stripped": go("split.go", "-ldflags=-s -w"),
    "Go cgo": go("splitcgo.go", cgo="1"),
    "Go external": go("splitcgo.go", "-ldflags=-linkmode=external", cgo="1"),
    "Go cgo static": go("splitcgo.go", "-ldflags=-linkmode=external -extldflags=-static", cgo="1"),
    "Fortran": compiled("gfortran", "-O2", "-fno-inline", source="split.f90"),
    "D gdc": compiled("gdc", "-O2", source="split.d"),
    "D ldc": lambda folder: (run([need("ldc2"), "-O2", f"-of={folder}/split", SPLIT / "split.d"], cwd=folder), [folder / "split", "SECONDS"])[1],
    "Ada": ada,
    "Pascal": pascal,
    "OCaml": ocaml,
    "Haskell": haskell,
    "Nim": nim,
    "Zig": zig,
    "Standard ML": poly,
    "Scheme (Chicken)": chicken,
    "Java": java(),
    "Java frame pointers": java("-XX:+UnlockDiagnosticVMOptions", "-XX:+PreserveFramePointer", "-XX:+DumpPerfMapAtExit"),
    "Node": script("node", "split.js", "SECONDS"),
    "Node --perf-basic-prof": script("node", "--perf-basic-prof", "--interpreted-frames-native-stack", "split.js", "SECONDS"),
    "Bun": script("bun", "split.js", "SECONDS"),
    "Deno": script("deno", "run", "split.js", "SECONDS"),
    "Python": script("python3.11", "split.py", "SECONDS"),
    "Python by sh": in_shell(["python3.11", "split.py"]),
    "PyPy": script("pypy3", "split.py", "SECONDS"),
    "PyPy --jit off": script("pypy3", "--jit", "off", "split.py", "SECONDS"),
    "Ruby": script("ruby", "split.rb", "SECONDS"),
    "Perl": script("perl", "split.pl", "SECONDS"),
    "PHP": script("php", "split.php", "SECONDS"),
    "PHP JIT": script("php", *PHP_JIT, "split.php", "SECONDS"),
    "PHP JIT named": script("php", *PHP_JIT, "-d", "opcache.jit_debug=16", "split.php", "SECONDS"),
    "Lua": script("lua5.4", "split.lua", "SECONDS"),
    "LuaJIT": script("luajit", "split.lua", "SECONDS"),
    "LuaJIT -joff": script("luajit", "-joff", "split.lua", "SECONDS"),
    "Tcl": script("tclsh", "split.tcl", "SECONDS"),
    "R": script("Rscript", "split.R", "SECONDS"),
    "Guile": script("guile", "--no-auto-compile", "split.scm"),
    "Guile interpreted": script("env", "GUILE_JIT_THRESHOLD=-1", "guile", "--no-auto-compile", "split.scm"),
    "Chez Scheme": script("chezscheme", "--script", "split.ss"),
    "Racket": script("racket", "split.rkt", "SECONDS"),
    "Common Lisp (SBCL)": script("sbcl", "--script", "split.lisp"),
    "Erlang": erlang(),
    "Erlang +JPperf": erlang("+JPperf", "true"),
    "Prolog": script("swipl", "split.pro"),
    "Forth": script("gforth", "split.fs"),
    "C# (Mono)": mono(),
    "C# (Mono) --jitmap": mono("--jitmap"),
    "awk (gawk)": script("gawk", "-f", "split.awk"),
    "bash": script("bash", "split.sh", "SECONDS"),
}


def begin_and_record(args, command, out, capture):
    """Records a program that runs already."""
    program = subprocess.Popen(command, cwd=out.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    try:
        return subprocess.run([args.plumb, "record", "-F", str(args.hertz), "--capture", capture, "-o", out, "--duration", "2",
                               "--tree", str(program.pid)], capture_output=True, text=True, errors="replace")
    finally:
        subprocess.run(["pkill", "-9", "-P", str(program.pid)])
        program.kill()
        program.wait()


def shares(args, out):
    """Of the samples with one of the three functions in their stack the share of each, their number, and that of all samples."""
    text = subprocess.run([args.plumb, "fold", out], capture_output=True, text=True, errors="replace", check=True).stdout
    counts, total, inside = dict.fromkeys(SHARES, 0), 0, 0
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        total += int(count)
        # As languages write it: split::sixty, main.sixty, _D5split5sixtyFkZk, camlSplit__sixty_1, SIXTY, __split_MOD_sixty ...
        there = [name for name in SHARES if re.search(rf"(^|[^A-Za-z]|[a-z_]*[_.:\d]){name}([^a-z]|$|F)", stack, re.I)]
        inside += int(count) * bool(there)
        for name in there:
            counts[name] += int(count)
    return {name: 100 * count / max(inside, 1) for name, count in counts.items()}, inside, total


def remedies(said):
    lines = [line.removeprefix("plumb:").strip() for line in said.splitlines()]
    return "; ".join(line.removeprefix("->").strip() for line in lines if line.startswith("->"))


def measure(args, command, way, folder):
    target, capture = way.rsplit(" ", 1)
    out = folder / "out.plumb"
    command = [str(word).replace("SECONDS", str(args.seconds + (3 if target == "-p" else 0))) for word in command]
    if target == "-p":
        done = begin_and_record(args, command, out, capture)
    else:
        done = subprocess.run([args.plumb, "record", "-F", str(args.hertz), "--capture", capture, "-o", out, "--", *command],
                              cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        return None, f"{way}: exit code {done.returncode}: {done.stderr.strip()[-200:]}"
    report = json.loads(subprocess.run([args.plumb, "report", "--json", out], capture_output=True, text=True, check=True).stdout)
    complete = report["reports"][0]["complete_percent"] if report["reports"] else None
    found, inside, samples = shares(args, out)
    off = max(abs(found[name] - share) for name, share in SHARES.items())
    chance = 300 * (0.6 * 0.4 / max(inside, 1)) ** 0.5
    named = inside > samples / 4
    return (complete, named, off, chance, samples, remedies(done.stderr)), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="|".join(PROGRAMS), help="programs, with | between them")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--hertz", type=int, default=999)
    parser.add_argument("--plumb", default=str(ROOT / "target/release/plumb"))
    args = parser.parse_args()
    args.plumb = os.path.abspath(args.plumb)
    print(f"Kernel {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {args.hertz} Hz.\n")
    print("| program | how | samples | complete, % | names | off, points (chance) | said |\n|---|---|--:|--:|---|--:|---|", flush=True)
    notes = []
    for name in args.only.split("|"):
        with tempfile.TemporaryDirectory(prefix="plumb-languages-") as folder:
            folder = Path(folder)
            try:
                command = PROGRAMS[name](folder)
            except Missing as missing:
                notes.append(f"{name}: {missing} is not installed or does not work.")
                continue
            for way in args.ways.split(","):
                row, error = measure(args, command, way, folder)
                if error:
                    notes.append(f"{name}, {error}")
                    continue
                complete, named, off, chance, samples, said = row
                shown = "" if complete is None else f"{complete:.1f}"
                print(f"| {name} | {way} | {samples} | {shown} | {'yes' if named else '**no**'} | "
                      f"{f'{off:.1f} ({chance:.1f})' if named else ''} | {said} |", flush=True)
    print("\n" + "\n".join(notes))


main()
