#!/usr/bin/env python3
"""How much of the time of short-lived programs has names in the server: of one whose file stays, of one whose file goes with each run, and of one in a
container's file system that goes with it.

    gone.py --plumb target/release/plumb [--runs 8] [--every 5]

Each runs for 0.3 s of processor time. Root, for BPF and mount namespaces.
"""
import argparse, json, os, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'store'))
from server import Server

SOURCE = '''
#include <time.h>
__attribute__((noinline)) void NAME(void) {
    struct timespec now;
    do for (volatile long i = 0; i < 1000000; i++) ;
    while (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), now.tv_sec * 1000 + now.tv_nsec / 1000000 < 300);
}
int main(void) { NAME(); return 0; }
'''
KINDS = {
    'stays': 'exec {made}/stays',
    'goes': 'mkdir {own} && cp {made}/goes {own}/goes && {own}/goes; rm -rf {own}',
    'container': 'mkdir {own} && exec unshare -m sh -c "mount -t tmpfs none {own} && cp {made}/container {own}/container && exec {own}/container"',
}

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plumb', required=True)
    parser.add_argument('--runs', type=int, default=8)
    parser.add_argument('--every', type=float, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            source = os.path.join(folder, kind + '.c')
            open(source, 'w').write(SOURCE.replace('NAME', 'spin_that_' + kind))
            subprocess.run(['cc', '-O1', '-Wl,--build-id', '-o', os.path.join(folder, kind), source], check=True)
        server = Server(args.plumb, os.path.join(folder, 'store'))
        url = f'http://127.0.0.1:{server.port}'
        agent = subprocess.Popen([args.plumb, 'agent', '--to', url, '--spool', os.path.join(folder, 'spool')],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(5)
        for run in range(args.runs):
            for kind, script in KINDS.items():
                own = os.path.join(folder, f'{kind}-{run}')
                subprocess.run(['sh', '-c', script.format(made=folder, own=own)], check=True)
                shutil.rmtree(own, ignore_errors=True)
            time.sleep(args.every)
        # Until what the server asks for has come.
        time.sleep(45)
        agent.send_signal(signal.SIGTERM)
        agent.wait()
        print('| file | seconds that ran | seconds stored | with names |\n|---|--:|--:|--:|')
        for kind in KINDS:
            done = subprocess.run([args.plumb, 'query', '--to', url, '--json', 'functions', '--limit', '500', '--query',
                                   f'{{service_name="{kind}"}}'], capture_output=True, text=True, check=True)
            answer = json.loads(done.stdout)
            named = sum(row['total'] for row in answer['rows'] if row['function'] == 'spin_that_' + kind)
            # Of what is in the program itself: its start is in the loader and the kernel.
            own = named + sum(row['self'] for row in answer['rows'] if row['function'].startswith(kind + '+0x'))
            print(f'| {kind} | {args.runs * 0.3:.1f} | {answer["total"] / 1e9:.2f} | {100 * named / max(own, 1):.1f}% |')
        server.process.terminate()
        server.process.wait()

main()
