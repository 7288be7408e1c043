#!/usr/bin/env python3
"""Recordings of arm64 programs, made on an emulated arm64 machine and read here: names, lines and inlined calls of each sampled address beside
llvm-symbolizer, instructions of the hottest functions beside objdump. Prints Markdown.

    bench/arm/symbols.py [--kernel 6.12-arm64] [--kept DIRECTORY] [--functions 6]

Needs what `make test-arm` needs and llvm-symbolizer. PLUMB: of this machine [target/debug/plumb]; PLUMB_ARM64: of arm64, static
[target/aarch64-unknown-linux-gnu/debug/plumb]. --kept: recordings of an earlier run, or where to put those of this one. In --full-output
each difference is printed below the table.
"""
import argparse
import base64
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from protobuf import all_of, fields, packed  # noqa: E402

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PLUMB = os.environ.get("PLUMB", TARGET / "debug" / "plumb")
PLUMB_ARM64 = os.environ.get("PLUMB_ARM64", TARGET / "aarch64-unknown-linux-gnu" / "debug" / "plumb")
CLONES = re.compile(r"\.(cold|isra|part|constprop|lto_priv|llvm)\b.*")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **more)


def record(kernel, root, kept):
    """Boots, records each program, and puts the recordings into a directory."""
    env = dict(os.environ, ROOT=str(root), SCRIPT=str(ROOT / "bench/arm/symbols.guest.sh"))
    done = run(ROOT / "xtask/kernels/boot.sh", kernel, PLUMB_ARM64, env=env)
    name, lines = None, []
    for line in done.stdout.splitlines():
        if line.startswith("BEGIN "):
            name, lines = line.split()[1], []
        elif line.startswith("END ") and name:
            (kept / f"{name}.plumb").write_bytes(base64.b64decode("".join(lines)))
            name = None
        elif name:
            lines.append(line)
        elif line.startswith("FAILED"):
            print(f"not recorded: {line}", file=sys.stderr)


def messages(data, number):
    return [dict(collections.ChainMap(*({key: value} for key, value in fields(one)))) for one in all_of(data, number)]


def locations(recording):
    """Of each file: its addresses with the functions there, innermost first: (linkage name, file, line)."""
    with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
        done = run(PLUMB, "export", "--format", "pprof", "-o", file.name, recording)
        if done.returncode:
            sys.exit(done.stderr)
        data = gzip.decompress(Path(file.name).read_bytes())
    texts = [text.decode(errors="replace") for text in all_of(data, 6)]
    functions = {one[1]: one for one in messages(data, 5)}
    files = {one[1]: texts[one.get(5, 0)] for one in messages(data, 3)}
    found = collections.defaultdict(dict)
    for location in all_of(data, 4):
        one, chain = dict(fields(location)), []
        for line in all_of(location, 4):
            line = dict(fields(line))
            function = functions[line[1]]
            chain.append((texts[function.get(3, 0)], texts[function.get(4, 0)], line.get(2, 0)))
        if one.get(2) and one.get(3) and files[one[2]].startswith("/"):
            found[files[one[2]]][one[3]] = chain
    return found


def llvm(path, addresses):
    """What llvm-symbolizer says of each: linkage names, files and lines, innermost first."""
    asked = "".join(f"{address:#x}\n" for address in addresses)
    done = run("llvm-symbolizer", f"--obj={path}", "--no-demangle", "--output-style=JSON", "--inlines", input=asked)
    answers = {}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        chain = [(s["FunctionName"], s["FileName"], s["Line"]) for s in one.get("Symbol", [])]
        answers[int(one["Address"], 16)] = chain
    return answers


def plain(name):
    return CLONES.sub("", name.split("@")[0])


def difference(ours, theirs, symbols):
    """Names what differs, or returns None. A function without a linkage name in DWARF has its symbol's name with plumb."""
    theirs = [one for one in theirs if one[0] or one[2]]
    lines = [(line, os.path.basename(file)) for _, file, line in theirs]
    if any(line for line, _ in lines):
        if len(ours) != len(theirs):
            return "number of inlined calls"
        if [line for _, _, line in ours] != [line for line, _ in lines]:
            return "line"
        if [os.path.basename(file) for _, file, line in ours if line] != [file for line, file in lines if line]:
            return "file"
    elif any(line for _, _, line in ours):
        return "lines that it has not"
    for (our, _, _), (their, _, _) in zip(ours, theirs):
        one, other = plain(our), plain(their)
        if one != other and other and not (one.startswith(("_Z", "_R")) and other in one) and other not in symbols.get(one, ()):
            return "name"
    return None


def symbols_of(path):
    """Other names of each symbol: those at the same address."""
    at, names = collections.defaultdict(set), {}
    for option in ("-n", "-nD"):
        for line in run("aarch64-linux-gnu-nm", option, path).stdout.splitlines():
            parts = line.split()
            if len(parts) == 3:
                at[parts[0]].add(plain(parts[2]))
    for same in at.values():
        for name in same:
            names.setdefault(name, set()).update(same)
    return names


def compare_names(recording, root, told):
    row = collections.Counter()
    for path, addresses in locations(recording).items():
        file = root / path.lstrip("/")
        if not file.exists():
            row["elsewhere"] += len(addresses)
            continue
        theirs, symbols = llvm(file, addresses), symbols_of(file)
        for address, chain in addresses.items():
            row["addresses"] += 1
            row["lined"] += any(line for _, _, line in chain)
            row["inlined"] += max(len(chain) - 1, 0)
            theirs_here = theirs.get(address, [])
            if not theirs_here or not theirs_here[0][0]:
                # Functions of stripped files have no name, but where they begin.
                row["only ours"] += bool(chain and "+0x" not in chain[0][0] and not chain[0][0].startswith(("[", "near ")))
                continue
            if chain and chain[0][0].endswith("@plt") and theirs_here[0][0] == "_init":
                row["stubs"] += 1
                continue
            why = difference(chain, theirs_here, symbols)
            row["different"] += bool(why)
            if why:
                told.append(f"{recording.stem} {path} {address:#x} {why}\n    plumb {chain}\n    llvm  {theirs_here}")
    return row


def squeezed(text):
    """An instruction without comments, names, spaces and the prefix that objdump has not: `b.hi 0x8e8`, `b.hi\t8e8 <f+0x8>  // b.pmore`."""
    text = re.sub(r"<[^>]*>", "", text.split("//")[0].split(" ; ")[0])
    return re.sub(r"\s+", "", re.sub(r"\b0x0*(?=[0-9a-f])", "", text)).replace("#", "")


def with_address(one):
    """The text with the target's address in place of its name: of stubs that begin with a landing pad, objdump 2.40 has the names of others."""
    name = one["target_name"]
    return one["text"].replace(name, one["target"]) if name and one["target"] else one["text"]


def hottest(recording, root, count):
    """File and address of the functions with the most time of their own."""
    done = run(PLUMB, "report", "--json", "--no-children", "--symfs", root, recording)
    rows = json.loads(done.stdout)["reports"][0]["rows"] if done.returncode == 0 else []
    rows = [row for row in rows if row["kind"] == "user" and not row["inlined"] and row["dso"].startswith("/")]
    return [(row["dso"], row["sym"]) for row in rows[:count]]


def compare_code(recording, root, count, told):
    """Instructions of the hottest functions beside objdump's."""
    row = collections.Counter()
    for path, name in hottest(recording, root, count):
        file = root / path.lstrip("/")
        done = run(PLUMB, "annotate", "--symfs", root, "--json", "--asm", recording, f"{name}@{os.path.basename(path)}")
        if done.returncode or not file.exists():
            row["functions not annotated"] += 1
            told.append(f"{recording.stem} {name}@{path}: {done.stderr.strip()}")
            continue
        ours = {int(one["address"], 16): with_address(one) for one in json.loads(done.stdout)["instructions"]}
        if not ours:
            continue
        span = [f"--start-address={min(ours):#x}", f"--stop-address={max(ours) + 4:#x}"]
        theirs = run("aarch64-linux-gnu-objdump", "-d", "-z", "--no-show-raw-insn", *span, file).stdout
        for address, text in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", theirs, re.M):
            address = int(address, 16)
            if address not in ours:
                continue
            row["instructions"] += 1
            if squeezed(ours[address]) != squeezed(text):
                row["instructions different"] += 1
                told.append(f"{recording.stem} {path} {address:#x} instruction\n    plumb   {ours[address]}\n    objdump {text}")
    return row


def line(name, row):
    cells = [row[key] for key in ("addresses", "lined", "inlined", "different", "instructions", "instructions different")]
    return "| " + " | ".join([name, *map(str, cells)]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="6.12-arm64")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--functions", type=int, default=6)
    parser.add_argument("--full-output", action="store_true")
    args = parser.parse_args()
    made = run(ROOT / "bench/arm/root.sh")
    if made.returncode:
        sys.exit(made.stderr)
    root = Path(made.stdout.strip())
    kept = args.kept or Path(tempfile.mkdtemp())
    kept.mkdir(exist_ok=True)
    if not list(kept.glob("*.plumb")):
        record(args.kernel, root, kept)
    told, total = [], collections.Counter()
    print("| program | addresses | with lines | inlined calls | different | instructions | different |\n|---|---|---|---|---|---|---|")
    for recording in sorted(kept.glob("*.plumb")):
        row = compare_names(recording, root, told) + compare_code(recording, root, args.functions, told)
        total.update(row)
        print(line(recording.stem, row), flush=True)
    print(line("all", total))
    print(f"\nNamed by plumb alone: {total['only ours']}; in stubs of imported functions, which llvm-symbolizer calls _init: {total['stubs']}; in files that "
          f"are not here: {total['elsewhere']}; functions that could not be annotated: {total['functions not annotated']}.")
    if args.full_output:
        print("\n" + "\n".join(told))


if __name__ == "__main__":
    main()
