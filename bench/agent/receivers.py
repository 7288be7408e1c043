#!/usr/bin/env python3
"""Do OTLP receivers that are not plumb's have what the agent says it sent? Pyroscope and OpenTelemetry's collector, beside `plumb serve`.

    receivers.py --plumb target/release/plumb [--pyroscope PATH] [--collector PATH] [--seconds 40] [--switches]

Three agents at the same time, with the same options and `--symbols agent`: to `plumb serve`, to Pyroscope, to the collector. The collector passes on
to a plain sink, to a second `plumb serve` by HTTP in batches, to a third by gRPC, and to a second Pyroscope by gRPC. --switches: with --off-cpu, --page-faults,
--kernel-time and --processes.

Exact: CPU time, time off the CPU and page faults of each receiver are what its agent's last log line says it sent; the agent dropped nothing; the collector's
receivers have the same sums of all profile types. Close: the functions' shares of a program that spends 60, 30 and 10%. Exit status 1 if any of it is not so. Root.

Receivers, with Go 1.26:
  Pyroscope: in a copy of grafana/pyroscope
    CGO_ENABLED=0 go build -tags netgo ./cmd/pyroscope          (without the tag embedassets it needs no web page)
  Collector: receivers.yaml with
    dist: {name: otelcol, output_path: ./otelcol}
    receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.165.0}]
    exporters: [{gomod: go.opentelemetry.io/collector/exporter/otlpexporter v0.165.0},
                {gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v0.165.0}]
    providers: [{gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.71.0},
                {gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.71.0}]
    CGO_ENABLED=0 go run go.opentelemetry.io/collector/cmd/builder@v0.165.0 --config receivers.yaml
"""
import argparse, os, re, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sinks import Agent, BENCH, Sink
from server import Server, free_port
import json

SPLIT = {'sixty': 60, 'thirty': 30, 'ten': 10}
SWITCHES = ['--off-cpu', '--page-faults', '--kernel-time', '--processes']
# Sample types of what the agent's last line counts.
SENT = {'sent_ns': ['cpu'], 'off_cpu_sent_ns': ['off_cpu', 'run_queue', 'run-queue'], 'page_faults_sent': ['page_faults', 'page-faults']}

# What of Pyroscope takes the address of the first interface, if none is given, where nobody listens.
RINGS = ['segment-writer.lifecycler.addr', 'distributor.ring.instance-addr', 'query-frontend.instance-addr', 'query-scheduler.ring.instance-addr', 'overrides-exporter.ring.instance-addr',
         'memberlist.advertise-addr', 'ingester.lifecycler.addr', 'store-gateway.sharding-ring.instance-addr', 'compactor.ring.instance-addr']

class Pyroscope(Server):
    """The same calls, as the server of plumb has Pyroscope's."""
    patience = 120

    def command(self):
        grpc, raft, gossip = free_port(), free_port(), free_port()
        os.makedirs(self.store)
        return [self.plumb, '-config.file=', '-server.http-listen-address=127.0.0.1', f'-server.http-listen-port={self.port}', '-server.grpc-listen-address=127.0.0.1',
                f'-server.grpc-listen-port={grpc}', f'-memberlist.bind-port={gossip}', '-memberlist.bind-addr=127.0.0.1', f'-metastore.raft.bind-address=127.0.0.1:{raft}',
                f'-metastore.raft.advertise-address=127.0.0.1:{raft}', f'-metastore.raft.server-id=127.0.0.1:{raft}', f'-metastore.address=127.0.0.1:{grpc}', f'-query-backend.address=127.0.0.1:{grpc}',
                *[f'-{ring}=127.0.0.1' for ring in RINGS], '-enable-query-backend-from=2020-10-20T00:00:00Z', '-self-profiling.disable-push=true', '-usage-stats.enabled=false', *self.options], self.store

class Collector:
    def __init__(self, program, folder, exporters):
        self.port, self.log_path = free_port(), os.path.join(folder, 'collector.log')
        config = {
            'receivers': {'otlp': {'protocols': {'http': {'endpoint': f'127.0.0.1:{self.port}'}}}},
            'exporters': exporters,
            'service': {'telemetry': {'metrics': {'level': 'none'}}, 'pipelines': {'profiles': {'receivers': ['otlp'], 'exporters': list(exporters)}}},
        }
        path = os.path.join(folder, 'collector.json')
        json.dump(config, open(path, 'w'))
        log = open(self.log_path, 'wb')
        self.process = subprocess.Popen([program, '--feature-gates=service.profilesSupport', '--config', path], stdout=log, stderr=log)
        for _ in range(300):
            if b'Everything is ready' in open(self.log_path, 'rb').read():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f'the collector is not ready: {open(self.log_path).read()[-2000:]}')

    def stop(self):
        """What it has it passes on first."""
        self.process.terminate()
        self.process.wait(timeout=60)

class Answers:
    """What a server with Pyroscope's API has."""
    def __init__(self, server):
        self.server = server
        self.range = {'start': int((time.time() - 3600) * 1000), 'end': int((time.time() + 3600) * 1000)}
        self.types = [one['ID'] for one in self.ask('ProfileTypes').get('profileTypes', [])]

    def ask(self, method, **body):
        return json.loads(self.server.rpc(method, **self.range, **body))

    def flame(self, kind, selector='{}'):
        graph = self.ask('SelectMergeStacktraces', profileTypeID=kind, labelSelector=selector, maxNodes=1 << 20).get('flamegraph', {})
        own = {}
        for level in graph.get('levels', []):
            values = [int(value) for value in level.get('values', [])]
            for at in range(0, len(values), 4):
                name = graph['names'][values[at + 3]]
                own[name] = own.get(name, 0) + values[at + 2]
        return int(graph.get('total', 0)), own

    def of(self, sample_type):
        """The profile type of a sample type; '' if there is none."""
        return next((one for one in self.types if one.split(':')[1] == sample_type), '')

    def sums(self):
        """As series: Pyroscope leaves stacks of which no frame has a name out of flame graphs, and of their totals."""
        return {kind.split(':')[1]: self.total(kind) for kind in self.types}

    def total(self, kind):
        series = self.ask('SelectSeries', profileTypeID=kind, labelSelector='{}', step=60).get('series', [])
        return sum(int(float(point.get('value', 0))) for one in series for point in one['points'])

    def services(self, name='service_name'):
        return set(self.ask('LabelValues', name=name).get('names', []))

    def labels(self):
        return {name for name in self.ask('LabelNames').get('names', []) if not name.startswith('__')}

    def settled(self, wanted):
        """Sums, once they are what was sent, or after a minute: what came last is not found at once."""
        for _ in range(20):
            self.__init__(self.server)
            sums = self.sums()
            if all(amount(sums, sent) == wanted[sent] for sent in SENT):
                break
            time.sleep(3)
        return sums

def amount(sums, sent):
    return sum(sums.get(one, 0) for one in SENT[sent])

def shares(own):
    total = sum(own.values()) or 1
    return {name: 100 * sum(value for function, value in own.items() if function == name) / total for name in SPLIT}

def text_of(shares):
    return ' / '.join(f'{share:.1f}' for share in shares.values())

def version(program, *words):
    out = subprocess.run([program, *words], capture_output=True, text=True)
    return ' '.join((out.stdout + out.stderr).split())[:160]

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--pyroscope', help='program of Pyroscope')
    parser.add_argument('--collector', help="program of OpenTelemetry's collector")
    parser.add_argument('--seconds', type=int, default=40)
    parser.add_argument('--switches', action='store_true', help='all profiles that the agent can send')
    parser.add_argument('--keep', help='folder for logs, which stays')
    options = parser.parse_args()
    plumb = os.path.abspath(options.plumb)
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or made
        os.makedirs(folder, exist_ok=True)
        run(plumb, folder, options)

def run(plumb, folder, options):
    path = lambda name: os.path.join(folder, name)
    subprocess.run(['cc', '-O2', '-g', '-o', path('split'), os.path.join(BENCH, 'programs/split/split.c')], check=True)
    servers = {'plumb serve': Server(plumb, path('own'))}
    sink, collector, to = None, None, {'plumb serve': servers['plumb serve'].port}
    if options.pyroscope:
        print('Pyroscope:', version(options.pyroscope, '-version'))
        servers['Pyroscope'] = Pyroscope(os.path.abspath(options.pyroscope), path('pyroscope'))
        to['Pyroscope'] = servers['Pyroscope'].port
    if options.collector:
        print('Collector:', version(options.collector, '-v'))
        sink = Sink()
        url = lambda server: f'http://127.0.0.1:{server.port}'
        servers['collector, plumb serve'], servers['collector, gRPC, plumb serve'] = Server(plumb, path('passed-on')), Server(plumb, path('by-grpc'))
        now = {'sending_queue': {'enabled': False}}
        exporters = {
            'otlp_http/sink': {'endpoint': f'http://127.0.0.1:{sink.server.server_port}', **now},
            # Several requests become one: their dictionaries are merged.
            'otlp_http/plumb': {'endpoint': url(servers['collector, plumb serve']), 'sending_queue': {'batch': {'flush_timeout': '12s', 'min_size': 10_000_000}}},
            'otlp_grpc/plumb': {'endpoint': url(servers['collector, gRPC, plumb serve']), 'tls': {'insecure': True}, **now},
        }
        if options.pyroscope:
            servers['collector, gRPC, Pyroscope'] = Pyroscope(os.path.abspath(options.pyroscope), path('pyroscope-grpc'))
            exporters['otlp_grpc/pyroscope'] = {'endpoint': url(servers['collector, gRPC, Pyroscope']), 'tls': {'insecure': True}, **now}
        collector = Collector(options.collector, folder, exporters)
        to['collector'] = collector.port
    busy = subprocess.Popen([path('split'), str(options.seconds + 20)], env=dict(os.environ, OTEL_SERVICE_NAME='busy', OTEL_RESOURCE_ATTRIBUTES='service.version=1.2'))
    switches = SWITCHES if options.switches else []
    agents = {name: Agent(plumb, folder, 'agent-' + name.split()[0].lower() + name.split()[-1], f'http://127.0.0.1:{port}', '--symbols', 'agent', *switches) for name, port in to.items()}
    time.sleep(options.seconds)
    for agent in agents.values():
        agent.stop()
    ends = {name: agent.ended() for name, agent in agents.items()}
    busy.kill()
    busy.wait()
    if collector:
        collector.stop()
    wrong, rows, seen = [], [], {}
    for name, server in servers.items():
        agent = name if name in ends else 'collector'
        answers = Answers(server)
        sums = answers.settled(ends[agent])
        seen[name] = answers, sums
        kind = answers.of('cpu')
        own = answers.flame(kind, '{service_name="busy"}')[1] if kind else {}
        # Pyroscope does not read attributes of the dictionary: to it all that a collector passes on is one service.
        row(rows, wrong, name, ends[agent], sums, shares(own) if name != 'collector, gRPC, Pyroscope' else {})
    if sink:
        own = {function: value for (service, function), value in sink.leaves.items() if service == 'busy'}
        row(rows, wrong, 'collector, sink', ends['collector'], sink.types, shares(own))
        if sink.faults:
            wrong.append(f'collector, sink: {sink.faults}')
    print('\n| receiver | CPU time sent, ns | it has | time off the CPU sent, ns | it has | page faults sent | it has | dropped | busy: sixty / thirty / ten, % |')
    print('|---|---|---|---|---|---|---|---|---|')
    for one in rows:
        print('| ' + ' | '.join(one) + ' |')
    print('\n| receiver | services | labels | profile types |')
    print('|---|---|---|---|')
    for name, (answers, _) in seen.items():
        print(f'| {name} | {len(answers.services())} | {len(answers.labels())} | {", ".join(f"`{kind}`" for kind in sorted(answers.types))} |')
    if sink:
        expected = sink.types
        for name, (_, sums) in seen.items():
            if name.startswith('collector') and sums != expected:
                wrong.append(f'{name}: other sums than the sink: {sorted(set(sums.items()) ^ set(expected.items()))}')
    # Services of a moment may be in the windows of one agent alone.
    if 'Pyroscope' in seen:
        ours, theirs = seen['plumb serve'][0], seen['Pyroscope'][0]
        print('\nLabels that only one has:', sorted(ours.labels() ^ theirs.labels()) or 'none')
        print('Services that only one has:', sorted(ours.services() ^ theirs.services()) or 'none')
    for name, agent in agents.items():
        log = open(agent.log, errors='replace').read()
        said = sorted({re.sub(r'^\S+ +| id [0-9a-f-]{36}', '', line)[:400] for line in log.splitlines() if re.search(r'\b(WARN|ERROR)\b', line)})
        for line in said[:6]:
            print(f'{name}: agent: {line}')
    for line in wrong:
        print('wrong:', line)
    for server in servers.values():
        server.kill()
    sys.exit(bool(wrong))

def row(rows, wrong, name, end, sums, of_split):
    cells = [name]
    for sent in SENT:
        has = amount(sums, sent)
        cells += [str(end[sent]), str(has)]
        if has != end[sent]:
            wrong.append(f'{name}: {sent} {end[sent]}, it has {has}: {has - end[sent]:+}')
    rows.append([*cells, str(end['dropped']), text_of(of_split)])
    if end['dropped'] or end['spooled']:
        wrong.append(f'{name}: the agent dropped {end["dropped"]} samples, {end["spooled"]} are in its spool')
    for function, share in of_split.items():
        if abs(share - SPLIT[function]) > 3:
            wrong.append(f'{name}: {function} has {share:.1f}% of busy')

main()
