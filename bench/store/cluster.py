#!/usr/bin/env python3
"""Three servers on one bucket, one killed in the middle of a compaction: every server has to answer the exact total, and so have the bare files.

  cargo install s3s-fs --version 0.14.1 --features binary
  cluster.py --plumb PLUMB --s3 s3s-fs --corpus DIR [--engines duckdb,chdb,spark]
"""
import argparse, json, os, shutil, subprocess, sys, tempfile, threading, time
from server import Server, corpus, free_port

HERE = os.path.dirname(os.path.abspath(__file__))
TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
BEGIN, END = 1795246147000 - 60000, 1795246147000 + 40 * 60000

class Member(Server):
    """A server of the bucket, with a log of its own."""
    def __init__(self, plumb, wal, env):
        self.port = free_port()
        options = ['--wal', wal, '--advertise', f'http://127.0.0.1:{self.port}', '--retention', '10000d']
        super().__init__(plumb, 's3://profiles/cluster', *options, env=env, port=self.port, log=wal + '.log')

def total(server):
    answer = json.loads(server.rpc('SelectSeries', profile_typeID=TYPE, label_selector='{}', start=BEGIN, end=END, step=86400))
    return sum(int(point['value']) for series in answer.get('series', []) for point in series['points'])

def merged(server):
    answer = json.loads(server.rpc('SelectMergeStacktraces', profile_typeID=TYPE, label_selector='{}', start=BEGIN, end=END, max_nodes=64))
    return int(answer['flamegraph']['total'])

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='plumb')
    parser.add_argument('--s3', default='s3s-fs')
    parser.add_argument('--corpus', required=True)
    parser.add_argument('--engines', default='duckdb,chdb,spark')
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='plumb-cluster-')
    root, port = os.path.join(work, 's3'), free_port()
    os.makedirs(os.path.join(root, 'profiles'))
    s3 = subprocess.Popen([options.s3, '--host', '127.0.0.1', '--port', str(port), '--access-key', 'k', '--secret-key', 's', root], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    env = {'AWS_REGION': 'us-east-1', 'AWS_ACCESS_KEY_ID': 'k', 'AWS_SECRET_ACCESS_KEY': 's', 'AWS_ENDPOINT_URL': f'http://127.0.0.1:{port}', 'AWS_ALLOW_HTTP': 'true'}
    try:
        servers = [Member(options.plumb, os.path.join(work, f'wal-{number}'), env) for number in range(3)]
        # Each knows the others when it has looked into the bucket again.
        time.sleep(12)
        alive, pushed = list(servers), 0
        for number, (request, entry) in enumerate(corpus(options.corpus)):
            if number == 1000:
                for server in alive:
                    server.post('/api/v1/admin/flush')
                compacting = threading.Thread(target=lambda: quietly(servers[0]))
                compacting.start()
                time.sleep(0.3)
                servers[0].kill()
                alive = servers[1:]
                print(f'after {number} profiles one of three is killed in the middle of a compaction; the others answer {total(servers[1])} and {total(servers[2])}, {pushed} were pushed')
            server = alive[number % len(alive)]
            status, body = server.post('/push.v1.PusherService/Push', request, 'application/proto')
            if status != 200:
                sys.exit(f'{status} {body[:200]}')
            pushed += entry['samples'] * (10**9 // 97)
        print(f'pushed {pushed} in all; the two answer {[total(server) for server in alive]} with what is in no block yet')
        servers[0].start()
        time.sleep(12)
        print(f'the third is back: totals {[total(server) for server in servers]}, merged {[merged(server) for server in servers]}')
        for server in servers:
            server.post('/api/v1/admin/flush')
        # Its lease has to run out before another one compacts.
        for _ in range(25):
            for server in servers:
                server.post('/api/v1/admin/compact')
            blocks = [name for name in os.listdir(os.path.join(root, 'profiles/cluster/anonymous/blocks'))]
            metas = [json.load(open(os.path.join(root, 'profiles/cluster/anonymous/blocks', name, 'block.json'))) for name in blocks if os.path.exists(os.path.join(root, 'profiles/cluster/anonymous/blocks', name, 'block.json'))]
            live = {meta['id'] for meta in metas} - {one for meta in metas for one in meta['replaces']}
            if len(live) == 1:
                break
            time.sleep(10)
        time.sleep(12)
        totals = [total(server) for server in servers] + [merged(server) for server in servers]
        print(f'compacted to {len(live)} block: {totals}')
        subprocess.run([sys.executable, os.path.join(HERE, 'engines.py'), os.path.join(root, 'profiles/cluster/anonymous'), '--server', f'http://127.0.0.1:{servers[1].port}', '--engines', options.engines], check=True, stderr=subprocess.DEVNULL)
        if any(one != pushed for one in totals):
            sys.exit(f'not exact: {pushed} were pushed')
        [server.stop() for server in servers]
        print('all exact')
    finally:
        s3.terminate()
    shutil.rmtree(work)

def quietly(server):
    try:
        server.post('/api/v1/admin/compact')
    except Exception:
        pass

main()
