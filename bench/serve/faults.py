#!/usr/bin/env python3
"""plumb serve under faults: kill -9 while clients push, tokens and certificates that change under load, blocks that are deleted or damaged.

  faults.py [--plumb PLUMB] [--kills 20] [--seconds 20] [--rate 1000]

Needs openssl. Every push has a second and a value of its own, so that one that is lost, stored twice or wrong shows. Prints a line for each claim; fails if one does not hold.
"""
import argparse, atexit, contextlib, http.client, itertools, json, os, random, shutil, signal, ssl, subprocess, sys, tempfile, threading, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../store'))
from server import Server

TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
BASE = int(time.time()) - 2 * 86400
STAYS = 'stays-0123456789abcdef'
# Seconds until a change is taken: after SIGHUP, and without (docs/server/access.md: within ten; one is for finding out).
SIGNALLED, UNSIGNALLED = 2, 11
REFUSED = 'not reloaded: the old one stays'
failures = []

def claim(text, holds, saw=''):
    print(('ok    ' if holds else 'FAILS ') + text + (f': {saw}' if saw != '' else ''), flush=True)
    if not holds:
        failures.append(text)

class Site(Server):
    """A server that may have TLS, with a certificate of this authority (a file)."""
    def __init__(self, plumb, store, *options, authority=None):
        self.context = authority and ssl.create_default_context(cafile=authority)
        super().__init__(plumb, store, *options)
        atexit.register(lambda: self.process.kill())

    def connection(self):
        kind, more = (http.client.HTTPSConnection, {'context': self.context}) if self.context else (http.client.HTTPConnection, {})
        return kind('127.0.0.1', self.port, timeout=30, **more)

    def ask(self, path, body=None, token=None, connection=None):
        """Status, headers and body of an answer; a POST if there is a body."""
        one = connection or self.connection()
        headers = {'Content-Type': 'application/json' if body and body.startswith(b'{') else 'text/plain'} | ({'Authorization': f'Bearer {token}'} if token else {})
        one.request('GET' if body is None else 'POST', path, body, headers)
        answer = one.getresponse()
        return answer.status, answer.headers, answer.read()

    def query(self, query, token=None, step=60):
        body = json.dumps(dict(profile_typeID=TYPE, label_selector='{}', start=(BASE - 10) * 1000, end=(BASE + 3 * 86400) * 1000, step=step)).encode()
        return self.ask(query) if query.startswith('/') else self.ask('/querier.v1.QuerierService/' + query, body, token)

    def there(self, token=None):
        """What is stored: number of a push to its value."""
        status, _, body = self.query('SelectSeries', token, step=1)
        if status != 200:
            sys.exit(f'SelectSeries: {status} {body[:300]}')
        found = {}
        for point in (point for series in json.loads(body).get('series', []) for point in series['points']):
            number = int(point['timestamp']) // 1000 - BASE
            found[number] = found.get(number, 0) + int(point['value'])
        return found

    def said(self, text):
        return open(self.log_path).read().count(text)

def push(name, when, value):
    return f'/ingest?name=load-{name}&sampleRate=1000000000&from={when}', f'main;f{value} {value}\n'.encode()

def value(number):
    return number % 97 + 1

class Load:
    """Clients that keep their connections and ask at a rate until they are stopped: three cheap reads and a push in turn, or pushes only."""
    READS = ['/api/v1/services?from=now-1h', '/api/v1/types?from=now-1h', '/ready']

    def __init__(self, server, rate, token=None, clients=8, reads=READS, renew=None):
        self.server, self.token, self.reads, self.pause, self.renew = server, token, reads, clients / rate, renew
        self.times, self.failed, self.acknowledged, self.connections, self.numbers = [], [], set(), 0, itertools.count()
        self.stopping, self.begin = threading.Event(), time.monotonic()
        self.threads = [threading.Thread(target=self.work, args=(place,), daemon=True) for place in range(clients)]
        [thread.start() for thread in self.threads]

    def work(self, place):
        connection, due = None, time.monotonic() + place * self.pause / len(self.threads)
        for turn in itertools.count(place):
            time.sleep(max(0, due - time.monotonic()))
            if self.stopping.is_set():
                return
            if not connection or self.renew and turn % self.renew == 0:
                connection, _ = self.server.connection(), connection and connection.close()
                self.connections += 1
            begin, kind = time.monotonic(), turn % (len(self.reads) + 1)
            try:
                self.one(connection, self.reads[kind] if kind < len(self.reads) else None)
            except Exception as error:
                self.failed.append(f'{type(error).__name__} {error}')
                connection = connection.close()
                time.sleep(0.01)
            now = time.monotonic()
            self.times.append(now - begin)
            # Who is late does not catch up on more than a second.
            due = max(due + self.pause, now - 1)

    def one(self, connection, read):
        number = None if read else next(self.numbers)
        status, _, body = self.server.ask(read, None, self.token, connection) if read else self.server.ask(*push(number % 7, BASE + number, value(number)), self.token, connection)
        if status != 200:
            self.failed.append(f'{status} {body[:100]}')
        elif not read:
            self.acknowledged.add(number)

    def stop(self):
        self.stopping.set()
        [thread.join() for thread in self.threads]
        self.seconds, self.sent = time.monotonic() - self.begin, next(self.numbers)

    def claims(self, what):
        """What has to hold of a load that no fault may reach."""
        times, found = sorted(self.times), self.server.there(self.token)
        print(f'      {what}: {len(times)} requests in {self.seconds:.0f} s, {len(times) / self.seconds:.0f} a second, over {self.connections} connections; '
              f'median {times[len(times) // 2] * 1000:.1f} ms, 99 of 100 within {times[len(times) * 99 // 100] * 1000:.0f} ms, slowest {times[-1] * 1000:.0f} ms')
        claim(f'{what}: failed requests', not self.failed, f'{len(self.failed)} {self.failed[:3] or ""}'.strip())
        claim(f'{what}: every push is there once', found == {number: value(number) for number in self.acknowledged}, f'{len(found)} of {len(self.acknowledged)}')

def since(begin, holds, limit=30):
    """Waits until it holds, and returns the seconds since the beginning."""
    while not holds() and time.monotonic() - begin < limit:
        time.sleep(0.005)
    return time.monotonic() - begin

def longest(times):
    return f'{len(times)} times, {max(times) * 1000:.0f} ms at most'

def write(path, text, in_place=False):
    with open(path if in_place else path + '.new', 'w', opener=lambda *how: os.open(*how, 0o600)) as out:
        out.write(text)
    if not in_place:
        os.replace(path + '.new', path)

def killed(options, work):
    """kill -9 at random moments, some of them while blocks are written or merged."""
    draw, clients, lost, wrong = random.Random(1), 6, set(), set()
    server = Site(options.plumb, os.path.join(work, 'killed'))
    load = Load(server, options.rate, clients=clients, reads=[])
    def look(acknowledged):
        found = server.there()
        lost.update(acknowledged - found.keys())
        wrong.update(number for number, sum in found.items() if sum != value(number))
        return found
    def quietly(task):
        with contextlib.suppress(Exception):
            server.ask(task, b'')
    between = []
    for _ in range(options.kills):
        before = len(load.acknowledged)
        time.sleep(0.2 + draw.random() * 0.6)
        task = draw.choice([None, '/api/v1/admin/flush', '/api/v1/admin/compact'])
        if task:
            threading.Thread(target=quietly, args=(task,), daemon=True).start()
            time.sleep(draw.random() * 0.05)
        server.kill()
        acknowledged = set(load.acknowledged)
        between.append(len(acknowledged) - before)
        server.start()
        look(acknowledged)
    load.stop()
    found = look(load.acknowledged)
    more = found.keys() - load.acknowledged
    known, all_there, rest = (sum(map(value, load.acknowledged)), sum(found.values()), sum(map(value, more)))
    print(f'      kill -9: {options.kills} kills, {load.sent} pushes of {clients} clients, {len(load.acknowledged)} acknowledged, at least {min(between)} between two kills')
    claim('kill -9: acknowledged profiles that are lost, after each start and at the end', not lost and min(between), len(lost))
    claim('kill -9: profiles with another value than was pushed', not wrong, len(wrong))
    claim('kill -9: the sum is that of the acknowledged ones and of those in flight', all_there == known + rest and len(more) <= clients * options.kills, f'{all_there} = {known} + {rest} ({len(more)} in flight)')
    server.stop()

def tokens(options, work):
    """Each second the tokens' file changes, by renaming or in place; one token stays, one is added, one goes."""
    path = os.path.join(work, 'tokens')
    text = lambda number: f'{STAYS} write,read\nchanging-{number:012} read\n'
    write(path, text(0))
    server = Site(options.plumb, os.path.join(work, 'reloaded'), '--tokens', path)
    status = lambda number: server.ask(Load.READS[0], token=f'changing-{number:012}')[0]
    load, before, added, removed = Load(server, options.rate, STAYS), [], [], []
    for number in range(1, options.seconds + 1):
        due = time.monotonic() + 1
        before.append((status(number - 1), status(number)) == (200, 401))
        write(path, text(number), in_place=number % 2)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGHUP)
        added.append(since(begin, lambda: status(number) == 200))
        removed.append(since(begin, lambda: status(number - 1) == 401))
        time.sleep(max(0, due - time.monotonic()))
    load.stop()
    load.claims('tokens changed')
    claim('tokens changed: until then the old one is let in and the new one is not', all(before), f'{sum(before)} of {len(before)}')
    claim(f'tokens changed: the added one is let in within {SIGNALLED} s of SIGHUP', max(added) <= SIGNALLED, longest(added))
    claim(f'tokens changed: the removed one is refused within {SIGNALLED} s of SIGHUP', max(removed) <= SIGNALLED, longest(removed))
    server.stop()

def certificate(folder, serial):
    """A certificate for 127.0.0.1 and a key of its own, signed by the folder's authority: the texts of both."""
    issuer = ['-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.crt']
    server = ['-subj', '/CN=plumb', '-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE', '-CA', 'ca.crt', '-CAkey', 'ca.key',
              '-set_serial', str(serial), '-keyout', 'made.key', '-out', 'made.crt']
    for more in [server] if os.path.exists(os.path.join(folder, 'ca.crt')) else [issuer, server]:
        made = subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', *more], cwd=folder, capture_output=True, text=True)
        if made.returncode:
            sys.exit(made.stderr)
    return [open(os.path.join(folder, name)).read() for name in ('made.crt', 'made.key')]

def presented(server):
    """The serial number that a new connection gets."""
    with contextlib.closing(server.connection()) as one:
        one.connect()
        return int(one.sock.getpeercert()['serialNumber'], 16)

def certificates(options, work):
    """The certificate is renewed, with and without SIGHUP; files that can't be used change nothing."""
    paths, made = (os.path.join(work, 'server.crt'), os.path.join(work, 'server.key')), [certificate(work, 0x1001)]
    [write(*both) for both in zip(paths, made[0])]
    server = Site(options.plumb, os.path.join(work, 'renewed'), '--tls-cert', paths[0], '--tls-key', paths[1], authority=os.path.join(work, 'ca.crt'))
    load = Load(server, options.rate, renew=50)
    def renewals(times, limit, how, signals):
        taken = []
        for _ in range(times):
            made.append(certificate(work, 0x1001 + len(made)))
            [write(*both) for both in zip(paths, made[-1])]
            begin = time.monotonic()
            if signals:
                server.process.send_signal(signal.SIGHUP)
            taken.append(since(begin, lambda: presented(server) == 0x1000 + len(made)))
            time.sleep(0.5)
        claim(f'certificate renewed: new connections get it within {limit} s {how}', max(taken) <= limit, longest(taken))
    renewals(max(3, options.seconds // 4), SIGNALLED, 'of SIGHUP', True)
    renewals(2, UNSIGNALLED, 'without a signal', False)
    chain = made[-1][0]
    for what, text in {'what is no certificate': chain[:40] + chain[60:], 'an empty file': '', 'half of it': chain[:len(chain) // 2], 'one of another key': made[0][0], 'no file': None}.items():
        said = server.said(REFUSED)
        os.remove(paths[0]) if text is None else write(paths[0], text)
        server.process.send_signal(signal.SIGHUP)
        logged = since(time.monotonic(), lambda: server.said(REFUSED) > said, SIGNALLED) < SIGNALLED
        claim(f'certificate replaced by {what}: the old one is served, and the log says so', logged and {presented(server) for _ in range(20)} == {0x1000 + len(made)})
    renewals(1, SIGNALLED, 'of SIGHUP, after that', True)
    load.stop()
    load.claims('certificate renewed')
    server.stop()

RANGE = 'from=now-2d&until=now'
# Queries, and the total that an answer has.
TOTALS = {
    'SelectSeries': lambda one: sum(int(point.get('value', 0)) for series in one.get('series', []) for point in series['points']),
    'SelectMergeStacktraces': lambda one: int(one['flamegraph']['total']),
    f'/pyroscope/render?query={TYPE}%7B%7D&{RANGE}': lambda one: one['flamebearer']['numTicks'],
    f'/api/v1/functions?{RANGE}': lambda one: one['total'],
    f'/api/v1/series?{RANGE}': lambda one: sum(point.get('value', 0) for series in one for point in series['points']),
    f'/api/v1/selection?{RANGE}': lambda one: sum(event['weight'] for event in one['events']),
    f'/api/v1/findings?{RANGE}': lambda one: one['cpu_ns'],
}
OTHERS = ['ProfileTypes', 'LabelNames', 'Series', *(f'/api/v1/{one}?{RANGE}' for one in ('services', 'labels', 'flame', 'verdict', 'export', 'selection/tree'))]

class Blocks(Site):
    """A server with four blocks, each of an hour and a value of its own, and a profile that is in none."""
    def __init__(self, plumb, store):
        super().__init__(plumb, store)
        hour = int(time.time()) // 3600 * 3600
        self.values, self.folder = {hour - (place + 2) * 3600: 10 ** place for place in range(5)}, os.path.join(store, 'blocks/anonymous/blocks')
        for place, (when, number) in enumerate(self.values.items()):
            self.ask(*push(place, when, number))
            if place < 4:
                self.post('/api/v1/admin/flush')
        self.paths = {int(name.split('-')[0]) // 1000: os.path.join(self.folder, name) for name in os.listdir(self.folder)}

    def looks(self, query, expected):
        """What is wrong with an answer, if anything: of the blocks that it says are missing (by their time), and its total."""
        status, headers, answer = self.query(query)
        missing = {int(span.split('-')[0]) // 1000 for span in headers.get('plumb-missing', '').split(',') if span}
        left = sum(number for when, number in self.values.items() if when not in missing)
        total = int(TOTALS[query](json.loads(answer))) if status == 200 and query in TOTALS else left
        if status != 200 or total != left or missing not in expected:
            return f'{query.split("?")[0]}: status {status}, {len(missing)} blocks said to be missing, total {total}, left without them {left}'

    def claims(self, what, *expected, restarts=False):
        wrong, queries = [], [*TOTALS, *OTHERS]
        for query in queries:
            if restarts:
                self.stop()
                self.start()
            wrong += filter(None, [self.looks(query, expected)])
        claim(f'{what}: {len(queries)} queries answer with exactly what is left, and say what is missing', not wrong, f'{len(wrong)} do not: {"; ".join(wrong[:2])}' if wrong else '')

    def counted(self, what, blocks):
        counted = [line.split()[1] for line in self.get('/metrics')[1].decode().splitlines() if line.startswith('plumb_store_damaged_blocks ')]
        claim(f'{what}: /metrics counts {blocks}', counted == [str(blocks)])

def blocks(options, work):
    """Of a block a file goes, of another bytes change: while the server runs, and before it starts. Then both are mended from a backup, and their block.json is damaged."""
    server = Blocks(options.plumb, os.path.join(work, 'damaged'))
    gone, changed = sorted(server.paths)[1:3]
    backup = shutil.copytree(server.folder, os.path.join(work, 'backup'))
    os.remove(os.path.join(server.paths[gone], 'series.parquet'))
    with open(os.path.join(server.paths[changed], 'samples.parquet'), 'r+b') as file:
        content = bytearray(file.read())
        content[len(content) // 2] ^= 0xff
        file.seek(0)
        file.write(content)
    server.claims('a file deleted, one changed, the server runs', set(), {gone}, {gone, changed})
    server.claims('a file deleted, one changed, a start before each query', {gone}, {gone, changed}, restarts=True)
    server.ask(f'/api/v1/functions?{RANGE}')
    server.counted('a file deleted, one changed', 2)
    claim('a file deleted, one changed: the log has the reasons', server.said('series.parquet is damaged: it is not there') and server.said('samples.parquet is damaged: its checksum is another'))
    server.post('/api/v1/admin/compact')
    server.claims('a file deleted, one changed, the other blocks merged', {gone, changed})
    server.stop()
    for when in (gone, changed):
        shutil.copytree(os.path.join(backup, os.path.basename(server.paths[when])), server.paths[when], dirs_exist_ok=True)
    server.start()
    server.claims('copied from the backup', set())
    server.counted('copied from the backup', 0)
    server.stop()
    about = [os.path.join(server.paths[when], 'block.json') for when in (gone, changed)]
    os.truncate(about[0], os.path.getsize(about[0]) // 2)
    write(about[1], json.dumps(json.load(open(about[1])) | {'version': 99}))
    server.start()
    server.counted('block.json cut, one of a newer layout', 2)
    server.claims('block.json cut, one of a newer layout', {gone, changed})
    server.stop()

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--kills', type=int, default=20)
    parser.add_argument('--seconds', type=int, default=20)
    parser.add_argument('--rate', type=int, default=1000, help='requests a second')
    options = parser.parse_args()
    options.plumb = os.path.abspath(options.plumb)
    print(f'{subprocess.run([options.plumb, "--version"], capture_output=True, text=True).stdout.strip()}; {os.cpu_count()} processors')
    work = tempfile.mkdtemp(prefix='plumb-faults-')
    for part in (killed, tokens, certificates, blocks):
        part(options, work)
    if failures:
        sys.exit(f'{len(failures)} of these do not hold; stores and logs are in {work}')
    shutil.rmtree(work)
    print('all hold')

main()
