#!/usr/bin/env python3
"""What the profile store takes and how fast it answers, beside what Pyroscope took for the same profiles on such a machine.

  run.py --plumb PLUMB [--corpus DIR] [--idle SAMPLES.txt]

The corpus is made by corpus.py (2,000 profiles of 13 services, 39 minutes). Pyroscope's figures were measured on a quiet machine of this kind with version
2.2 (v1 and v2 storage); they are not measured again here.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time
from server import Server, corpus, size

HERE = os.path.dirname(os.path.abspath(__file__))
TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
BEGIN, END = 1795246147000 - 60000, 1795246147000 + 40 * 60000

def push(server, folder, first=0, last=None):
    connection, took = server.connection(), []
    for request, entry in corpus(folder, first, last):
        begin = time.perf_counter()
        connection.request('POST', '/push.v1.PusherService/Push', request, {'Content-Type': 'application/proto'})
        answer = connection.getresponse()
        body = answer.read()
        took.append((time.perf_counter() - begin) * 1e3)
        if answer.status != 200:
            sys.exit(f'{answer.status}: {body[:300]}')
    return sorted(took)

def queries(server):
    select = dict(profile_typeID=TYPE, label_selector='{}', start=BEGIN, end=END)
    middle = (BEGIN + END) // 2
    one = dict(select, label_selector='{service_name="checkout"}')
    render = f'/pyroscope/render?query={TYPE}%7B%7D&from={BEGIN}&until={END}&max-nodes=16384'
    return {
        'merge all, 16,384 nodes': (lambda: server.rpc('SelectMergeStacktraces', **select, max_nodes=16384), '573 / 644', 60),
        'merge all, every node': (lambda: server.rpc('SelectMergeStacktraces', **select, max_nodes=1000000), '1177 / 1240', None),
        'merge one service': (lambda: server.rpc('SelectMergeStacktraces', **one, max_nodes=16384), '76 / 71', 10),
        'pprof of all': (lambda: server.rpc('SelectMergeProfile', **select), '1564 / 1681', None),
        'series by service, 15 s': (lambda: server.rpc('SelectSeries', **select, step=15, group_by=['service_name']), '24 / 71', 10),
        'diff of halves': (lambda: server.rpc('Diff', left=dict(select, end=middle, max_nodes=16384), right=dict(select, start=middle, max_nodes=16384)), '714 / 691', 80),
        '/pyroscope/render': (lambda: server.get(render)[1], '566 / 777', None),
    }

def ask(server, when, repetitions=9):
    print(f'\nqueries, {when} (ms over HTTP: first, median of {repetitions}; Pyroscope v1 / v2 median; goal)')
    for name, (query, peer, goal) in queries(server).items():
        took = []
        for _ in range(repetitions + 1):
            begin = time.perf_counter()
            answer = query()
            took.append((time.perf_counter() - begin) * 1e3)
        median = statistics.median(took[1:])
        verdict = '' if goal is None else f'{"reached" if max(median, took[0]) <= goal else "reached but first" if median <= goal else "MISSED"} (≤ {goal})'
        print(f'  {name:28} {took[0]:8.1f} {median:8.1f}   {peer:>12}   {verdict:16} {len(answer):>10} bytes')

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='plumb')
    parser.add_argument('--corpus')
    parser.add_argument('--idle', help='samples of mostly idle services, as idle.py record writes them')
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='plumb-store-')
    folder = options.corpus or os.path.join(work, 'corpus')
    if not options.corpus:
        subprocess.run([sys.executable, os.path.join(HERE, 'corpus.py'), '--seed', '42', '--n', '2000', '--out', folder], check=True, stdout=subprocess.DEVNULL)
    keep = ['--retention', '10000d']
    stats = json.load(open(os.path.join(folder, 'stats.json')))
    print(f'{stats["profiles"]} profiles, {stats["gz"] // stats["profiles"]} bytes each as pprof.gz; load {os.getloadavg()[0]:.1f}')

    # As it is on a server that takes them as they come: a block for each 5 minutes (250 profiles).
    store = os.path.join(work, 'as-they-come')
    os.mkdir(store)
    server = Server(options.plumb, store, *keep)
    took = []
    for first in range(0, stats['profiles'], 250):
        took += push(server, folder, first, first + 250)
        server.post('/api/v1/admin/flush')
    took.sort()
    print(f'push: median {took[len(took) // 2]:.1f} ms, 99% {took[len(took) * 99 // 100]:.1f} ms (Pyroscope v1 8.8 / 26, v2 486-496 / 522-528; goal: median ≤ 10)')
    print(f'processor time: {server.cpu() * 1e3 / stats["profiles"]:.1f} ms a profile (Pyroscope 8.5 / 14.4 with compaction); memory {server.memory()[0]} MB, peak {server.memory()[1]} MB')
    taken, blocks = size(store)
    print(f'before any merge: {taken / stats["profiles"]:.0f} bytes a profile in {blocks} blocks of 5 minutes')
    ask(server, f'{blocks} blocks')
    server.post('/api/v1/admin/compact?due=true')
    taken, blocks = size(store)
    print(f'\nas a server merges them while they come: {taken / stats["profiles"]:.0f} bytes a profile in {blocks} blocks (Pyroscope live 8,456-13,770; goal ≤ 3,000)')
    server.post('/api/v1/admin/compact')
    taken, blocks = size(store)
    print(f'after compaction: {taken / stats["profiles"]:.0f} bytes a profile in {blocks} block (Pyroscope v1 7,230; goal ≤ 1,250)')
    ask(server, f'{blocks} block')
    ready = time.perf_counter()
    print(f'\nmemory after all queries: {server.memory()[0]} MB, peak {server.memory()[1]} MB (Pyroscope 575 / 610-830; goal: peak ≤ 250)')
    begin = server.cpu()
    time.sleep(20)
    print(f'idle: {(server.cpu() - begin) / 20 * 100:.2f}% of a processor (Pyroscope 0.9%)')
    server.stop()
    ready = time.perf_counter()
    server.start()
    print(f'ready after a start: {time.perf_counter() - ready:.2f} s (Pyroscope 17 / 48)')
    merge, begin = queries(server)['merge all, 16,384 nodes'][0], time.perf_counter()
    merge()
    print(f'merge of all, the first query after a start: {(time.perf_counter() - begin) * 1e3:.0f} ms')
    server.stop()

    if options.idle:
        store = os.path.join(work, 'idle')
        os.mkdir(store)
        server = Server(options.plumb, store, *keep)
        made = ''
        for ago in (4, 3, 2, 1, 0):
            # A server that has been on for days has blocks of a day.
            made += subprocess.run([sys.executable, os.path.join(HERE, 'idle.py'), 'push', options.idle, '--to', f'http://127.0.0.1:{server.port}', '--days', '1', '--ago', str(ago)],
                                   check=True, capture_output=True, text=True).stdout
            server.post('/api/v1/admin/flush')
        raw, _ = size(store)
        server.post('/api/v1/admin/compact')
        taken, blocks = size(store)
        print(f'\n5 days of 13 mostly idle services: {made.strip()}')
        print(f'  {taken / 2**20:.2f} MiB in {blocks} blocks after compaction, {raw / 2**20:.2f} MiB before (Pyroscope < 100 MiB in the story; goal ≤ 10 MiB)')
        server.stop()
    shutil.rmtree(work)

main()
