#!/usr/bin/env python3
"""10,000 hostile pushes of every kind, on every route that takes profiles or symbols, beside a service whose answers must not change.

  hostile_pushes.py --plumb PLUMB [--pushes 10000] [--clients 8] [--limit 1024] [--kinds WORDS,WORDS]

Two servers get the same profiles of a service `control`. One of them also gets, by several clients at once, pushes that are too deep, too wide, too large,
packed bombs, malformed, cut short or from another time. First each kind is grown until it is refused, so that the largest accepted of each kind is in the store;
then pushes of a random kind and size follow. In between, after a flush, after compaction and after a restart every answer about `control` must be the
same bytes on both servers. The attacked server runs in a memory cgroup (root; v1 or v2) of --limit MiB without swap.

Exit status 1 if an answer differs, a push is answered with 5xx other than 501 and 503, the kernel kills the server, or its resident memory passes 512 MB.
Needs the commands zstd and gcc.
"""
import argparse, http.client, json, os, random, shutil, tempfile, threading, time
from collections import Counter, defaultdict
from hostile_kinds import BASE, function, kinds, location, named, one_sample, pprof, rows
from server import Server, push_request

TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
MOST_RSS = 512

# The service whose answers must stay.

def control(server):
    for minute in range(30):
        profile = pprof(rows(40, lambda id: location(id, id) + function(id, 6 + id)) + b''.join(one_sample([one % 40 + 1, (one * 7 + minute) % 40 + 1, 1], 10_000_000 * (one + 1)) for one in range(60)), *named(40), when=(BASE + minute * 60) * 10**9)
        status, body = server.post('/push.v1.PusherService/Push', push_request([({'__name__': 'process_cpu', 'service_name': 'control', 'pod': f'p{minute % 3}'}, profile)]), 'application/proto')
        assert status == 200, body

SELECTOR = '{service_name="control"}'

def answers(server):
    """All that is asked about the control, by name. Sets that have no order are put into one."""
    start, end = (BASE - 60) * 1000, (BASE + 3600) * 1000
    of = dict(profile_typeID=TYPE, label_selector=SELECTOR, start=start, end=end)
    query = f'query=%7Bservice_name%3D%22control%22%7D&type={TYPE}&from={BASE - 60}&until={BASE + 3600}'
    out = {name: server.rpc(name, **of) for name in ['SelectMergeStacktraces', 'SelectMergeProfile']}
    out['SelectSeries'] = server.rpc('SelectSeries', step=60, group_by=['pod'], **of)
    out['Series'] = server.rpc('Series', matchers=[SELECTOR], start=start, end=end)
    out['LabelNames'] = server.rpc('LabelNames', matchers=[SELECTOR], start=start, end=end)
    out['LabelValues'] = server.rpc('LabelValues', name='pod', matchers=[SELECTOR], start=start, end=end)
    side = dict(profileTypeID=TYPE, labelSelector=SELECTOR, start=start, end=end)
    out['Diff'] = server.rpc('Diff', left=dict(side, end=(BASE + 900) * 1000), right=dict(side, start=(BASE + 900) * 1000))
    for path in ['api/v1/functions', 'api/v1/selection/flame', 'api/v1/selection/functions', 'api/v1/selection/tree', 'api/v1/verdict', 'api/v1/export']:
        more = '&format=folded' if path.endswith('export') else ''
        status, body = server.get(f'/{path}?{query}{more}')
        out[path] = b'%d ' % status + body
    out['SelectMergeProfile'] = merged(out['SelectMergeProfile'])
    out['api/v1/verdict'] = rounded(out['api/v1/verdict'])
    out['render'] = server.get(f'/pyroscope/render?query={TYPE}%7Bservice_name%3D%22control%22%7D&from={BASE - 60}&until={BASE + 3600}&format=json')[1]
    return out

def merged(body):
    """Stacks of names with their values: the order of samples is that of a block, so that a flush alone changes it."""
    profile = json.loads(body)
    names = profile['stringTable']
    function = {one['id']: names[int(one['name'])] for one in profile['function']}
    place = {one['id']: [function[line['functionId']] for line in one['line']] for one in profile['location']}
    return sorted((tuple(name for id in one['locationId'] for name in place[id]), one['value']) for one in profile['sample'])

def rounded(body):
    """Likewise the last digit of a confidence limit, which is a sum of floating-point numbers in that order."""
    status, text = body.split(b' ', 1)
    return status, json.loads(text, parse_float=lambda number: float(f'{float(number):.12g}'))

class Limited(Server):
    """In a memory cgroup of its own, without swap."""
    patience = 120
    def __init__(self, *arguments, limit, **named):
        self.v2 = os.path.exists('/sys/fs/cgroup/cgroup.controllers')
        self.group = ('/sys/fs/cgroup/' if self.v2 else '/sys/fs/cgroup/memory/') + f'plumb-hostile-{os.getpid()}'
        os.mkdir(self.group)
        self.set('memory.max' if self.v2 else 'memory.limit_in_bytes', limit << 20)
        for name in ['memory.swap.max' if self.v2 else 'memory.memsw.limit_in_bytes']:
            try:
                self.set(name, 0 if self.v2 else limit << 20)
            except OSError:
                pass
        super().__init__(*arguments, **named)

    def set(self, name, value):
        open(os.path.join(self.group, name), 'w').write(str(value))

    def command(self):
        command, folder = super().command()
        return ['sh', '-c', f'echo $$ > {self.group}/cgroup.procs; exec "$@"', 'sh', *command], folder

    def kills(self):
        name = 'memory.events' if self.v2 else 'memory.oom_control'
        lines = dict(line.split() for line in open(os.path.join(self.group, name)))
        return int(lines.get('oom_kill', 0))

    def peak(self):
        return int(open(os.path.join(self.group, 'memory.peak' if self.v2 else 'memory.max_usage_in_bytes')).read()) >> 20

    def anonymous(self):
        status = open(f'/proc/{self.process.pid}/status').read()
        return int(status.split('RssAnon:')[1].split()[0]) // 1024

class Attack:
    def __init__(self, server, other, work):
        self.server, self.other, self.expected = server, other, answers(other)
        self.lock, self.statuses, self.wrong, self.refusals = threading.Lock(), defaultdict(Counter), [], {}
        self.families, self.largest, self.peaks, self.sent, self.kinds = {}, {}, {}, 0, kinds(work)

    def send(self, name, request):
        path, headers, body = request
        headers = dict(headers)
        connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=180)
        try:
            connection.request(headers.pop('X-Method', 'POST'), path, body, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
            if 'grpc' in headers.get('Content-Type', '') and answer.getheader('grpc-status', '0') != '0':
                status, text = 'grpc ' + answer.getheader('grpc-status'), answer.getheader('grpc-message', '').encode()
        except (OSError, http.client.HTTPException) as error:
            status, text = type(error).__name__, b''
            if self.server.process.poll() is not None:
                self.wrong.append(f'the server is gone after {name}')
        with self.lock:
            self.sent += 1
            self.statuses[name.split(':')[0]][status] += 1
            if (isinstance(status, int) and status >= 500 and status not in (501, 503)) or status == 'grpc 13':
                self.wrong.append(f'{name}: {status} {text[:200]}')
            if status not in (200, 201):
                self.refusals.setdefault(name, f'{status} {text[:220].decode(errors="replace")}')
        return status in (200, 201)

    def grow(self, name, make, most, draw):
        """The largest that is accepted: powers of four, then halves between. By other routes a kind is tried with what the first one took."""
        route, _, kind = name.partition(': ')
        family = 'pprof' if route.startswith(('push', 'ingest pprof', 'ingest form')) else route.split()[0]
        known = self.families.setdefault((family, kind), name)
        if known != name and family in ('pprof', 'OTLP'):
            size = max(self.largest[known], 1)
            self.largest[name] = size if self.send(name, make(size, draw)) else 0
            return
        low, high, size = 0, None, min(1024, most)
        while size <= most and self.alive():
            if self.send(name, make(size, draw)):
                low = size
                if size == most:
                    break
                size = min(size * 4, most)
            else:
                high = size
                break
        for _ in range(3 if high else 0):
            if not self.alive() or high - low < max(low // 8, 2):
                break
            middle = (low + high) // 2
            if self.send(name, make(middle, draw)):
                low = middle
            else:
                high = middle
        self.largest[name] = low

    def alive(self):
        return self.server.process.poll() is None

    def watch(self, name):
        """Peak of resident memory of this kind: the counter is reset."""
        try:
            self.peaks[name] = (self.server.memory()[1], self.server.anonymous())
            open(f'/proc/{self.server.process.pid}/clear_refs', 'w').write('5')
        except (OSError, IndexError):
            self.peaks.setdefault(name, (0, 0))

    def check(self, when):
        if not self.alive():
            return
        try:
            got = answers(self.server)
        except (SystemExit, OSError) as error:
            return self.wrong.append(f'{when}: no answer: {error}')
        self.wrong += [f'{when}: {name} differs' for name, body in self.expected.items() if got[name] != body]

def run(options, work):
    keep = ('--retention', '20000d', '--max-size', '100GiB')
    other = Server(options.plumb, os.path.join(work, 'control'), *keep)
    server = Limited(options.plumb, os.path.join(work, 'attacked'), *keep, limit=options.limit)
    try:
        control(other), control(server)
        attack = Attack(server, other, work)
        attack.check('before')
        if attack.wrong:
            print('\n'.join(attack.wrong))
            return 1
        if options.kinds:
            attack.kinds = [one for one in attack.kinds if any(word in one[0] for word in options.kinds.split(','))]
        print(f'{len(attack.kinds)} kinds; at rest {server.memory()[0]} MB')
        print('largest accepted of each kind (bytes or rows); peak of resident memory in MB; why the next was refused:', flush=True)
        draw = random.Random(1)
        for name, make, most in attack.kinds:
            attack.grow(name, make, most, draw)
            attack.watch(name)
            print(f'  {name}: {attack.largest[name]:,}; {attack.peaks[name][0]}; {attack.refusals.get(name, "never refused")}', flush=True)
            if not attack.alive():
                print(f'the server is gone, with {server.process.returncode}')
                break
        grown = attack.sent
        attack.check('with the largest of each kind')
        print(f'{grown} pushes to find the largest accepted of each kind; largest resident memory {max(peak for peak, _ in attack.peaks.values())} MB', flush=True)
        crowd(attack, options)
        finish(attack, options)
        report(attack, options)
        return 1 if attack.wrong else 0
    finally:
        for one in (server, other):
            if one.process.poll() is None:
                one.kill()
        os.rmdir(server.group)

def crowd(attack, options):
    """Random kinds and sizes, by several clients at once."""
    begin = time.time()
    def client(number):
        draw = random.Random(100 + number)
        while attack.sent < options.pushes and attack.alive():
            name, make, most = draw.choice(attack.kinds)
            size = int(min(most, 2 ** draw.uniform(0, draw.choice([12, 12, 12, 16, 20, 24, 26]))))
            attack.send(name, make(max(size, 1), draw))
    clients = [threading.Thread(target=client, args=(number,)) for number in range(options.clients)]
    [one.start() for one in clients]
    last = 0
    while any(one.is_alive() for one in clients):
        time.sleep(5)
        if attack.sent - last >= 1000:
            last = attack.sent
            attack.check(f'at {last} pushes')
            print(f'  {last} pushes, {time.time() - begin:.0f} s, memory {attack.server.memory() if attack.alive() else "gone"} MB', flush=True)
    [one.join() for one in clients]
    if attack.alive():
        attack.watch('all at once')

def finish(attack, options):
    server = attack.server
    for step in ['flush', 'compact', 'compact']:
        if attack.alive():
            server.post(f'/api/v1/admin/{step}', connection=server.connection(patience=900))
            attack.check(f'after {step}')
            attack.watch(f'after {step}')
    if attack.alive():
        of_hostile(server)
        attack.watch('queries of what was pushed')
        server.kill()
        server.start()
        attack.check('after a kill and a start')
        attack.watch('after a kill and a start')

def of_hostile(server):
    """What the attacker, or a page that looks at everything, asks about what was pushed."""
    start, end = BASE - 9000, BASE + 9000
    query = f'query=%7Bservice_name%3D%22hostile%22%7D&type={TYPE}&from={start}&until={end}'
    span = dict(start=start * 1000, end=end * 1000)
    of = dict(profile_typeID=TYPE, label_selector='{service_name="hostile"}', **span)
    asked = [(path, lambda path=path: server.get(f'/api/v1/{path}?{query}')) for path in ['findings', 'functions', 'selection/flame', 'selection/tree']]
    methods = [('SelectMergeStacktraces', of), ('SelectMergeProfile', of), ('Series', dict(matchers=['{service_name="hostile"}'], **span))]
    asked += [(method, lambda method=method, of=of: server.post('/querier.v1.QuerierService/' + method, json.dumps(of).encode())) for method, of in methods]
    for name, ask in asked:
        begin = time.time()
        try:
            status, body = ask()
        except (OSError, http.client.HTTPException) as error:
            status, body = type(error).__name__, b''
        said = '' if status == 200 else body[:150].decode(errors='replace')
        took, memory = time.time() - begin, server.memory() if server.process.poll() is None else 'gone'
        print(f'  {name} of what was pushed: {status}, {len(body):,} bytes, {took:.1f} s, memory {memory} {said}', flush=True)

def report(attack, options):
    server = attack.server
    print(f'{attack.sent} pushes of {len(attack.kinds)} kinds')
    for route, statuses in sorted(attack.statuses.items()):
        print(f'  {route}: ' + ', '.join(f'{count} × {status}' for status, count in sorted(statuses.items(), key=str)))
    peak = max(peak for peak, _ in attack.peaks.values())
    for name in ['all at once', 'after flush', 'after compact', 'queries of what was pushed', 'after a kill and a start']:
        print(f'{name}: resident memory at its peak {attack.peaks.get(name, ("?",))[0]} MB')
    kills = server.kills()
    print(f'resident memory at its peak {peak} MB (limit {MOST_RSS}); cgroup at its peak {server.peak()} MB of {options.limit}; kills {kills}')
    if peak > MOST_RSS:
        attack.wrong.append(f'{peak} MB of resident memory')
    if kills:
        attack.wrong.append(f'{kills} kills')
    print('WRONG:\n  ' + '\n  '.join(f'{count} × {one}' for one, count in Counter(attack.wrong).items()) if attack.wrong else 'all answers about the control are the same')

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--pushes', type=int, default=10_000)
    parser.add_argument('--clients', type=int, default=8)
    parser.add_argument('--limit', type=int, default=1024, help='MiB of memory of the cgroup')
    parser.add_argument('--kinds', help='only kinds whose names contain one of these, with commas between')
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='plumb-hostile-')
    try:
        return run(options, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)

if __name__ == '__main__':
    raise SystemExit(main())
