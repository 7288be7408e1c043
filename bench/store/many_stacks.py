#!/usr/bin/env python3
"""A store of many services with more stacks than queries can share: what one service, and all, take; beside another plumb.

  many_stacks.py --plumb PLUMB [--peer OLDER_PLUMB] [--profiles 50000]     # 25 stacks a profile, over a day
"""
import argparse, json, os, random, shutil, tempfile, time
from server import Server, field, number as plain, push_request, varint

TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
SERVICES, STACKS = 200, 25
DAY = 86400

def profile(draw, service, time_s):
    """Stacks of 6 to 20 frames, half of which are functions of the service alone; and their sum."""
    texts, locations, samples, total = {'': 0, 'cpu': 1, 'nanoseconds': 2}, {}, [], 0
    for _ in range(STACKS):
        ids = b''
        for _ in range(draw.randint(6, 20)):
            name = f'library.function_{draw.randrange(1200)}'
            name = f'service_{service}.{name}' if draw.random() < 0.5 else name
            ids += varint(locations.setdefault(name, len(locations) + 1))
        value = draw.randint(1, 60) * 10_309_278
        total += value
        samples.append(field(2, field(1, ids) + field(2, varint(value))))
    kind = plain(1, 1) + plain(2, 2)
    out = [field(1, kind), *samples]
    for name, place in locations.items():
        text = texts.setdefault(name, len(texts))
        out.append(field(4, plain(1, place) + field(4, plain(1, place))) + field(5, plain(1, place) + plain(2, text)))
    out += [field(6, text.encode()) for text in texts]
    return b''.join(out) + plain(9, time_s * 10**9) + field(11, kind) + plain(12, 10_309_278), total

def fill(server, count, begin):
    draw, sums = random.Random(1), [0] * SERVICES
    for number in range(count):
        service, time_s = number % SERVICES, begin + DAY * number // count
        body, total = profile(draw, service, time_s)
        labels = {'__name__': 'process_cpu', 'service_name': f'service-{service}', 'pod': f'pod-{service}-{draw.randrange(10)}'}
        status, answer = server.post('/push.v1.PusherService/Push', push_request([(labels, body)]), 'application/proto')
        assert status == 200, answer
        sums[service] += total
    server.post('/api/v1/admin/flush')
    return sums

def asked(server, name, selector, begin, end, expected, method='SelectMergeStacktraces'):
    times, answer = [], {}
    try:
        for _ in range(5):
            since = time.time()
            nodes = {'max_nodes': 16384} if method == 'SelectMergeStacktraces' else {}
            answer = json.loads(server.rpc(method, profile_typeID=TYPE, label_selector=selector, start=begin * 1000, end=end * 1000, **nodes))
            times.append((time.time() - since) * 1000)
    except SystemExit as error:
        return f'{name:24} refused: {str(error)[:100]}'
    total = int(answer['flamegraph'].get('total', 0)) if 'flamegraph' in answer else None
    is_right = '' if expected is None or total is None else ' right' if total == expected else f' WRONG: {total} of {expected}'
    return f'{name:24} first {times[0]:6.0f} ms, median {sorted(times)[2]:6.0f} ms{is_right}'

def found(server, name, begin, end):
    times, answer = [], {}
    for _ in range(3):
        since = time.time()
        status, body = server.get(f'/api/v1/findings?from={begin}&until={end}')
        times.append((time.time() - since) * 1000)
        assert status == 200, body
        answer = json.loads(body)
    return f'{name:24} first {times[0]:6.0f} ms, median {sorted(times)[1]:6.0f} ms, {answer["examined"]} of {answer["services"]} services'

def measure(plumb, store, sums, begin):
    server = Server(plumb, store, '--retention', '10000d')
    one = '{service_name="service-17"}'
    noon = begin + DAY // 2
    for name, *rest in (('one service, 10 minutes', one, noon - 600, noon, None), ('one service, an hour', one, noon - 3600, noon, None),
                        ('one service, a day', one, begin - 1, begin + DAY + 1, sums[17]), ('all services, a day', '{}', begin - 1, begin + DAY + 1, sum(sums)),
                        ('one service, pprof', one, begin - 1, begin + DAY + 1, None, 'SelectMergeProfile')):
        print(' ', asked(server, name, *rest), flush=True)
    for name, *rest in (('findings, 15 minutes', noon - 900, noon), ('findings, an hour', noon - 3600, noon), ('findings, a day', begin - 1, begin + DAY + 1)):
        print(' ', found(server, name, *rest), flush=True)
    print(f'  memory {server.memory()} MB (now, peak)')
    server.stop()

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plumb', required=True)
    parser.add_argument('--peer')
    parser.add_argument('--profiles', type=int, default=50_000)
    options = parser.parse_args()
    work = tempfile.mkdtemp()
    try:
        begin = int(time.time()) - DAY - 600
        store = os.path.join(work, 'store')
        server = Server(options.plumb, store, '--retention', '10000d')
        sums = fill(server, options.profiles, begin)
        server.stop()
        print(f'{options.profiles} profiles of {SERVICES} services, {options.profiles * STACKS} stacks')
        for name, plumb in (('before', options.peer), ('now', options.plumb)):
            if plumb:
                copy = os.path.join(work, name)
                shutil.copytree(store, copy)
                print(f'{name}:')
                measure(plumb, copy, sums, begin)
    finally:
        shutil.rmtree(work, ignore_errors=True)

if __name__ == '__main__':
    main()
