#!/usr/bin/env python3
"""Does the adjusted column of `plumb annotate` blame the instruction that is slow?

Three kinds of programs, each with one place that is known to take the time:

- skid.c: six loops in assembly (load, load with later use, lock, sqrt, div, unpredictable branch), as they are;
- variants: the same made anew for each seed, with other paddings, registers, distances, forms of the instruction and places in
  the loop, among them loads within compares and behind joins;
- loops.c: ordinary loops as gcc makes them, at several levels of optimisation.

Each is recorded by plumb, annotated, and the share of the function's samples on the slow place is taken from both columns. What a loop
of cheap instructions beside the slow one takes itself is no error of either column, so that 100 % is not to be had; of the
divisions it is a quarter. Of the branch no instruction is to blame: there what counts is that no single one is, and how much
is told to be of the block only.

    bench/skid/run.py [--seeds 20] [--rounds 5] [--seconds 1.0] [--plumb target/release/plumb]
"""
import argparse
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HERTZ = "4999"
SKID = ["load", "loaduse", "lock", "sqrt", "div", "branch"]
FUNCTION = {"sqrt": "root", "div": "divide"}
LOOPS = ["list", "search", "indirect", "modulo", "norm", "quotients", "count"]
LEVELS = ["-O1", "-O2", "-O3", "-O3 -march=native"]


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **more)


def annotated(plumb, folder, program, arguments, function):
    """What the program printed, and the function's annotation."""
    recording = folder / "recording.plumb"
    done = run([plumb, "record", "-q", "-F", HERTZ, "-o", recording, "--", program, *arguments])
    if done.returncode != 0:
        sys.exit(f"{program} {arguments}: {done.stderr}")
    listing = run([plumb, "annotate", recording, function, "--json"])
    if listing.returncode != 0:
        sys.exit(f"{program} {arguments}: {listing.stderr}")
    return done.stdout, json.loads(listing.stdout)


def shares(listing, culprits):
    """Shares of the function on some of its instructions: raw, adjusted, and the part of that in line behind them."""
    rows = [row for row in listing["instructions"] if int(row["address"], 16) in culprits]
    keys = ("percent_of_function", "adjusted_percent_of_function", "behind_percent_of_function")
    return tuple(sum(row[key] for row in rows) for key in keys)


def saved(program, without, kind):
    """How much of a round's time a nop in the place of the slow instruction saves, in percent: the best of three runs each."""
    best = lambda program: min(float(run([program, kind, "0.3"]).stdout.split()[3]) for _ in range(3))
    return max(0.0, 100.0 * (1.0 - best(without) / best(program)))


# Variants.

CHEAP = ["add $1,%{r}", "sub $3,%{r}", "xor %{r},%{s}", "mov %{r},%{s}", "lea 8(%{r}),%{s}", "nop", "and $-1,%{r}", "or $0,%{r}",
         "shr $1,%{r}", "inc %{r}", "cmp %{r},%{s}", "test %{r},%{s}", "movzbl %{r}b,%{s}d"]


def padding(rng, count):
    lines = []
    for _ in range(count):
        r, s = rng.sample(["r8", "r9", "r10", "r11"], 2)
        lines.append(rng.choice(CHEAP).format(r=r, s=s))
    return lines


def variant(kind, seed):
    """A loop in assembly with its slow instruction at label 7. %0 counts down, %1 is a cell of the ring, r15 is 0."""
    rng = random.Random(f"{kind} {seed}")
    reg = rng.choice(["rax", "rcx", "rdx", "rsi", "rdi", "r12", "r13", "r14"])
    before, after = padding(rng, rng.randint(0, 12)), padding(rng, rng.randint(0, 16))
    setup, end = [], []
    if kind in ("load", "loaduse"):
        setup = [f"mov %1,%{reg}"]
        end = [f"mov %{reg},%1"]
        slow = [rng.choice([f"mov (%{reg}),%{reg}", f"mov (%{reg},%r15),%{reg}", f"mov 0(%{reg},%r15,8),%{reg}"])]
        if kind == "loaduse":
            use = rng.choice([[f"test %{reg},%{reg}", "je 8f"], [f"add %{reg},%r8"], [f"cmp $0,%{reg}", "je 8f"], [f"lea 1(%{reg}),%r9"]])
            slow += padding(rng, rng.randint(0, 6)) + use
    elif kind == "cmpload":
        # An index that is cheap to have, random, and not waited for: the load in the compare misses.
        setup = ["mov %1,%rbx", "mov state(%rip),%rax"]
        end = ["mov %rax,state(%rip)"]
        before += ["imul $1103515245,%rax,%rax", "add $12345,%rax", "mov %rax,%rdx", "shr $20,%rdx", "and $0x1fffff,%rdx",
                   "shl $6,%rdx"]
        compare = rng.choice(["cmp %r15,(%rbx,%rdx)", "cmpq $0,(%rbx,%rdx)", "cmp (%rbx,%rdx),%r15"])
        slow = [compare, "je 8f"]
    elif kind == "joinload":
        # The load is at the end of one arm of a branch, the other arm is cheap and not taken.
        setup = [f"mov %1,%{reg}"]
        end = [f"mov %{reg},%1"]
        slow = ["7LABEL", f"mov (%{reg}),%{reg}", "jmp 5f", "6:"] + padding(rng, 3) + ["5:"]
        before += ["test %r15,%r15", "jnz 6f"] + padding(rng, rng.randint(0, 4))
    elif kind == "lastload":
        # The load is the last of the loop but for the jump.
        setup = [f"mov %1,%{reg}"]
        end = [f"mov %{reg},%1"]
        return setup, ["1:", *before, "dec %0", "7:", f"mov (%{reg}),%{reg}", "jnz 1b"], end
    elif kind == "lock":
        slow = [rng.choice(["lock addq $1,scratch(%rip)", "lock incq scratch(%rip)", f"lock xadd %{reg},scratch(%rip)", f"xchg %{reg},scratch(%rip)",
                            f"lock cmpxchg %r8,scratch(%rip)"])]
    elif kind == "sqrt":
        slow = [rng.choice(["sqrtsd %xmm0,%xmm0", "sqrtpd %xmm0,%xmm0", "sqrtss %xmm0,%xmm0"])]
        setup = ["mov $0x4000000000000000,%rax", "movq %rax,%xmm0"]
    elif kind == "div":
        wide = rng.random() < 0.5
        before += ["mov $0,%edx" if wide else "xor %edx,%edx", "mov $1000000007,%eax"]
        setup = ["mov $7,%ecx"]
        slow = [rng.choice(["div %rcx", "div %ecx", "idiv %rcx", "idiv %ecx"])]
    else:
        sys.exit(f"no variant is called {kind}")
    slow = ["7:"] + slow if slow[0] != "7LABEL" else ["7:"] + slow[1:]
    return setup, ["1:", *before, *slow, *after, "dec %0", "jnz 1b"], end


VARIANTS = ["load", "loaduse", "cmpload", "joinload", "lastload", "lock", "sqrt", "div"]
MAIN = (HERE / "skid.c").read_text()


def variant_source(kind, seed):
    setup, loop, end = variant(kind, seed)
    # The line behind the label 7 is the slow instruction.
    quoted = [line.replace("%", "%%").replace("%%0", "%0").replace("%%1", "%1") for line in setup + loop + ["8:"] + end]
    slow = quoted.index("7:") + 1
    lines = [f'SLOW("{line}") "\\n"' if at == slow else f'"{line}\\n"' for at, line in enumerate(quoted)]
    text = "\n        ".join(lines)
    body = (f'uint64_t scratch, state = 88172645463325252ull;\n\nLOOP void variant(uint64_t n, void **start)\n{{\n    static void **at;\n    void **cell = at ? at : start;\n'
            f'    asm volatile("xor %%r15d,%%r15d\\n" PLACES\n        {text}\n        : "+r"(n), "+m"(cell) :: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",\n'
            f'        "r11", "r12", "r13", "r14", "r15", "xmm0", "memory", "cc");\n    at = cell;\n}}\n')
    head, main = MAIN.split("int main(")
    head = head[:head.index("LOOP void load(")]
    main = re.sub(r'\{"load", load\}.*\{"branch", branch\},', '{"load", variant},', main, flags=re.S)
    return head + body + "\nint main(" + main


# Measuring.

class Table:
    def __init__(self):
        self.rows = {}

    def add(self, name, shares, saved=None):
        """Raw, adjusted, of it in line behind; and what a nop in its place saves."""
        self.rows.setdefault(name, []).append((*shares, saved))

    def print(self, title):
        print(f"\n## {title}\n")
        print("| slow | measured | raw: median (min to max) | adjusted | of that in line behind it | a nop in its place saves |")
        print("|---|---|---|---|---|---|")
        for name, rows in self.rows.items():
            columns = [[row[at] for row in rows if row[at] is not None] for at in range(4)]
            print(f"| {name} | {len(rows)} | {' | '.join(spread(column) for column in columns)} |")


def spread(values):
    return f"{statistics.median(values):.1f} % ({min(values):.1f} to {max(values):.1f})" if values else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", default="1.0")
    parser.add_argument("--plumb", default=str(ROOT / "target/release/plumb"))
    parser.add_argument("--keep", help="a folder for the programs")
    options = parser.parse_args()
    plumb = Path(options.plumb).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary)
        folder.mkdir(exist_ok=True)
        fixed(plumb, folder, options)
        variants(plumb, folder, options)
        loops(plumb, folder, options)
    cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    print(f"\n{cpu}, {os.cpu_count()} processors, Linux {platform.release()}, {HERTZ} Hz, {options.seconds} s each")


def fixed(plumb, folder, options):
    program, without = folder / "skid", folder / "without"
    for output, more in [(program, []), (without, ["-DWITHOUT"])]:
        run(["gcc", "-O2", "-g", "-no-pie", *more, HERE / "skid.c", "-o", output], check=True)
    table, block = Table(), []
    for _ in range(options.rounds):
        for kind in SKID:
            printed, listing = annotated(plumb, folder, program, [kind, options.seconds], FUNCTION.get(kind, kind))
            culprit = int(printed.split()[1], 16)
            if kind == "branch":
                block.append(of_branch(listing, culprit))
            else:
                table.add(kind, shares(listing, {culprit}), saved(program, without, kind))
    table.print("The six loops of skid.c")
    print("\nThe unpredictable branch:\n\n| share of the function | median (min to max) |\n|---|---|")
    for at, name in enumerate(["raw, on the branch", "adjusted, on the branch", "raw, in the block before the branch and the two behind it",
                               "adjusted, in these", "adjusted, told to be of the block behind a jump", "raw, most on one instruction",
                               "adjusted, most on one instruction"]):
        print(f"| {name} | {spread([row[at] for row in block])} |")
    print(f"| a nop in its place saves | {spread([saved(program, without, 'branch') for _ in range(3)])} |")


def of_branch(listing, culprit):
    """Shares on the branch itself, in the block that it ends and those that it leads to, and on the worst instruction."""
    rows = listing["instructions"]
    at = next(i for i, row in enumerate(rows) if int(row["address"], 16) == culprit)
    blocks = {rows[at]["block"], rows[at + 1]["block"], rows[rows[at]["jump_to"]]["block"]}
    raw, adjusted, _ = shares(listing, {culprit})
    inside = [block for index, block in enumerate(listing["blocks"]) if index in blocks]
    return (raw, adjusted, sum(b["percent_of_function"] for b in inside), sum(b["adjusted_percent_of_function"] for b in inside),
            sum(b["after_branch_percent_of_function"] for b in inside), max(row["percent_of_function"] for row in rows),
            max(row["adjusted_percent_of_function"] for row in rows))


def variants(plumb, folder, options):
    table = Table()
    for kind in VARIANTS:
        for seed in range(options.seeds):
            source, program = folder / f"{kind}-{seed}.c", folder / f"{kind}-{seed}"
            source.write_text(variant_source(kind, seed))
            without = folder / f"{kind}-{seed}-without"
            for output, more in [(program, []), (without, ["-DWITHOUT"])]:
                run(["gcc", "-O2", "-g", "-no-pie", *more, source, "-o", output], check=True)
            printed, listing = annotated(plumb, folder, program, ["load", options.seconds], "variant")
            table.add(kind, shares(listing, {int(printed.split()[1], 16)}), saved(program, without, "load"))
    table.print(f"Variants of {options.seeds} seeds each")


def loops(plumb, folder, options):
    source = (HERE / "loops.c").read_text().splitlines()
    table = Table()
    for level in LEVELS:
        program = folder / "loops"
        run(["gcc", *level.split(), "-g", HERE / "loops.c", "-o", program, "-lm"], check=True)
        for kind in LOOPS:
            begin = next(i for i, line in enumerate(source) if re.match(rf"LOOP .* {kind}\(", line))
            slow = next(i for i in range(begin, len(source)) if "SLOW" in source[i]) + 1
            for _ in range(max(1, options.rounds // len(LEVELS))):
                _, listing = annotated(plumb, folder, program, [kind, options.seconds], kind)
                table.add(kind, shares(listing, culprits_of(listing, kind, slow)))
    table.print("Loops as gcc makes them, -O1 to -O3 -march=native: the instruction")


def culprits_of(listing, kind, slow):
    """The slow instructions of a loop that gcc made: by their kind where there is one, else the loads of the slow line."""
    kinds = {"modulo": ["division"], "norm": ["square-root"], "quotients": ["division"], "count": ["lock"]}.get(kind)
    found = set()
    for row in listing["instructions"]:
        on_line = row["places"] and row["places"][0]["line"] == slow
        if kinds and any(word in row["class"] for word in kinds) or not kinds and on_line and "load" in row["class"]:
            found.add(int(row["address"], 16))
    if not found:
        sys.exit(f"{kind}: no slow instruction found")
    return found


if __name__ == "__main__":
    main()
