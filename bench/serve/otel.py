#!/usr/bin/env python3
"""What the OpenTelemetry eBPF profiler sends is what the store has, to the sample, for each program.

    otel.py --plumb target/release/plumb --profiler EBPF_PROFILER [--seconds 600]

The profiler samples this machine at 97 Hz while compilers and scripts run, and sends its requests over gRPC to this script, which keeps a count of
the timestamps in each and passes the request on as it is to `plumb serve`. At the end the timestamps by program are held against the sums of the
store. Root; Python with grpcio.
"""
import argparse, collections, concurrent.futures, json, os, signal, subprocess, sys, tempfile, time
import grpc

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path[:0] = [BENCH, os.path.join(BENCH, 'store')]
from protobuf import all_of
from server import Server, free_port

EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export'
CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'

def timestamps(sample):
    """How many timestamps a sample has: fixed64, packed or not."""
    return sum(len(value) // 8 for value in all_of(sample, 5))

def text_attributes(resource):
    for attribute in all_of(resource, 1):
        key = all_of(attribute, 1)
        for value in all_of(attribute, 2):
            for text in all_of(value, 1):
                yield key[0].decode(), text.decode(errors='replace')

def count(request, sums):
    """Adds the timestamps of a request by program; returns all of them."""
    total = 0
    for of_resource in all_of(request, 1):
        resource = all_of(of_resource, 1)
        attributes = dict(text_attributes(resource[0])) if resource else {}
        program = attributes.get('process.executable.name', '')
        for scope in all_of(of_resource, 2):
            for profile in all_of(scope, 2):
                number = sum(timestamps(sample) for sample in all_of(profile, 2))
                sums[program] += number
                total += number
    return total

class Relay(grpc.GenericRpcHandler):
    def __init__(self, server):
        channel = grpc.insecure_channel(f'127.0.0.1:{server.port}', options=[('grpc.max_send_message_length', 1 << 28)])
        self.send, self.sums, self.requests, self.bytes = channel.unary_unary(EXPORT), collections.Counter(), 0, 0

    def service(self, details):
        def take(body, _context):
            answer = self.send(body)
            count(body, self.sums)
            self.requests += 1
            self.bytes += len(body)
            return answer
        return grpc.unary_unary_rpc_method_handler(take)

LOADS = [
    'while :; do gcc -O1 -c -o /dev/null -x c - <<X\nint f(int x){return x*x;} int main(int c,char**v){return f(c);}\nX\ndone',
    f'while :; do {sys.executable} -c "sum(i*i for i in range(3000000))"; gzip -c /usr/bin/perl > /dev/null; done',
]

def main():
    options = argparse.ArgumentParser()
    options.add_argument('--plumb', default='target/release/plumb')
    options.add_argument('--profiler', required=True)
    options.add_argument('--seconds', type=int, default=600)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.abspath(options.plumb), os.path.join(folder, 'store'))
        relay, port = Relay(server), free_port()
        sink = grpc.server(concurrent.futures.ThreadPoolExecutor(2), options=[('grpc.max_receive_message_length', 1 << 28)])
        sink.add_generic_rpc_handlers((relay,))
        sink.add_insecure_port(f'127.0.0.1:{port}')
        sink.start()
        loads = [subprocess.Popen(['nice', '-n', '19', 'bash', '-c', load], start_new_session=True) for load in LOADS]
        log = open(os.path.join(folder, 'profiler.log'), 'wb')
        profiler = subprocess.Popen([options.profiler, '-collection-agent', f'127.0.0.1:{port}', '-disable-tls', '-samples-per-second', '97'], stdout=log, stderr=log)
        begin = time.time()
        while time.time() < begin + options.seconds and profiler.poll() is None:
            time.sleep(1)
        early = profiler.poll()
        for load in loads:
            os.killpg(load.pid, signal.SIGKILL)
        if early is not None:
            raise SystemExit(f'the profiler ended with {early}: {open(log.name).read()[-2000:]}')
        # Its last request is on the way for some seconds.
        time.sleep(8)
        profiler.send_signal(signal.SIGINT)
        profiler.wait()
        sink.stop(5).wait()
        stored = collections.Counter()
        answer = json.loads(server.rpc('SelectSeries', profileTypeID=CPU, labelSelector='{}', start=int(begin * 1000) - 60_000, end=int(time.time() * 1000) + 60_000,
                                       step=86400, groupBy=['process_executable_name']))
        for series in answer['series']:
            name = next((label['value'] for label in series.get('labels', []) if label['name'] == 'process_executable_name'), '')
            stored[name] += sum(point['value'] for point in series['points'])
        period = 1_000_000_000 // 97
        wrong = [(name, relay.sums[name], stored[name] / period) for name in relay.sums | stored if relay.sums[name] * period != stored[name]]
        print(f'{time.time() - begin:.0f} s, {relay.requests} requests, {relay.bytes / 1e6:.1f} MB')
        print(f'{sum(relay.sums.values())} timestamps of {len(relay.sums)} programs sent; {sum(stored.values()) / period:.3f} samples of {len(stored)} programs stored')
        for name, number in relay.sums.most_common(5):
            print(f'  {name:20} sent {number:8}  stored {stored[name] / period:10.3f}')
        memory = server.memory()
        print(f'peak memory of the server {memory[1]} MB; its processor time {server.cpu():.1f} s')
        server.stop()
        if wrong or not relay.sums:
            raise SystemExit(f'{len(wrong)} programs differ: {wrong[:10]}')
        print('equal for every program')

main()
