#!/usr/bin/env python3
"""Does a server that is not plumb's get what plumb's own gets? Two agents at the same time, one to `plumb serve`, one to a plain sink of OTLP over HTTP.

    sinks.py --plumb target/release/plumb [--seconds 60]

The sink adds up what the requests say, by nothing but the protocol's numbers of fields. Exact: each agent's sent_ns is what its receiver has. Close: the two agents'
sums of the one busy program, as they sample at different moments. Root.
"""
import argparse, gzip, http.server, json, os, re, signal, subprocess, sys, tempfile, threading, time

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path[:0] = [BENCH, os.path.join(BENCH, 'store')]
from protobuf import all_of, packed
from server import Server, free_port

CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'

class Sink:
    """Sums by service of the profiles whose sample type is `cpu`."""
    def __init__(self):
        self.sums, self.requests = {}, 0
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
        for resource in all_of(body, 1):
            service = ''
            for pair in all_of(all_of(resource, 1)[0], 1):
                if all_of(pair, 1)[0] == b'service.name':
                    service = all_of(all_of(pair, 2)[0], 1)[0].decode()
            for scope in all_of(resource, 2):
                for profile in all_of(scope, 2):
                    kind = all_of(all_of(profile, 1)[0], 1)
                    if kind and texts[kind[0]] == 'cpu':
                        values = (sum(packed(values)) for sample in all_of(profile, 2) for values in all_of(sample, 4))
                        self.sums[service] = self.sums.get(service, 0) + sum(values)

def ended(log):
    line = [line for line in open(log, errors='replace') if re.search(r'\bstopped\b', line)][-1]
    return {name: int(value) for name, value in re.findall(r'(\w+)=(\d+)', line)}

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--seconds', type=int, default=60)
    options = parser.parse_args()
    plumb, sink = os.path.abspath(options.plumb), Sink()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(plumb, os.path.join(folder, 'store'))
        busy = subprocess.Popen(['sh', '-c', 'while :; do :; done'], env=dict(os.environ, OTEL_SERVICE_NAME='busy'))
        agents = []
        for name, url, who in ('own', f'http://127.0.0.1:{server.port}', 'auto'), ('sink', f'http://127.0.0.1:{sink.server.server_port}', 'agent'):
            log = os.path.join(folder, name + '.log')
            command = [plumb, 'agent', '--to', url, '--spool', os.path.join(folder, name), '--interval', '5', '--symbols', who, '--max-cpu', '100%']
            agents.append((name, log, subprocess.Popen(command, stdout=open(log, 'wb'), stderr=subprocess.STDOUT)))
        time.sleep(options.seconds)
        for _, _, process in agents:
            process.send_signal(signal.SIGTERM)
        for _, _, process in agents:
            process.wait(timeout=60)
        busy.kill()
        busy.wait()
        def stored(selector):
            command = [plumb, 'query', '--to', f'http://127.0.0.1:{server.port}', '--type', CPU, '--json', '--from', 'now-1h', '--until', 'now+1h', 'functions', '--query', selector]
            return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['total']
        own, other = (ended(log) for _, log, _ in agents)
        total, at_sink = stored('{}'), sum(sink.sums.values())
        both = stored('{service_name="busy"}'), sink.sums.get('busy', 0)
        server.stop()
    print(f'plumb serve: sent {own["sent_ns"]} ns, stored {total} ns: {total - own["sent_ns"]:+}')
    print(f'OTLP sink:   sent {other["sent_ns"]} ns, received {at_sink} ns in {sink.requests} requests: {at_sink - other["sent_ns"]:+}')
    ratio = both[1] / max(both[0], 1)
    print(f'one busy program: plumb serve {both[0] / 1e9:.2f} s, sink {both[1] / 1e9:.2f} s, ratio {ratio:.3f}')
    sys.exit(not (total == own['sent_ns'] and at_sink == other['sent_ns'] and 0.9 < ratio < 1.1))

main()
