#!/usr/bin/env python3
"""What a server does with a full disk, a million distinct stacks, slow connections, and bytes that are no profile.

  hostile.py --plumb PLUMB [--connections 10000]      # needs root for the full disk (a small tmpfs)
"""
import argparse, json, os, random, resource, shutil, socket, subprocess, tempfile, time
from server import Server, field, number as plain, push_request, varint

TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
BASE = 1795246147
LABELS = {'__name__': 'process_cpu', 'service_name': 'hostile'}

def profile(first, stacks, depth, time_s, functions):
    """Stacks that no other profile has: the number of each in base `functions`, root first."""
    texts = ['', 'cpu', 'nanoseconds'] + [f'function_number_{number}' for number in range(functions)]
    kind = plain(1, 1) + plain(2, 2)
    out = [field(1, kind)]
    for number in range(first, first + stacks):
        ids, left = b'', number
        for _ in range(depth):
            ids += varint(left % functions + 1)
            left //= functions
        out.append(field(2, field(1, ids) + field(2, varint(1))))
    for place in range(1, functions + 1):
        out.append(field(4, plain(1, place) + field(4, plain(1, place) + plain(2, 7))) + field(5, plain(1, place) + plain(2, place + 2)))
    out += [field(6, text.encode()) for text in texts]
    return b''.join(out) + plain(9, time_s * 10**9) + field(11, kind) + plain(12, 1)

def push(server, profile, labels=LABELS):
    return server.post('/push.v1.PusherService/Push', push_request([(labels, profile)]), 'application/proto')

def total(server, end):
    answer = json.loads(server.rpc('SelectSeries', profile_typeID=TYPE, label_selector='{}', start=(BASE - 1) * 1000, end=end * 1000, step=86400))
    return sum(int(point['value']) for series in answer.get('series', []) for point in series['points'])

def million(plumb, work):
    server = Server(plumb, os.path.join(work, 'million'), '--retention', '10000d')
    refused = 0
    for part in range(100):
        status, _ = push(server, profile(part * 10000, 10000, 20, BASE + part, 900))
        refused += status != 200
    print(f'1,000,000 distinct stacks of 20 frames in 100 pushes: {refused} refused, total {total(server, BASE + 100)}, memory {server.memory()} MB (now, peak)')
    begin = time.time()
    server.rpc('SelectMergeStacktraces', profile_typeID=TYPE, label_selector='{}', start=(BASE - 1) * 1000, end=(BASE + 100) * 1000, max_nodes=16384)
    print(f'  merged in {time.time() - begin:.2f} s, memory {server.memory()} MB')
    for _ in range(3):
        server.post('/api/v1/admin/flush')
        server.post('/api/v1/admin/compact')
    print(f'  after compaction total {total(server, BASE + 100)}, memory {server.memory()} MB')
    server.stop()

def nonsense(plumb, work):
    server = Server(plumb, os.path.join(work, 'nonsense'), '--retention', '10000d')
    draw, whole = random.Random(1), push_request([(LABELS, profile(0, 50, 5, BASE, 100))])
    statuses = {}
    for _ in range(2000):
        body = bytearray(whole)
        what = draw.randrange(3)
        if what == 0:
            body = body[:draw.randrange(len(body))]
        elif what == 1:
            for _ in range(draw.randrange(1, 20)):
                body[draw.randrange(len(body))] = draw.randrange(256)
        else:
            body = bytes(draw.randrange(256) for _ in range(draw.randrange(400)))
        status, _ = server.post('/push.v1.PusherService/Push', bytes(body), 'application/proto')
        statuses[status] = statuses.get(status, 0) + 1
    print(f'2,000 damaged requests: {statuses} (a flipped byte in a name is a profile all the same); 500s: {statuses.get(500, 0)}')
    odd = {'<script>alert(1)</script>': 'x', 'a\nb': '"}\'', 'x' * 5000: 'y', 'ü' * 100: '\u202e', 'empty': '', '__reserved__': 'z'}
    answers = {name[:12]: push(server, profile(0, 1, 1, BASE, 3), dict(LABELS, **{name: value}))[0] for name, value in odd.items()}
    many = push(server, profile(0, 1, 1, BASE, 3), dict(LABELS, **{f'label_{number}': 'x' for number in range(1000)}))[0]
    print(f'odd labels: {answers}; 1,000 labels: {many}; memory {server.memory()} MB, {"still ready" if server.get("/ready")[0] == 200 else "NOT READY"}')
    server.stop()

def slow(plumb, work, count):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server(plumb, os.path.join(work, 'slow'), '--retention', '10000d')
    before = server.memory()[0]
    sockets, refused = [], 0
    for _ in range(count):
        try:
            one = socket.create_connection(('127.0.0.1', server.port), timeout=5)
            one.sendall(b'POST /push.v1.PusherService/Push HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Le')
            sockets.append(one)
        except OSError:
            refused += 1
    took = []
    for number in range(20):
        begin = time.time()
        try:
            status, _ = push(server, profile(0, 5, 3, BASE + number, 10))
        except OSError as error:
            status = repr(error)
        took.append((time.time() - begin, status))
    good = sum(status == 200 for _, status in took)
    print(f'{len(sockets)} connections that send half a request ({refused} refused): 20 pushes beside them, {good} accepted, slowest {max(one for one, _ in took) * 1e3:.0f} ms; memory {before} -> {server.memory()[0]} MB')
    begin, left = time.time(), len(sockets)
    while left and time.time() - begin < 90:
        time.sleep(2)
        left = sum(1 for one in sockets if not closed(one))
    print(f'  {left} of them still open after {time.time() - begin:.0f} s')
    [one.close() for one in sockets]
    print(f'  accepted afterwards: {push(server, profile(0, 5, 3, BASE + 99, 10))[0]}')
    server.stop()

def closed(one):
    try:
        one.settimeout(0)
        return one.recv(4096) == b'' or True
    except BlockingIOError:
        return False
    except OSError:
        return True

def full(plumb, work):
    if os.geteuid() != 0:
        return print('the full disk was not tried: it needs root')
    place = os.path.join(work, 'full')
    os.mkdir(place)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', place], check=True)
    try:
        server = Server(plumb, os.path.join(place, 'store'), '--retention', '10000d')
        accepted, refused, number = 0, 0, 0
        while refused < 20 and number < 2000:
            status, body = push(server, profile(number * 500, 500, 20, BASE + number, 900))
            accepted, refused, number = accepted + (status == 200), refused + (status != 200), number + 1
        print(f'a disk of 16 MiB: {accepted} accepted, then {status} {body[:120].decode()}')
        kept = total(server, BASE + number + 1)
        print(f'  {kept} samples are answered, {accepted * 500} were acknowledged; /ready says {server.get("/ready")[0]}')
        server.kill()
        subprocess.run(['mount', '-o', 'remount,size=256m', place], check=True)
        server.start()
        status, _ = push(server, profile(number * 500, 500, 20, BASE + number, 900))
        print(f'  killed, given room and started again: {total(server, BASE + number + 1)} samples with one more push ({status})')
        assert total(server, BASE + number + 1) == kept + 500 * (status == 200) and kept == accepted * 500
        server.stop()
    finally:
        subprocess.run(['umount', '-l', place])

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='plumb')
    parser.add_argument('--connections', type=int, default=10000)
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='plumb-hostile-')
    full(options.plumb, work)
    nonsense(options.plumb, work)
    million(options.plumb, work)
    slow(options.plumb, work, options.connections)
    shutil.rmtree(work, ignore_errors=True)

main()
