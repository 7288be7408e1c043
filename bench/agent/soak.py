#!/usr/bin/env python3
"""plumb's agent and server for a long time, under what wears them out: does any sample get lost, and does memory grow?

    soak.py --plumb target/release/plumb [--minutes 120] [--profiler EBPF_PROFILER] [--short]

Load, some fifth of a processor: bursts of short processes (process IDs are used again after 32,768), a program that never ends, and control groups
named like containers that live for seconds (1,000 an hour). Meanwhile the server is stopped, killed with SIGKILL at any moment and stays away for up
to two minutes, the agent is stopped and started again, and its clock is set, back or forward by up to an hour, and right again. Each of that is drawn by --seed.

At the end: samples and nanoseconds that the agents say they took, less what they say they dropped or left out, are those in the store, exactly. Memory is
printed over time; with --profiler also that of OpenTelemetry's eBPF profiler, which runs beside and sends to a server of its own.
--short: two minutes, windows of a second, more of each; exit status 1 if a sum is wrong or the agent takes more than --most. Root; for the profiler tracefs.
"""
import argparse, collections, json, os, random, re, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'store'))
from server import Server

CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
STEADY = '''
#include <math.h>
#include <time.h>
__attribute__((noinline)) double inner(int n) { double s = 0; for (int i = 1; i < n; i++) s += sqrt(i); return s; }
__attribute__((noinline)) double deep(int n, int rounds) { return n ? deep(n - 1, rounds) + 1 : inner(rounds); }
int main() { volatile double s = 0; for (;;) { for (int i = 0; i < 20; i++) s += deep(40, 20000); struct timespec t = {0, 20000000}; nanosleep(&t, 0); } }
'''

def memory(pid, key='VmRSS'):
    try:
        return int(open(f'/proc/{pid}/status').read().split(key + ':')[1].split()[0]) / 1024
    except (OSError, IndexError):
        return 0.0

def cgroup_root():
    """A folder below which control groups can be made: of version 2 first."""
    for folder in ('/sys/fs/cgroup/unified', '/sys/fs/cgroup', '/sys/fs/cgroup/systemd'):
        if os.path.exists(folder + '/cgroup.procs') and os.access(folder, os.W_OK):
            return folder
    return None

class Load(threading.Thread):
    """Until it is told to stop."""
    def __init__(self, folder, draw, pace):
        super().__init__(daemon=True)
        self.folder, self.draw, self.pace, self.done = folder, draw, pace, threading.Event()
        self.processes = self.containers = 0
        source, self.steady = os.path.join(folder, 'steady.c'), os.path.join(folder, 'steady')
        open(source, 'w').write(STEADY)
        subprocess.run(['cc', '-O1', '-o', self.steady, source, '-lm'], check=True)
        self.root = cgroup_root()

    def burst(self, count):
        """Short processes, as fast as one shell starts them."""
        subprocess.run(['sh', '-c', f'i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done'])
        self.processes += count

    def container(self):
        if not self.root:
            return
        folder = os.path.join(self.root, f'docker-{self.draw.getrandbits(256):064x}.scope')
        os.mkdir(folder)
        try:
            subprocess.run(['sh', '-c', f'echo $$ >{folder}/cgroup.procs; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'])
        finally:
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.05)
        self.containers += 1

    def run(self):
        steady = subprocess.Popen([self.steady])
        try:
            while not self.done.wait(3.6 / self.pace):
                self.burst(self.draw.choice([20, 100, 100, 1000 if self.pace > 1 else 400]))
                self.container()
        finally:
            steady.kill()
            steady.wait()

    def stop(self):
        """Also a second time."""
        self.done.set()
        self.join()

CLOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../crates/cli/tests/programs/clock.c')

class Agent:
    """An agent that is started again and again, its log, and its clock."""
    def __init__(self, plumb, url, folder, interval):
        self.command = [plumb, 'agent', '--to', url, '--spool', os.path.join(folder, 'spool'), '--interval', str(interval)]
        self.log, self.starts = os.path.join(folder, 'agent.log'), 0
        clock, self.offset = os.path.join(folder, 'clock.so'), os.path.join(folder, 'offset')
        subprocess.run(['cc', '-shared', '-fPIC', '-o', clock, CLOCK], check=True)
        self.environment = dict(os.environ, LD_PRELOAD=clock, CLOCK_FILE=self.offset)
        self.set_clock(0)
        self.start()

    def set_clock(self, seconds):
        """By so much from the right time."""
        self.seconds = seconds
        with open(self.offset + '.new', 'w') as file:
            file.write(str(seconds))
        os.rename(self.offset + '.new', self.offset)

    def start(self):
        self.starts += 1
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=self.environment)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=60) != 0:
            raise SystemExit(f'the agent ended with {self.process.returncode}: see {self.log}')

    def restart(self):
        self.stop()
        self.start()

    def totals(self):
        """Sums of what each run said at its end; `found` and `spooled` of the runs but the first and the last cancel each other."""
        sums = collections.Counter()
        runs = [line for line in open(self.log, errors='replace') if re.search(r'\bstopped\b', line)]
        if len(runs) != self.starts:
            raise SystemExit(f'{self.starts} runs, but {len(runs)} said how they ended: see {self.log}')
        for line in runs:
            one = collections.Counter({name: int(value) for name, value in re.findall(r'(\w+)=(\d+)', line)})
            if one['taken'] + one['found'] != one['left_out'] + one['sent'] + one['spooled'] + one['dropped']:
                raise SystemExit(f'a run that does not add up: {line}')
            sums.update(one)
            last = one
        sums['spooled'] = last['spooled']
        return sums

def stored(server):
    command = [server.plumb, 'query', '--to', f'http://127.0.0.1:{server.port}', '--type', CPU, '--json', '--from', 'now-24h', '--until', 'now+1h', 'functions']
    for _ in range(10):
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode == 0:
            return json.loads(answer.stdout)['total']
        # A server that has just started on a busy machine may take longer than a query may.
        time.sleep(5)
    raise SystemExit(f'cannot ask for the sum: {answer.stderr}')

TROUBLE = ['kill server', 'kill server, stay away', 'restart agent', 'kill server', 'set clock', 'stop server', 'restart agent, server away', 'set clock']

def disturb(server, agent, draw, away, deck, is_early):
    """The next thing that goes wrong; gives back its name. The agent goes on undisturbed after a third of the time: what it takes by then is what it takes for months."""
    what = None
    while what is None or ('agent' in what and not is_early):
        if not deck:
            deck.extend(draw.sample(TROUBLE, len(TROUBLE)))
        what = deck.pop()
    if 'server' in what:
        server.kill() if 'kill' in what else server.stop()
    if 'agent' in what:
        agent.restart()
    if 'clock' in what:
        agent.set_clock(0 if agent.seconds else draw.randint(-3600, 3600))
    if 'away' in what:
        time.sleep(draw.uniform(*away))
    if 'server' in what:
        server.start()
    return what

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--minutes', type=float, default=120)
    parser.add_argument('--profiler')
    parser.add_argument('--short', action='store_true')
    parser.add_argument('--most', type=float, default=64, help='most memory of an agent in MB')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--folder', help='keeps store, spool and logs there')
    options = parser.parse_args()
    if options.short:
        options.minutes = min(options.minutes, 2)
    with tempfile.TemporaryDirectory() as own:
        sys.exit(soak(options, options.folder or own))

def soak(options, folder):
    os.makedirs(folder, exist_ok=True)
    plumb, draw = os.path.abspath(options.plumb), random.Random(options.seed)
    pace, apart = (4, (4, 12)) if options.short else (1, (60, 300))
    away = (2, 8) if options.short else (20, 120)
    server, load = Server(plumb, os.path.join(folder, 'store')), Load(folder, random.Random(options.seed), pace)
    agent = Agent(plumb, f'http://127.0.0.1:{server.port}', folder, 1 if options.short else 15)
    peer, deck = None, []
    if options.profiler:
        sink = Server(plumb, os.path.join(folder, 'peer'))
        peer = subprocess.Popen([options.profiler, '-collection-agent', f'127.0.0.1:{sink.port}', '-disable-tls', '-samples-per-second', '97'],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    load.start()
    began, done = time.time(), collections.Counter()
    next_trouble, next_line, peak, steps, line = began + draw.uniform(*apart), began, 0.0, (0.5 if options.short else 10), 15 if options.short else 300
    print(f'{options.minutes:g} minutes, seed {options.seed}' + (', short' if options.short else ''), 'minute  agent MB  server MB' + ('  OpenTelemetry MB' if peer else ''), sep='\n', flush=True)
    try:
        while time.time() - began < options.minutes * 60:
            time.sleep(steps)
            peak = max(peak, memory(agent.process.pid, 'VmHWM'))
            if time.time() >= next_line:
                next_line += line
                print(f'{(time.time() - began) / 60:6.1f}  {memory(agent.process.pid):8.1f}  {memory(server.process.pid):9.1f}' + (f'  {memory(peer.pid):16.1f}' if peer else ''), flush=True)
            for name, process in ('plumb agent', agent.process), ('OpenTelemetry', peer):
                if process and process.poll() is not None:
                    raise SystemExit(f'{name} ended by itself with {process.returncode}')
            if time.time() >= next_trouble:
                done[disturb(server, agent, draw, away, deck, options.short or time.time() - began < options.minutes * 20)] += 1
                next_trouble = time.time() + draw.uniform(*apart)
        load.stop()
        return judge(server, agent, load, done, peak, peer and memory(peer.pid, 'VmHWM'), options.most)
    finally:
        load.stop()
        for process in (agent.process, peer, server.process, peer and sink.process):
            if process and process.poll() is None:
                process.terminate()
                process.wait()

def judge(server, agent, load, done, peak, peer_peak, most):
    agent.stop()
    # What the last one could not send in its five seconds: the server may just have come back.
    agent.start()
    time.sleep(5)
    agent.stop()
    sums, total = agent.totals(), stored(server)
    server.stop()
    print('; '.join(f'{what} {count}' for what, count in sorted(done.items())))
    print(f'{load.processes} short processes, {load.containers} containers, {agent.starts} runs of the agent')
    print('taken {taken} samples ({taken_ns} ns), sent {sent} ({sent_ns} ns), left out {left_out}, dropped {dropped}, in the spool {spooled}, lost by the kernel {lost}'.format_map(sums))
    print(f'in the store {total} ns: {total - sums["sent_ns"]:+} ns')
    print(f'peak memory of an agent {peak:.1f} MB' + (f', of OpenTelemetry {peer_peak:.1f} MB' if peer_peak else ''))
    is_right = total == sums['sent_ns'] and sums['spooled'] == 0 and peak <= most
    print('all sums are right' if is_right else 'WRONG')
    return 0 if is_right else 1

main()
