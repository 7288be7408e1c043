#!/usr/bin/env python3
"""A server that is killed (kill -9) at random moments while profiles are pushed: every profile that was acknowledged has to be there, once.

  crash.py --plumb PLUMB [--kills 100] [--seed 1]
"""
import argparse, json, os, random, shutil, tempfile, threading, time
from server import Server, field, number as plain, push_request, varint

TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
BASE = 1795246147

def profile(number):
    """A profile of its own second whose only sample has the value 1."""
    texts = ['', 'cpu', 'nanoseconds', f'f{number % 1000}', 'main']
    kind = plain(1, 1) + plain(2, 2)
    out = field(1, kind) + field(2, field(1, varint(1) + varint(2)) + field(2, varint(1)))
    for place in (1, 2):
        out += field(4, plain(1, place) + field(4, plain(1, place) + plain(2, 7))) + field(5, plain(1, place) + plain(2, place + 2))
    for text in texts:
        out += field(6, text.encode())
    return out + plain(9, (BASE + number) * 10**9) + field(11, kind) + plain(12, 1)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='plumb')
    parser.add_argument('--kills', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    work = tempfile.mkdtemp(prefix='plumb-crash-')
    store = os.path.join(work, 'store')
    os.mkdir(store)
    server = Server(options.plumb, store, '--retention', '10000d')
    acknowledged, sent, lock, stopping = set(), [0], threading.Lock(), threading.Event()

    def work_on():
        while not stopping.is_set():
            with lock:
                number = sent[0]
                sent[0] += 1
            request = push_request([({'__name__': 'process_cpu', 'service_name': 'crash', 'number': str(number % 7)}, profile(number))])
            try:
                status, _ = server.post('/push.v1.PusherService/Push', request, 'application/proto')
                if status == 200:
                    acknowledged.add(number)
            except OSError:
                time.sleep(0.01)
            except Exception:
                pass

    threads = [threading.Thread(target=work_on) for _ in range(4)]
    [thread.start() for thread in threads]
    for _ in range(options.kills):
        time.sleep(draw.random() * 0.4)
        # Blocks are written and merged at some of these moments.
        task = draw.choice([None, '/api/v1/admin/flush', '/api/v1/admin/compact'])
        if task:
            asking = threading.Thread(target=lambda: quietly(server, task))
            asking.start()
            time.sleep(draw.random() * 0.05)
        server.kill()
        server.start()
    stopping.set()
    [thread.join() for thread in threads]
    answer = json.loads(server.rpc('SelectSeries', profile_typeID=TYPE, label_selector="{}", start=(BASE - 10) * 1000, end=(BASE + sent[0]) * 1000, step=1))
    there = {}
    for series in answer.get('series', []):
        for point in series['points']:
            there[int(point['timestamp']) // 1000 - BASE] = there.get(int(point['timestamp']) // 1000 - BASE, 0) + int(point['value'])
    lost = sorted(acknowledged - set(there))
    twice = sorted(number for number, value in there.items() if value != 1)
    print(f'{options.kills} kills, {sent[0]} profiles sent, {len(acknowledged)} acknowledged: {len(lost)} of these lost, {len(twice)} there more than once, '
          f'{len(set(there) - acknowledged)} there that were not acknowledged (allowed)')
    server.stop()
    shutil.rmtree(work)
    if lost or twice:
        raise SystemExit(f'lost {lost[:10]}, twice {twice[:10]}')

def quietly(server, task):
    try:
        server.post(task)
    except OSError:
        pass
    except Exception:
        pass

main()
