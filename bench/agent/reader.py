#!/usr/bin/env python3
"""An idle machine with one daemon that reads /proc each second, through a buffer of 8 KiB as Go's os.ReadDir does, among 300 sleeping processes: who is found, and what
does a day of that take in the store?

    reader.py --plumb target/release/plumb [--seconds 120]

Prints after how many seconds findings name the daemon with its period and its buffer, and in which place, all findings in their order, the daemon's functions, and what agent
and server would take in a day if it went on like that. Exit status 1 if findings do not name it first within two minutes, or if a day takes 2 MiB or more. Root.

Bytes of a day: after half of the time and at the end blocks are written and merged, as the server does by itself in the course of a day, and their tables are measured. The first
half has what a day has once (the tables of a block, names and stacks that are new); a day is what is stored at the end plus, for the rest of the day, what the second
half added. Stacks that are new in the second half count as if there were as many in each later one, which there are not: the figure is an upper estimate. Symbols
that were uploaded are no part of it: they are stored once, not each day.
--idle: nothing but the daemon and the sleeping processes is kept (--relabel), where other people use the machine.
"""
import argparse, glob, json, os, re, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'store'))
from server import Server, size

CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
DAEMON = '''
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) long read_directory(const char *path) {
    static char buffer[8192];
    long all = 0, got;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) all += got;
    close(fd);
    return all;
}
int main(void) { volatile long all = 0; for (;;) { for (int i = 0; i < 10; i++) all += read_directory("/proc"); sleep(1); } }
'''

def findings(server):
    status, text = server.get('/api/v1/findings?from=now-1h&until=now%2B1h&type=' + CPU)
    return json.loads(text)['findings'] if status == 200 else []

def stored(server, store):
    """Bytes of the merged tables and number of blocks, of all that has come."""
    for path in ('flush', 'compact'):
        status, text = server.post('/api/v1/admin/' + path)
        if status != 200:
            sys.exit(f'{path}: {status} {text[:300]}')
    return size(store)

def tables(store):
    """Bytes of each table and the numbers of rows, of the blocks that count."""
    metas = [json.load(open(path)) for path in glob.glob(os.path.join(store, 'blocks/*/blocks/*/block.json'))]
    replaced = {one for meta in metas for one in meta['replaces']}
    return [(meta['counts'], {name: file['bytes'] for name, file in meta['files'].items()}) for meta in metas if meta['id'] not in replaced]

def titles(server):
    return [f'{one["service"]}: {one["title"]}' for one in findings(server)]

def named(server, begin):
    """When, in which place and how the daemon is named with its period and its buffer; None: it is not yet."""
    for place, one in enumerate(findings(server)):
        seen = [detail for detail in one['details'] if 'getdents64 of /proc, buffer 8 KiB' in detail]
        if one['service'] == 'proc-reader' and one['period_ns'] and seen:
            return time.time() - begin, place + 1, one['title'], *seen

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--seconds', type=int, default=120)
    parser.add_argument('--idle', action='store_true')
    options = parser.parse_args()
    plumb = os.path.abspath(options.plumb)
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, 'd.c'), os.path.join(folder, 'proc-reader')
        open(source, 'w').write(DAEMON)
        subprocess.run(['cc', '-O2', '-g1', '-Wl,--build-id', '-o', program, source], check=True)
        store, log = os.path.join(folder, 'store'), os.path.join(folder, 'agent.log')
        server = Server(plumb, store)
        running = [subprocess.Popen(['sleep', '100000']) for _ in range(300)] + [subprocess.Popen([program])]
        time.sleep(5)
        command = [plumb, 'agent', '--to', f'http://127.0.0.1:{server.port}', '--spool', os.path.join(folder, 'spool')]
        command += ['--relabel', 'keep:service.name=proc-reader|sleep|plumb|plumb-agent|kernel'] if options.idle else []
        begin = time.time()
        agent = subprocess.Popen(command, stdout=open(log, 'wb'), stderr=subprocess.STDOUT)
        told = half = None
        try:
            while time.time() - begin < options.seconds:
                time.sleep(1)
                told = told or named(server, begin)
                if not half and time.time() - begin >= options.seconds / 2:
                    half = time.time() - begin, stored(server, store)[0], tables(store)
            last = time.time() - begin, *stored(server, store), tables(store)
            if told:
                print('after {:.0f} s findings name it in place {}:'.format(*told[:2]), *told[2:], sep='\n    ')
            else:
                print('findings do not name it')
            print('findings at the end:', *titles(server), sep='\n    ')
        finally:
            agent.send_signal(signal.SIGTERM)
            agent.wait(timeout=60)
            for one in running:
                one.kill()
                one.wait()
        def query(*words):
            command = [plumb, 'query', '--to', f'http://127.0.0.1:{server.port}', '--from', 'now-1h', '--until', 'now+1h', *words]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(query('services'), query('functions', '--type', CPU, '--query', '{service_name="proc-reader"}', '--limit', '8'), sep='\n')
        server.stop()
        text = re.sub(r'\x1b\[[0-9;]*m', '', open(log, errors='replace').read())
        lines = [line for line in text.splitlines() if re.search(r'\bwindow\b', line)]
        value = lambda name: [int(one) for line in lines for one in re.findall(rf'\b{name}=(\d+)', line)]
        windows, rates = value('bytes'), value('hz')
        # The first ones carry names that later ones don't.
        rest = windows[len(windows) // 2:]
        (half_seconds, half_bytes, half_tables), (seconds, all_bytes, blocks, all_tables) = half, last
        day = (all_bytes + (all_bytes - half_bytes) / (seconds - half_seconds) * (86400 - seconds)) / 2**20
        print(f'{len(windows)} requests, {sum(rest) / len(rest) * 5760 / 2**20:.2f} MiB sent a day; {min(rates)} to {max(rates)} Hz, samples of windows:', *value('samples'))
        for moment, of_blocks in (half_seconds, half_tables), (seconds, all_tables):
            for counts, files in of_blocks:
                print(f'after {moment:.0f} s, merged:', *(f'{count} {name}' for name, count in counts.items()), '|', *(f'{name.split(".")[0]} {bytes}' for name, bytes in files.items()))
        print(f'stored: {half_bytes} bytes after {half_seconds:.0f} s, {all_bytes} after {seconds:.0f} s in {blocks} block(s); a day: {day:.2f} MiB')
        sys.exit(not (told and told[0] <= 120 and told[1] == 1 and day < 2))

main()
