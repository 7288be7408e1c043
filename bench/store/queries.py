#!/usr/bin/env python3
"""Queries of two versions of plumb on stores of many services, each with blocks of its own; and of the newer one on the older one's blocks.

  queries.py BODIES BEFORE NOW     # BODIES: a file of push requests, each behind its length in 4 bytes; BEFORE, NOW: plumb

Wall time is given beside the server's processor time, which other programs on the machine hardly change.
"""
import json, os, shutil, statistics, struct, sys, tempfile, time
from many_stacks import TYPE
from server import Server, size

TOGETHER, TIMES = 50, 3

def fill(server, path):
    """Pushes the requests, several at a time: repeated fields of messages that follow each other are one list."""
    connection, batch, count = server.connection(), b'', 0
    with open(path, 'rb') as file:
        while len(head := file.read(4)) == 4:
            body = file.read(struct.unpack('<I', head)[0])
            if len(body) < struct.unpack('<I', head)[0]:
                break
            batch, count = batch + body, count + 1
            if count % TOGETHER == 0:
                push(server, batch, connection)
                batch = b''
    push(server, batch, connection)
    server.post('/api/v1/admin/flush')
    return count

def push(server, batch, connection):
    status, answer = server.post('/push.v1.PusherService/Push', batch, 'application/proto', connection)
    assert status == 200, answer

def span(store):
    """First and last millisecond of a store's blocks."""
    names = [name.split('-') for tenant in os.listdir(os.path.join(store, 'blocks')) for name in os.listdir(os.path.join(store, 'blocks', tenant, 'blocks'))]
    return min(int(name[0]) for name in names), max(int(name[1]) for name in names)

def total(answer):
    answer = json.loads(answer)
    return answer['flamegraph'].get('total') if 'flamegraph' in answer else answer.get('cpu_ns', '')

def questions(server, begin, end):
    middle, one = (begin + end) // 2, '{service_name="service-17"}'
    flame = lambda selector, first, last: lambda: server.rpc('SelectMergeStacktraces', profile_typeID=TYPE, label_selector=selector, start=first, end=last, max_nodes=16384)
    pprof = lambda selector: lambda: server.rpc('SelectMergeProfile', profile_typeID=TYPE, label_selector=selector, start=begin, end=end)
    found = lambda first: lambda: server.get(f'/api/v1/findings?from={first // 1000}&until={middle // 1000}')[1]
    return {
        'one service, 5 minutes': flame(one, middle - 300_000, middle), 'one service, an hour': flame(one, middle - 3_600_000, middle),
        'one service, everything': flame(one, begin, end), 'all services, everything': flame('{}', begin, end),
        'pprof of one service': pprof(one), 'pprof of all services': pprof('{}'),
        'findings, 15 minutes': found(middle - 900_000), 'findings, an hour': found(middle - 3_600_000), 'findings, half of it': found(begin),
    }

def measure(plumb, store):
    server = Server(plumb, store, '--retention', '10000d')
    for name, ask in questions(server, *span(store)).items():
        walls, cpus, answer = [], [], b''
        try:
            for _ in range(TIMES):
                since, cpu = time.time(), server.cpu()
                answer = ask()
                walls.append((time.time() - since) * 1e3)
                cpus.append((server.cpu() - cpu) * 1e3)
        except SystemExit as error:
            print(f'  {name:26} refused: {str(error)[:110]}', flush=True)
            continue
        what = total(answer) if not name.startswith('pprof') else ''
        print(f'  {name:26} first {walls[0]:7.0f} ms, median {statistics.median(walls):7.0f} ms; processor time {cpus[0]:6.0f}, {statistics.median(cpus):6.0f} ms; {len(answer):9} bytes {what}', flush=True)
    print(f'  memory {server.memory()} MB (now, peak)')
    server.stop()

def main():
    bodies, before, now = sys.argv[1:4]
    work = tempfile.mkdtemp()
    try:
        for name, plumb in (('before', before), ('now', now)):
            server = Server(plumb, os.path.join(work, name), '--retention', '10000d')
            count = fill(server, bodies)
            cpu, memory = server.cpu(), server.memory()
            server.stop()
            print(f'{name}: {count} profiles, {cpu / count * 1e3:.2f} ms of processor time a profile, {memory} MB, {size(server.store)[0] / count:.0f} bytes a profile', flush=True)
        shutil.copytree(os.path.join(work, 'before'), os.path.join(work, 'older'))
        for name, plumb, store in (('before', before, 'before'), ('now', now, 'now'), ("now, on the older version's blocks", now, 'older')):
            print(f'{name}:', flush=True)
            measure(plumb, os.path.join(work, store))
    finally:
        shutil.rmtree(work, ignore_errors=True)

if __name__ == '__main__':
    main()
