#!/usr/bin/env python3
"""Are the stacks of programs without unwind tables true? Programs are made at random whose chains of calls are known: each function calls the
next directly, through a pointer, by a jump, from a case of a switch, with a frame of some size or one of a size that is only known at run time, or
before a call that does not return. All are built without tables and without frame pointers, and recorded by plumb and by perf with copies of 64 KiB.

`right`: samples whose stack is the chain, and all of it. `false`: samples whose stack is told to be whole and is not the chain. `cut`: samples whose
stack is told to be cut. perf does not tell; its samples are `cut` where `main` is missing. `scanned`: what plumb says of callers found by a scan.

    bench/programs/without_tables.py [--programs 3] [--plumb target/release/plumb]
"""
import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

OPTIONS = ['-fno-asynchronous-unwind-tables', '-fno-unwind-tables', '-fomit-frame-pointer', '-fno-inline', '-fno-ipa-cp', '-fno-ipa-sra', '-fno-ipa-icf', '-w']
BUILDS = [('gcc', ['-O0']), ('gcc', ['-O1']), ('gcc', ['-O2']), ('gcc', ['-O3']), ('gcc', ['-Os']), ('gcc', ['-O2', '-fcf-protection']), ('gcc', ['-O2', '-static']), ('clang', ['-O2'])]
HEAD = '''#include <stdio.h>
#include <stdlib.h>
volatile unsigned long sink;
#define N __attribute__((noinline, noclone))
N void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
N __attribute__((noreturn)) void fail(int n) { printf("%d\\n", n); exit(1); }
'''
# How a function calls the next one: %s. In all of them something is left to do, but for the last.
WAYS = [
    '{ %s(n); sink++; }',
    '{ void (*volatile call)(long) = (void (*)(long))%s; call(n); sink++; }',
    '{ if (n < 0) fail(n); %s(n); sink += 3; }',
    '{ char room[SIZE]; asm volatile("" :: "r"(room) : "memory"); %s(n); asm volatile("" :: "r"(room) : "memory"); }',
    '{ char room[(n & 7) * 40 + 16]; asm volatile("" :: "r"(room) : "memory"); %s(n); asm volatile("" :: "r"(room) : "memory"); }',
    '{ switch (n & 15) { case 0: sink += 2; break; case 1: %s(n); sink += 7; break; case 2: sink *= 3; break; case 3: sink += 11; break; case 4: sink ^= 9; break; default: sink--; } }',
    '{ long a = sink, b = a + 1, c = a + 2, d = a + 3, e = a + 4; %s(n); sink += a * b + c * d + e; }',
    '{ if (n & 1) { %s(n); sink += 3; } else { fail(2); } }',
    '{ if (!n) { sink++; return; } for (int i = 0; i < 1; i++) { %s(n); sink += i; } }',
]
JUMP = '{ sink += n; %s(n); }'


def source(seed):
    """The program, and for each function that calls `spin` who has called it, from main on."""
    numbers = random.Random(seed)
    text, chains, calls = HEAD, {}, []
    for chain in range(6):
        below = 'spin'
        names = []
        for index in range(numbers.randint(2, 9)):
            name = f'c{chain}_f{index}'
            jumps = index > 0 and numbers.random() < 0.12
            way = JUMP if jumps else numbers.choice(WAYS)
            text += f'N void {name}(long n) {way.replace("SIZE", str(numbers.choice([24, 333, 5000]))) % below}\n'
            # Who jumps is not on the stack, where compilers make jumps of it.
            names.append((name, jumps))
            below = name
        chains[names[0][0]] = list(reversed(names))
        calls.append(below)
    body = ' '.join(f'{name}(1000001 + 16 * (i % 2));' for name in calls)
    return text + f'int main(void) {{ for (int i = 0; i < 40; i++) {{ {body} }} printf("%lu\\n", sink); return 0; }}\n', chains


def judge(stacks, chains, has_jumps, is_cut):
    """How many samples are right, false and cut."""
    found = collections.Counter()
    wrong = collections.Counter()
    for stack, count in stacks.items():
        names = [name.split('.')[0] for name in stack]
        if 'spin' not in names:
            continue
        if is_cut(stack):
            found['cut'] += count
            continue
        names = names[:names.index('spin')]
        last = next((name for name in reversed(names) if name in chains), None)
        expected = [name for name, jumps in chains.get(last, []) if not (jumps and has_jumps)]
        start = names.index('main') if 'main' in names else None
        is_right = start is not None and names[start + 1:] == expected and names[0] == '_start'
        found['right' if is_right else 'false'] += count
        wrong[' '.join(names)] += 0 if is_right else count
    return found, wrong.most_common(1)[0][0] if +wrong else ''


def plumb_stacks(plumb, capture, program, folder):
    out = os.path.join(folder, 'x.plumb')
    said = subprocess.run([plumb, 'record', '--user-only', '--capture', capture, '-o', out, '--', program], capture_output=True, text=True, timeout=120).stderr
    scanned = re.search(r'([\d.<]+%) with a caller by stack scan', said)
    stacks = collections.Counter()
    for line in subprocess.run([plumb, 'fold', out], capture_output=True, text=True, check=True).stdout.splitlines():
        stack, _, count = line.rpartition(' ')
        stacks[tuple(stack.split(';')[1:])] += int(count)
    return stacks, scanned.group(1) if scanned else ''


def perf_stacks(program, folder):
    out = os.path.join(folder, 'x.data')
    subprocess.run(['perf', 'record', '-q', '-e', 'cpu-clock:u', '-F', '499', '--call-graph', 'dwarf,65528', '-o', out, '--', program], capture_output=True, timeout=120)
    text = subprocess.run(['perf', 'script', '-i', out, '-F', 'ip,sym', '--no-inline'], capture_output=True, text=True, timeout=300).stdout
    stacks = collections.Counter()
    for sample in text.split('\n\n'):
        frames = [line.split()[1] for line in sample.splitlines() if len(line.split()) > 1]
        if frames:
            stacks[tuple(reversed(frames))] += 1
    return stacks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--programs', type=int, default=3, help='so many of each build')
    parser.add_argument('--plumb', default='target/release/plumb')
    options = parser.parse_args()
    print('| built with | program | recorder | samples | right % | false % | cut % | scanned |\n|---|---|---|---|---|---|---|---|')
    sums = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        for compiler, flags in BUILDS:
            if not shutil.which(compiler):
                print(f'{compiler} is not here: left out', file=sys.stderr)
                continue
            for seed in range(options.programs):
                text, chains = source(seed)
                path, program = os.path.join(folder, 'x.c'), os.path.join(folder, 'x')
                with open(path, 'w') as file:
                    file.write(text)
                known = OPTIONS if compiler == 'gcc' else [option for option in OPTIONS if 'ipa' not in option]
                subprocess.run([compiler, *flags, *known, '-o', program, path], check=True, capture_output=True)
                has_jumps = flags[0] not in ['-O0', '-O1']
                for recorder in ['plumb perf', 'plumb bpf', 'perf dwarf']:
                    if recorder == 'perf dwarf':
                        stacks, scanned = perf_stacks(program, folder), ''
                        is_cut = lambda stack: 'main' not in stack
                    else:
                        stacks, scanned = plumb_stacks(options.plumb, recorder.split()[1], program, folder)
                        is_cut = lambda stack: stack[0].startswith('[')
                    found, wrong = judge(stacks, chains, has_jumps, is_cut)
                    sums[recorder] += found
                    share = lambda what: f'{100 * found[what] / max(sum(found.values()), 1):.1f}'
                    print(f'| {compiler} {" ".join(flags)} | {seed} | {recorder} | {sum(found.values())} | {share("right")} | {share("false")} | {share("cut")} | {scanned} |', flush=True)
                    if wrong and 'plumb' in recorder:
                        print(f'false, such as: {wrong}', file=sys.stderr)
    for recorder, found in sums.items():
        share = lambda what: f'{100 * found[what] / max(sum(found.values()), 1):.1f}'
        print(f'| all | | {recorder} | {sum(found.values())} | {share("right")} | {share("false")} | {share("cut")} | |')


if __name__ == '__main__':
    main()
