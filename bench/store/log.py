#!/usr/bin/env python3
"""Bytes of the write-ahead log beside those on the wire, and the processor time of a push; of one plumb beside another.

  corpus.py --seed 42 --n 1500 --out CORPUS; log.py CORPUS PLUMB [OLDER_PLUMB]
"""
import glob, os, sys, tempfile
from server import Server, push_request

def spent_ms(pid):
    fields = open(f'/proc/{pid}/stat').read().rsplit(') ', 1)[1].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

def measure(plumb, files):
    with tempfile.TemporaryDirectory() as work:
        server = Server(plumb, os.path.join(work, 'store'), '--retention', '10000d')
        wire, before = 0, spent_ms(server.process.pid)
        for place, path in enumerate(files):
            labels = {'__name__': 'process_cpu', 'service_name': f'service-{place % 13}'}
            body = push_request([(labels, open(path, 'rb').read())])
            wire += len(body)
            status, answer = server.post('/push.v1.PusherService/Push', body, 'application/proto')
            assert status == 200, answer
        spent = (spent_ms(server.process.pid) - before) / len(files)
        log = sum(os.path.getsize(path) for path in glob.glob(os.path.join(server.store, 'log', '*.wal')))
        print(f'{plumb}: {wire} bytes on the wire, {log} in the log ({log / wire:.2f}), {spent:.2f} ms of processor time a profile', flush=True)
        server.stop()

def main():
    files = sorted(glob.glob(os.path.join(sys.argv[1], '*.pb')))
    for plumb in sys.argv[2:]:
        measure(plumb, files)

if __name__ == '__main__':
    main()
