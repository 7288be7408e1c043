#!/usr/bin/env python3
"""Pyroscope's own `profilecli` against `plumb serve`: each of its commands that ask a server, and what `go build -pgo` makes of the answers.

  profilecli.py --plumb PLUMB --profilecli PROGRAM

A Go program writes its own profile by runtime/pprof; `profilecli upload` sends it; each query is held against that file: values of all stacks to the
nanosecond. The profile of `query go-pgo` has to make Go's compiler inline the same calls, and to have the same weights of calls in it, as the program's own. Exit status 1
if anything differs. Needs Go.

profilecli is built from Pyroscope's repository: CGO_ENABLED=0 go build -tags netgo ./cmd/profilecli
"""
import argparse, gzip, json, os, re, shutil, subprocess, sys, tempfile
from collections import Counter
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..'), os.path.join(HERE, '../store')]
from protobuf import fields, packed
from server import Server

SOURCE = os.path.join(HERE, '../../crates/cli/tests/programs/pgo')

def numbers(values):
    for value in values:
        yield from [value] if isinstance(value, int) else packed(value)

def stacks(path):
    """Nanoseconds of CPU by stack of (function, line), innermost first."""
    data = open(path, 'rb').read()
    message = list(fields(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data))
    of = lambda number: [value for key, value in message if key == number]
    texts = [text.decode() for text in of(6)]
    names = {one[1]: texts[one[2]] for one in (dict(fields(row)) for row in of(5))}
    places = {}
    for row in of(4):
        content = list(fields(row))
        places[dict(content)[1]] = [(names[line[1]], line.get(2, 0)) for line in (dict(fields(value)) for key, value in content if key == 4)]
    kinds = [texts[dict(fields(row)).get(1, 0)] for row in of(1)]
    out = Counter()
    for row in of(2):
        content = list(fields(row))
        ids, values = (list(numbers(value for key, value in content if key == number)) for number in (1, 2))
        out[tuple(line for id in ids for line in places[id])] += values[kinds.index('cpu')]
    return out

class Checks:
    failed = 0
    def say(self, good, what):
        self.failed += not good
        print(f'{"ok  " if good else "FAIL"} {what}', flush=True)

def weights(folder, profile):
    """Weights of calls as Go's compiler reads them."""
    subprocess.run(['go', 'tool', 'preprofile', '-i', profile, '-o', 'edges'], cwd=folder, check=True)
    lines = open(os.path.join(folder, 'edges')).read().splitlines()[1:]
    return {(lines[at], lines[at + 1], lines[at + 2].split()[0]): int(lines[at + 2].split()[1]) for at in range(0, len(lines), 3)}

def inlined(folder, profile):
    """Calls that are inlined only since the profile says that they are hot."""
    built = subprocess.run(['go', 'build', f'-pgo={profile}', '-gcflags=-d=pgodebug=1', '-o', 'optimized', '.'], cwd=folder, check=True, capture_output=True, text=True)
    return sorted(set(re.findall(r'hot-budget check allows inlining for (.*)', built.stderr)))

def run(options, folder):
    check = Checks()
    for name in os.listdir(SOURCE):
        shutil.copy(os.path.join(SOURCE, name), folder)
    subprocess.run(['go', 'build', '-pgo=off', '-o', 'plain', '.'], cwd=folder, check=True)
    subprocess.run(['./plain', 'own.pprof'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    server = Server(os.path.abspath(options.plumb), os.path.join(folder, 'store'))
    def cli(*arguments):
        done = subprocess.run([os.path.abspath(options.profilecli), *arguments, f'--url=http://127.0.0.1:{server.port}'], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            print(f'     profilecli {" ".join(arguments)}: {done.stderr.strip().splitlines()[-1]}')
        return done
    try:
        queries(check, cli, folder)
        pgo(check, cli, folder)
    finally:
        server.stop()
    return check.failed

def queries(check, cli, folder):
    own = stacks(os.path.join(folder, 'own.pprof'))
    total = sum(own.values())
    selected = '--query={service_name="hot"}'
    check.say(cli('ready').returncode == 0, 'ready')
    check.say(cli('upload', '--extra-labels=service_name=hot', '--extra-labels=region=eu', 'own.pprof').returncode == 0, f'upload: {len(own)} stacks, {total} ns')
    for command in ['profile', 'merge']:
        done = cli('query', command, selected, f'--output=pprof={command}.pprof', '-f')
        got = stacks(os.path.join(folder, f'{command}.pprof')) if done.returncode == 0 else {}
        check.say(got == own, f'query {command} --output=pprof: {len(got)} stacks, {sum(got.values())} ns')
    text = cli('query', 'profile', selected).stdout
    values = re.findall(r'^ +(\d+): ', text.split('Locations')[0], re.M)
    check.say(sum(map(int, values)) == total, f'query profile, console: {sum(map(int, values))} ns')
    by_name = Counter()
    for stack, value in own.items():
        by_name[tuple(name for name, _ in stack)] += value
    done = cli('query', 'profile', selected, '--function-names-only', '--output=pprof=names.pprof', '-f')
    got = Counter()
    for stack, value in (stacks(os.path.join(folder, 'names.pprof')) if done.returncode == 0 else {}).items():
        got[tuple(name for name, _ in stack)] += value
    check.say(got == by_name, f'query profile --function-names-only: {len(got)} stacks of names, {sum(got.values())} ns')
    done = cli('query', 'profile', selected, '--stacktrace-selector=runtime.main', '--stacktrace-selector=main.main', '--output=pprof=part.pprof', '-f')
    part = {stack: value for stack, value in own.items() if [name for name, _ in stack][-2:] == ['main.main', 'runtime.main']}
    got = stacks(os.path.join(folder, 'part.pprof')) if done.returncode == 0 else {}
    check.say(got == part, f'query profile --stacktrace-selector: {len(got)} stacks, {sum(got.values())} ns')
    sets = json.loads(cli('query', 'series', selected, '--label-names=service_name', '--label-names=region', '--output=json').stdout or '{}')
    check.say('"hot"' in json.dumps(sets) and '"eu"' in json.dumps(sets), f'query series: {json.dumps(sets)[:160]}')
    table = cli('query', 'label-values-cardinality', selected).stdout
    rows = dict(re.findall(r'\| (\S+) +\| +(\d+) \|', table))
    check.say((rows.get('region'), rows.get('__profile_type__')) == ('1', '2'), f'query label-values-cardinality: {rows}')
    top = json.loads(cli('query', 'top', selected, '--output=json').stdout or '{"series": []}')['series']
    check.say([one['total'] for one in top] == [total], f'query top: {top}')

def pgo(check, cli, folder):
    period = 10_000_000
    cli('query', 'go-pgo', '--query={service_name="hot"}', '-f')
    reduced, own = weights(folder, 'default.pgo'), weights(folder, 'own.pprof')
    least = sum(own.values()) / 100
    hot = {call: weight for call, weight in own.items() if weight >= least and call[0].startswith('main.')}
    same = [call for call, weight in hot.items() if reduced.get(call) == weight * period]
    check.say(len(same) == len(hot) > 0, f'query go-pgo: {len(same)} of {len(hot)} calls of 1% and more have the weight of the program\'s own profile')
    for call, weight in sorted(hot.items(), key=lambda one: -one[1])[:6]:
        print(f'       {" ".join(call)}: {weight * period} ns, {reduced.get(call)} ns')
    theirs, ours = inlined(folder, 'own.pprof'), inlined(folder, 'default.pgo')
    check.say(ours == theirs and any('main.mix' in one for one in ours), f'go build -pgo=default.pgo: {len(ours)} calls inlined for being hot, with its own profile {len(theirs)}')
    [print(f'       {one}') for one in ours[:6]]
    built = subprocess.run(['go', 'version', '-m', 'optimized'], cwd=folder, capture_output=True, text=True).stdout
    check.say('-pgo=' in built, 'go version -m: ' + ' '.join(line.split()[-1].replace(folder, '') for line in built.splitlines() if '-pgo' in line))

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--profilecli', default='profilecli')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raise SystemExit(1 if run(options, folder) else 0)

main()
