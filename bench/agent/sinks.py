#!/usr/bin/env python3
"""Does a server that is not plumb's get what plumb's own gets? Two agents at the same time, one to `plumb serve`, one to a plain sink of OTLP over HTTP.

    sinks.py --plumb target/release/plumb [--seconds 60]

The sink adds up what the requests say, by nothing but the protocol's numbers of fields. Exact: each agent's sent_ns is what its receiver has. Close: the two agents'
sums of the one busy program, as they sample at different moments. Root.
"""
import argparse, gzip, http.server, json, os, re, signal, subprocess, sys, tempfile, threading, time

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path[:0] = [BENCH, os.path.join(BENCH, 'store')]
from protobuf import all_of, fields, packed
from server import Server, free_port

CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'

class Sink:
    """Sums by service of the profiles whose sample type is `cpu`; those of all types, and of their leaf functions; which rules of the dictionary were broken."""
    def __init__(self):
        self.sums, self.types, self.leaves, self.faults, self.requests = {}, {}, {}, set(), 0
        sink = self
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                sink.take(gzip.decompress(body) if self.headers.get('Content-Encoding') == 'gzip' else body)
                self.send_response(200)
                self.send_header('Content-Length', '0')
                self.end_headers()
            def do_GET(self):
                self.send_error(404)
            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, body):
        self.requests += 1
        dictionary = all_of(body, 2)[0]
        texts = [one.decode() for one in all_of(dictionary, 5)]
        number = lambda message, field: (all_of(message, field) or [0])[0]
        functions = [texts[number(one, 1)] for one in all_of(dictionary, 3)]
        lines = [all_of(one, 3) for one in all_of(dictionary, 2)]
        stacks = [[place for places in all_of(one, 1) for place in packed(places)] for one in all_of(dictionary, 7)]
        self.check(dictionary, texts, functions, lines, stacks)
        def leaf(sample):
            places = stacks[number(sample, 1)]
            return functions[number(lines[places[0]][0], 1)] if places and lines[places[0]] else ''
        def text(message, own, reference):
            """A text, or the row of the dictionary that is one: collectors write these."""
            return all_of(message, own)[0].decode() if all_of(message, own) else texts[number(message, reference)]
        for resource in all_of(body, 1):
            attributes = all_of(all_of(resource, 1)[0], 1)
            service = next((text(all_of(pair, 2)[0], 1, 8) for pair in attributes if text(pair, 1, 3) == 'service.name'), '')
            for scope in all_of(resource, 2):
                for profile in all_of(scope, 2):
                    kind = texts[number(number(profile, 1) or b'', 1)]
                    for sample in all_of(profile, 2):
                        value = sum(sum(packed(values)) for values in all_of(sample, 4))
                        self.types[kind] = self.types.get(kind, 0) + value
                        if kind == 'cpu':
                            self.sums[service] = self.sums.get(service, 0) + value
                            key = service, leaf(sample)
                            self.leaves[key] = self.leaves.get(key, 0) + value

    def check(self, dictionary, texts, functions, lines, stacks):
        """What the protocol asks of dictionaries: the first row of each table is empty, and no string is there twice."""
        first = [all_of(dictionary, table)[0] for table in (1, 4, 6)]
        # Ids of zeros are as good as none.
        if texts[0] or functions[0] or lines[0] or stacks[0] or any(any(value) if isinstance(value, bytes) else value for row in first for _, value in fields(row)):
            self.faults.add('a first row is not empty')
        if len(set(texts)) != len(texts):
            self.faults.add('a string is there twice')

def ended(log):
    line = [line for line in open(log, errors='replace') if re.search(r'\bstopped\b', line)][-1]
    return {name: int(value) for name, value in re.findall(r'(\w+)=(\d+)', line)}

class Agent:
    """An agent that sends to a URL, with its spool and its log in a folder."""
    def __init__(self, plumb, folder, name, url, *options):
        self.log = os.path.join(folder, name + '.log')
        command = [plumb, 'agent', '--to', url, '--spool', os.path.join(folder, name), '--interval', '5', '--max-cpu', '100%', *options]
        self.process = subprocess.Popen(command, stdout=open(self.log, 'wb'), stderr=subprocess.STDOUT)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)

    def ended(self):
        self.process.wait(timeout=60)
        return ended(self.log)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--seconds', type=int, default=60)
    options = parser.parse_args()
    plumb, sink = os.path.abspath(options.plumb), Sink()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(plumb, os.path.join(folder, 'store'))
        busy = subprocess.Popen(['sh', '-c', 'while :; do :; done'], env=dict(os.environ, OTEL_SERVICE_NAME='busy'))
        agents = [Agent(plumb, folder, 'own', f'http://127.0.0.1:{server.port}', '--symbols', 'auto'),
                  Agent(plumb, folder, 'sink', f'http://127.0.0.1:{sink.server.server_port}', '--symbols', 'agent')]
        time.sleep(options.seconds)
        for agent in agents:
            agent.stop()
        own, other = (agent.ended() for agent in agents)
        busy.kill()
        busy.wait()
        def stored(selector):
            command = [plumb, 'query', '--to', f'http://127.0.0.1:{server.port}', '--type', CPU, '--json', '--from', 'now-1h', '--until', 'now+1h', 'functions', '--query', selector]
            return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['total']
        total, at_sink = stored('{}'), sum(sink.sums.values())
        both = stored('{service_name="busy"}'), sink.sums.get('busy', 0)
        server.stop()
    print(f'plumb serve: sent {own["sent_ns"]} ns, stored {total} ns: {total - own["sent_ns"]:+}')
    print(f'OTLP sink:   sent {other["sent_ns"]} ns, received {at_sink} ns in {sink.requests} requests: {at_sink - other["sent_ns"]:+}')
    ratio = both[1] / max(both[0], 1)
    print(f'one busy program: plumb serve {both[0] / 1e9:.2f} s, sink {both[1] / 1e9:.2f} s, ratio {ratio:.3f}')
    sys.exit(not (total == own['sent_ns'] and at_sink == other['sent_ns'] and 0.9 < ratio < 1.1))

if __name__ == '__main__':
    main()
