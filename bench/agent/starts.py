#!/usr/bin/env python3
"""Memory of plumb's agent while a large program starts, such as one of Go, all of whose unwind information comes from its own table.

    starts.py --plumb target/release/plumb [--seconds 20] PROGRAM [ARGUMENT]...

The agent runs for SECONDS by itself, and for as long beside the program, which is ended then if it has not. Root.
"""
import argparse, os, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'store'))
from server import Server


def memory(pid):
    lines = open(f'/proc/{pid}/status').read().splitlines()
    kb = {line.split(':')[0]: int(line.split()[1]) for line in lines if line.startswith(('VmHWM', 'VmRSS'))}
    return f"{kb['VmRSS'] / 1000:5.1f} MB, peak {kb['VmHWM'] / 1000:5.1f} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', required=True)
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('command', nargs=argparse.REMAINDER)
    options = parser.parse_args()
    plumb = os.path.abspath(options.plumb)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(plumb, os.path.join(folder, 'store'))
        agent = subprocess.Popen([plumb, 'agent', '--to', f'http://127.0.0.1:{server.port}', '--spool', os.path.join(folder, 'spool')],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        program = None
        try:
            time.sleep(options.seconds)
            print('alone: ', memory(agent.pid))
            program = subprocess.Popen(options.command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(options.seconds)
            size = os.path.getsize(os.path.realpath(options.command[0])) / 1e6
            print('beside:', memory(agent.pid), f'({options.command[0].split("/")[-1]}, {size:.0f} MB)')
        finally:
            for one in filter(None, (program, agent)):
                one.send_signal(signal.SIGTERM)
                one.wait()
            server.stop()


if __name__ == '__main__':
    main()
