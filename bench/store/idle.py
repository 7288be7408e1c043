#!/usr/bin/env python3
"""What days of mostly idle services take: 13 small services are recorded for a while at 97 Hz, and what they did is pushed again and again.

  idle.py record OUT.txt --seconds 3600 --plumb PLUMB     # needs root: starts the services, records them, writes their samples as text
  idle.py push OUT.txt --to URL --days 5                  # a profile per service and 15 s, as an agent sends it

The services wake up each second or so and do what such services do: read /proc, run a command, look at a file, answer a timer. No two hours are the
same: each pushed hour takes the recorded windows in an order of its own.
"""
import argparse, collections, http.client, json, os, random, re, subprocess, sys, tempfile, time
from server import field, number, push_request, varint

PYTHON = {
    'metrics': "import os,time\nwhile 1:\n for p in os.listdir('/proc'):\n  if p.isdigit():\n   try: open(f'/proc/{p}/stat').read()\n   except OSError: pass\n time.sleep(1)",
    'cleaner': "import os,time\nwhile 1:\n for r,d,f in os.walk('/usr/lib/python3'):\n  pass\n time.sleep(30)",
    'config': "import json,time,hashlib\nd={str(i):[i]*5 for i in range(2000)}\nwhile 1:\n hashlib.sha256(json.dumps(d).encode()).hexdigest(); time.sleep(2)",
    'queue': "import queue,threading,time\nq=queue.Queue()\ndef w():\n while 1: q.get()\nfor _ in range(4): threading.Thread(target=w,daemon=True).start()\nwhile 1:\n for i in range(50): q.put(i)\n time.sleep(.2)",
    'web': "import http.server,threading,urllib.request,time\nclass H(http.server.SimpleHTTPRequestHandler):\n def log_message(*a): pass\ns=http.server.ThreadingHTTPServer(('127.0.0.1',0),H)\nthreading.Thread(target=s.serve_forever,daemon=True).start()\nwhile 1:\n urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').read(); time.sleep(1)",
    'database': "import sqlite3,time\nc=sqlite3.connect(':memory:'); c.execute('create table t(a,b)')\nwhile 1:\n c.executemany('insert into t values(?,?)',[(i,str(i)) for i in range(500)]); c.execute('select b,count(*) from t group by b limit 5').fetchall(); c.execute('delete from t'); time.sleep(1)",
    'logs': "import re,time\nr=re.compile(r'(\\d+)\\.(\\d+) (\\w+)')\nwhile 1:\n for i in range(3000): r.search(f'{i}.{i} word')\n time.sleep(3)",
}
OTHER = {
    'cron': ['sh', '-c', 'while :; do date >/dev/null; ls /tmp >/dev/null; sleep 5; done'],
    'watch': ['bash', '-c', 'while :; do for f in /etc/*; do [ -f "$f" ]; done; sleep 1; done'],
    'ps': ['sh', '-c', 'while :; do ps -eo pid,comm >/dev/null; sleep 10; done'],
    'timer': ['perl', '-e', 'while(1){ my %h; $h{$_ % 97} .= "x" for 1..20000; select(undef,undef,undef,1); }'],
    'node': ['node', '-e', 'setInterval(()=>{let o={};for(let i=0;i<3e4;i++)o["k"+i%999]=i;JSON.stringify(o)},1000)'],
    'awk': ['sh', '-c', 'while :; do awk "BEGIN{for(i=0;i<200000;i++)s+=i%7}"; sleep 2; done'],
}

def record(options):
    services, folder = {}, tempfile.mkdtemp()
    for name, code in PYTHON.items():
        services[name] = subprocess.Popen([sys.executable, '-c', code], cwd=folder)
    for name, command in OTHER.items():
        services[name] = subprocess.Popen(command)
    recording = os.path.join(folder, 'idle.plumb')
    try:
        subprocess.run([options.plumb, 'record', '-F', '97', '-p', ','.join(str(one.pid) for one in services.values()), '--duration',
                        str(options.seconds), '-o', recording], check=True)
    finally:
        for one in services.values():
            one.kill()
    # Children of a service are told by their parent, which the recording knows.
    text = subprocess.run([options.plumb, 'script', '-F', 'comm,tid,pid,time,event,sym,dso,period', recording], check=True, capture_output=True, text=True).stdout
    with open(options.out, 'w') as out:
        out.write(json.dumps({one.pid: name for name, one in services.items()}) + '\n' + text)
    print(f'{len(text)} bytes of samples')

# Which service a command belongs to that has another process than the service's own.
CHILDREN = {'date': 'cron', 'ls': 'cron', 'ps': 'ps', 'mawk': 'awk', 'awk': 'awk', 'gawk': 'awk'}
HZ, WINDOW = 97, 15

def windows(path):
    """By window of 15 s and service, stacks (outermost first) with their number of samples."""
    with open(path) as file:
        pids = {int(pid): name for pid, name in json.loads(next(file)).items()}
        found, first, stack, head = collections.defaultdict(collections.Counter), None, [], None
        for line in file:
            if line.startswith('\t'):
                stack.append(line.strip())
            elif line.strip():
                head = re.match(r'^(.*?)\s+(\d+)/(\d+)\s+(\d+\.\d+):\s+(\d+)', line)
                stack = []
            elif head and stack:
                comm, pid, moment = head[1].strip(), int(head[2]), float(head[4])
                service = pids.get(pid) or CHILDREN.get(comm) or 'cron'
                first = moment if first is None else first
                found[int((moment - first) // WINDOW), service][tuple(reversed(stack))] += 1
                head = None
    return found

def pprof(stacks, time_ns):
    texts, functions, mappings, out = {'': 0}, {}, {}, bytearray()
    text = lambda one: texts.setdefault(one, len(texts))
    kind = number(1, text('cpu')) + number(2, text('nanoseconds'))
    out += field(1, kind)
    for stack, count in stacks.items():
        ids = b''.join(varint(functions.setdefault(frame, len(functions) + 1)) for frame in reversed(stack))
        out += field(2, field(1, ids) + field(2, varint(count * (10**9 // HZ))))
    for frame, place in functions.items():
        name, _, mapping = frame.rpartition(' (')
        mapping = mappings.setdefault(mapping.rstrip(')'), len(mappings) + 1)
        out += field(4, number(1, place) + number(2, mapping) + field(4, number(1, place)))
        out += field(5, number(1, place) + number(2, text(name or frame)) + number(3, text(name or frame)))
    for mapping, place in mappings.items():
        out += field(3, number(1, place) + number(5, text(mapping)) + number(7, 1))
    for one in texts:
        out += field(6, one.encode())
    return bytes(out + number(9, time_ns) + number(10, WINDOW * 10**9) + field(11, kind) + number(12, 10**9 // HZ))

def push(options):
    recorded = windows(options.out)
    count = 1 + max(window for window, _ in recorded)
    by_window = collections.defaultdict(list)
    for (window, service), stacks in recorded.items():
        by_window[window].append((service, stacks))
    total = int(options.days * 86400 / WINDOW)
    begin = (int(time.time() - options.ago * 86400) // WINDOW - total) * WINDOW
    connection, order, pushed, samples = http.client.HTTPConnection(options.to.split('//')[1], timeout=60), [], 0, 0
    draw = random.Random(options.ago)
    for window in range(total):
        if not order:
            order = list(range(count))
            draw.shuffle(order)
        profiles = []
        for service, stacks in by_window[order.pop()]:
            labels = {'__name__': 'process_cpu', 'service_name': service, 'node': 'node-0'}
            profiles.append((labels, pprof(stacks, (begin + window * WINDOW) * 10**9)))
            pushed, samples = pushed + 1, samples + sum(stacks.values())
        if profiles:
            connection.request('POST', '/push.v1.PusherService/Push', push_request(profiles), {'Content-Type': 'application/proto'})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                sys.exit(f'{answer.status} {body[:300]}')
    print(json.dumps(dict(recorded_windows=count, pushed_windows=total, profiles=pushed, samples=samples, from_ms=begin * 1000, until_ms=(begin + total * WINDOW) * 1000)))

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['record', 'push'])
    parser.add_argument('out')
    parser.add_argument('--seconds', type=int, default=3600)
    parser.add_argument('--plumb', default='plumb')
    parser.add_argument('--to')
    parser.add_argument('--days', type=float, default=5)
    parser.add_argument('--ago', type=float, default=0, help='days since the end of what is pushed')
    options = parser.parse_args()
    globals()[options.what](options)

if __name__ == '__main__':
    main()
