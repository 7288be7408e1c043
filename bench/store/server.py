"""Starts `plumb serve`, pushes profiles, asks: what the scripts of this folder share."""
import gzip, http.client, json, os, signal, socket, subprocess, time

def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)

def field(tag, content):
    return varint(tag << 3 | 2) + varint(len(content)) + content

def number(tag, value):
    return varint(tag << 3) + varint(value) if value else b''

def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]

class Server:
    # Seconds until it is ready.
    patience = 30

    def __init__(self, plumb, store, *options, env=None, port=None, log=None):
        self.plumb, self.store, self.options, self.env = plumb, store, options, env
        self.port, self.log_path = port or free_port(), log or store.rstrip('/') + '.log'
        self.start()

    def command(self):
        """What starts it, and where."""
        return [self.plumb, 'serve', '--listen', f'127.0.0.1:{self.port}', '--store', self.store, '--no-agent', *self.options], None

    def start(self):
        self.log = open(self.log_path, 'ab')
        command, folder = self.command()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, cwd=folder, env=dict(os.environ, **(self.env or {})))
        for _ in range(self.patience * 20):
            try:
                if self.get('/ready')[0] == 200:
                    return self
            except OSError:
                pass
            if self.process.poll() is not None:
                raise SystemExit(f'{self.plumb} ended with {self.process.returncode}: see {self.log.name}')
            time.sleep(0.05)
        raise SystemExit(f'{self.plumb} is not ready after {self.patience} s: see {self.log.name}')

    def connection(self, patience=120):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=patience)

    def ask(self, method, path, body=None, headers={}, connection=None):
        connection = connection or self.connection()
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def get(self, path):
        return self.ask('GET', path)

    def post(self, path, body=b'', kind='application/json', connection=None):
        return self.ask('POST', path, body, {'Content-Type': kind}, connection)

    def put(self, path, body):
        return self.ask('PUT', path, body)

    def rpc(self, method, **body):
        status, answer = self.post('/querier.v1.QuerierService/' + method, json.dumps(body).encode())
        if status != 200:
            raise SystemExit(f'{method}: {status} {answer[:300]}')
        return answer

    def memory(self):
        """Resident memory now and at its peak, in MB."""
        status = open(f'/proc/{self.process.pid}/status').read()
        of = lambda key: int(status.split(key + ':')[1].split()[0]) // 1024
        return of('VmRSS'), of('VmHWM')

    def cpu(self):
        """Processor time so far, in seconds."""
        fields = open(f'/proc/{self.process.pid}/stat').read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def kill(self):
        self.process.kill()
        self.process.wait()

def push_request(profiles):
    """PushRequest of (labels, pprof bytes)."""
    request = b''
    for labels, profile in profiles:
        pairs = b''.join(field(1, field(1, name.encode()) + field(2, value.encode())) for name, value in sorted(labels.items()))
        request += field(1, pairs + field(2, field(1, gzip.compress(profile, compresslevel=1, mtime=0))))
    return request

def corpus(folder, first=0, last=None):
    """Requests of the corpus, each with the time that it had at 1795246147 s."""
    base = 1795246147 * 10**9
    manifest = [json.loads(line) for line in open(os.path.join(folder, 'manifest.jsonl'))]
    begin = manifest[0]['t_ns']
    for entry in manifest[first:last]:
        profile = open(os.path.join(folder, entry['file']), 'rb').read()
        # The last time_nanos counts.
        profile += varint(9 << 3) + varint(base + entry['t_ns'] - begin)
        yield push_request([(entry['labels'], profile)]), entry

def size(store):
    """Bytes of the tables of all blocks that count, and their number."""
    import glob
    metas = [json.load(open(path)) for path in glob.glob(os.path.join(store, 'blocks/*/blocks/*/block.json'))]
    replaced = {one for meta in metas for one in meta['replaces']}
    metas = [meta for meta in metas if meta['id'] not in replaced]
    return sum(file['bytes'] for meta in metas for file in meta['files'].values()), len(metas)
