#!/usr/bin/env python3
"""Twelve planted stories and twelve healthy services, each in a store of 30 services: what the findings of the last hour name.

  stories.py --plumb PLUMB [--seed N] [--only WORDS]

Profiles of 15 s at 100 samples a second, as an agent or a client sends them: the load of each service walks at random, its requests are mixed at random, and samples
are drawn. A deployment is two minutes old. A story is named if one of the first three findings is about its service and has its words. In a healthy store
a finding is false if it says that something changed, comes in a rhythm or waits; so it is about a service without a story. A function with a large share is one, whatever
it means.

The bursts of a rhythm that is shorter than a profile are pushed as an agent finds them; how well it does is not measured here.
"""
import argparse, json, math, os, random, shutil, subprocess, sys, tempfile, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../store'))
from server import Server, field, number, push_request, varint

STEP, WINDOWS, HZ = 15, 240, 100
SECOND = 10**9
WORDS = 'parse load render price route check index scan join hash encode decode merge sort plan fetch store sign verify match score rank group split'.split()
THINGS = 'order cart user page item stock event query row token image rule batch header field policy quote ticket album score tag'.split()

def pprof(rows, kind, unit, when):
    """`rows`: stack from the outermost function, as a tuple, to a value."""
    names, places, body = {'': 0, kind: 1, unit: 2}, {}, b''
    text = lambda name: names.setdefault(name, len(names))
    for stack, value in rows.items():
        if value <= 0:
            continue
        ids = b''.join(varint(places.setdefault(name, len(places) + 1)) for name in reversed(stack))
        body += field(2, field(1, ids) + field(2, varint(int(value))))
    for name, id in places.items():
        body += field(4, number(1, id) + field(4, number(1, id))) + field(5, number(1, id) + number(2, text(name)) + number(3, text(name)))
    out = field(1, number(1, 1) + number(2, 2)) + body + b''.join(field(6, name.encode()) for name in names)
    if kind == 'cpu':
        out += field(11, number(1, 1) + number(2, 2)) + number(12, SECOND // HZ)
    return out + number(9, when) + number(10, STEP * SECOND)

class Service:
    """A tree of calls with a load that walks."""
    def __init__(self, name, draw, cpu=None):
        self.name, self.draw = name, draw
        self.cpu = cpu or draw.choice([0.2, 0.5, 1, 2])
        self.load, self.usual = 1.0, math.log(1)
        self.weights = {}
        for endpoint in range(draw.randint(3, 6)):
            outer = ('main', 'serve', f'{draw.choice(WORDS)}_{draw.choice(THINGS)}_{endpoint}')
            for inner in range(draw.randint(2, 5)):
                leaf = (f'{draw.choice(WORDS)}_{draw.choice(THINGS)}', f'{draw.choice(WORDS)}_{draw.choice(THINGS)}_{inner}')
                self.weights[outer + leaf] = draw.paretovariate(1.3)
        total = sum(self.weights.values())
        self.weights = {stack: weight / total for stack, weight in self.weights.items()}

    def largest(self, rank):
        return sorted(self.weights, key=self.weights.get)[-1 - rank]

    def window(self, factors={}, load=1.0, noise=0.15, mix=0.1):
        """Nanoseconds by stack in one window, sampled."""
        self.load = math.exp(0.95 * math.log(self.load) + self.draw.gauss(0, 0.05))
        now = self.load * load * math.exp(self.draw.gauss(0, noise))
        endpoints = {stack[2]: math.exp(self.draw.gauss(0, mix)) for stack in self.weights}
        rows = {}
        for stack, weight in self.weights.items():
            mean = self.cpu * STEP * HZ * weight * now * endpoints[stack[2]] * factors.get(stack, 1)
            rows[stack] = poisson(self.draw, mean) * SECOND // HZ
        return rows

def poisson(draw, mean):
    if mean > 50:
        return max(0, round(draw.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, draw.random()
    while product > limit:
        count, product = count + 1, product * draw.random()
    return count

class Feed:
    """What is pushed of a service."""
    def __init__(self, server, begin):
        self.server, self.begin, self.waiting = server, begin, []

    def add(self, service, window, rows, kind='process_cpu', value='cpu', unit='nanoseconds', at=0.0, **labels):
        when = self.begin + int((window * STEP + at) * SECOND)
        self.waiting.append(({'__name__': kind, 'service_name': service, **labels}, pprof(rows, value, unit, when)))
        if len(self.waiting) >= 100:
            self.send()

    def send(self):
        if self.waiting:
            status, body = self.server.post('/push.v1.PusherService/Push', push_request(self.waiting), 'application/proto')
            assert status == 200, (status, body)
        self.waiting = []

DEPLOYED = WINDOWS - 8
CLAIMS = ['change', 'rhythm', 'wait']

def plain(feed, service, version=None, windows=WINDOWS, **how):
    """Its windows, with a change at the deployment if `factors` is given."""
    factors, load = how.pop('factors', {}), how.pop('load', lambda window: 1.0)
    labels, label = how.pop('labels', {}), how.pop('label', 'service_version')
    for window in range(windows):
        is_new = window >= DEPLOYED
        more = {label: version[is_new]} if version else {}
        rows = service.window(factors if is_new or not version else {}, load(window), **how)
        feed.add(service.name, window, rows, **more, **labels)

def dearer(feed, service, draw):
    stack = service.largest(1)
    plain(feed, service, ('1.4.0', '1.5.0'), factors={stack: 1.5})
    return ['change'], [stack[-1], stack[-2]]

def dearer_under_load(feed, service, draw):
    stack = service.largest(2)
    plain(feed, service, ('7', '8'), factors={stack: 2}, load=lambda window: 1.5 if window >= DEPLOYED else 1)
    return ['change'], [stack[-1], stack[-2]]

def new_code(feed, service, draw):
    for window in range(WINDOWS):
        rows = service.window()
        if window >= DEPLOYED:
            rows['main', 'serve', 'audit_request', 'to_json'] = poisson(draw, 0.18 * service.cpu * STEP * HZ) * SECOND // HZ
        feed.add(service.name, window, rows, container_image_name='registry/shop:' + ('2026-12' if window >= DEPLOYED else '2026-11'))
    return ['change'], ['to_json', 'audit_request']

def each_minute(feed, service, draw):
    for window in range(WINDOWS):
        rows = service.window()
        if window % 4 == 1:
            rows['main', 'timer', 'rebuild_index'] = poisson(draw, 4 * HZ) * SECOND // HZ
        feed.add(service.name, window, rows)
    return ['rhythm'], ['rebuild_index']

def each_ten_seconds(feed, service, draw):
    for window in range(WINDOWS):
        rows, ours = service.window(), 0
        for at in range(window * STEP, (window + 1) * STEP):
            if at % 10 == 3:
                job = poisson(draw, 0.8 * HZ) * SECOND // HZ
                late = draw.uniform(0, 0.08)
                ours += job
                burst = {('main', 'cron', 'expire_sessions'): job, service.largest(0): service.cpu * 0.8 * SECOND}
                at = at - window * STEP + late
                feed.add(service.name, window, burst, 'burst_cpu', 'burst_cpu', at=at)
                feed.add(service.name, window, {('burst',): 0.8 * SECOND}, 'burst_length', 'burst_length', at=at)
        rows['main', 'cron', 'expire_sessions'] = ours
        feed.add(service.name, window, rows)
    return ['rhythm'], ['expire_sessions']

def each_five_minutes(feed, service, draw):
    for window in range(WINDOWS):
        rows = service.window()
        if window % 20 in (7, 8):
            rows['main', 'worker', 'export_report', 'write_csv'] = poisson(draw, 0.7 * STEP * HZ) * SECOND // HZ
        feed.add(service.name, window, rows)
    return ['rhythm'], ['write_csv', 'export_report']

LOCK = ('pthread_mutex_lock', '__lll_lock_wait', 'futex_wait')
IDLE = {('worker', 'pop', 'pthread_cond_wait', 'futex_wait'): 90 * SECOND, ('main', 'loop', 'epoll_wait', 'ep_poll'): STEP * SECOND}

def waits(feed, service, draw, locked, kind='off_cpu', value='off_cpu', idle=IDLE):
    for window in range(WINDOWS):
        feed.add(service.name, window, service.window())
        feed.add(service.name, window, {**idle, **locked(window)}, kind, value)

def convoy(feed, service, draw):
    stack = ('main', 'serve', 'get_item') + LOCK
    waits(feed, service, draw, lambda window: {stack: int(draw.uniform(30, 50) * SECOND) if window % 4 == 2 else SECOND // 100})
    return ['rhythm', 'wait'], ['get_item']

def contended(feed, service, draw):
    stack = ('main', 'serve', 'update_stock') + LOCK
    waits(feed, service, draw, lambda window: {stack: int(draw.uniform(30, 60) * SECOND)})
    return ['wait'], ['update_stock']

def contended_go(feed, service, draw):
    stack = ('net/http.(*conn).serve', 'main.(*cache).Get', 'sync.(*Mutex).Lock')
    waits(feed, service, draw, lambda window: {stack: int(draw.uniform(15, 40) * SECOND)}, 'mutex', 'delay', idle={})
    return ['wait'], ['main.(*cache).Get', 'cache']

def waits_for_disk(feed, service, draw):
    read = ('main', 'serve', 'load_page', 'pread64', 'filemap_read', 'io_schedule')
    for window in range(WINDOWS):
        version = '3.1' if window >= DEPLOYED else '3.0'
        feed.add(service.name, window, service.window(), service_version=version)
        seconds = draw.uniform(0.8, 1.2) * (4 if window >= DEPLOYED else 1)
        more = {('main', 'serve', f'call_{other}', 'recvfrom', 'sk_wait_data'): int(draw.uniform(1.5, 2.5) * SECOND) for other in range(3)}
        feed.add(service.name, window, {**IDLE, **more, read: int(seconds * SECOND)}, 'off_cpu', 'off_cpu', service_version=version)
    return ['change'], ['load_page', 'pread64', 'filemap_read', 'io_schedule']

def more_allocations(feed, service, draw):
    leaf = service.largest(0)
    for window in range(WINDOWS):
        version = 'b' if window >= DEPLOYED else 'a'
        rows = service.window()
        feed.add(service.name, window, rows, service_version=version)
        bytes_of = {stack: int(value / SECOND * 40e6 * math.exp(draw.gauss(0, 0.1))) for stack, value in rows.items()}
        if version == 'b':
            bytes_of[leaf] = bytes_of[leaf] * 3
        feed.add(service.name, window, bytes_of, 'memory', 'alloc_space', 'bytes', service_version=version)
    return ['change'], [leaf[-1], leaf[-2]]

def one_pod_is_old(feed, service, draw):
    """Rolled out pod by pod: three pods have the new version at the end, one the old."""
    stack = service.largest(1)
    for pod in range(4):
        for window in range(WINDOWS):
            is_new = window >= DEPLOYED - 4 * pod and pod < 3
            rows = service.window({stack: 1.6} if is_new else {})
            feed.add(service.name, window, rows, pod=f'pod-{pod}', service_version='2' if is_new else '1')
    return ['change'], [stack[-1], stack[-2]]

STORIES = [dearer, dearer_under_load, new_code, each_minute, each_ten_seconds, each_five_minutes, convoy, contended, contended_go, waits_for_disk, more_allocations, one_pod_is_old]

def of(**how):
    def one(feed, service, draw):
        plain(feed, service, **how)
    return one

def random_bursts(feed, service, draw):
    for window in range(WINDOWS):
        rows = service.window()
        if draw.random() < 0.15:
            rows['main', 'worker', 'resize_image'] = poisson(draw, 5 * HZ) * SECOND // HZ
        feed.add(service.name, window, rows)

def once(feed, service, draw):
    for window in range(WINDOWS):
        rows = service.window()
        if 100 <= window < 120:
            rows['main', 'admin', 'reindex'] = 12 * SECOND
        feed.add(service.name, window, rows)

def idle(feed, service, draw):
    waits(feed, service, draw, lambda window: {('main', 'serve', 'get_item') + LOCK: int(draw.expovariate(1) * SECOND / 10)})

def scaled_out(feed, service, draw):
    for pod in range(4):
        for window in range(0 if pod < 2 else 130, WINDOWS):
            feed.add(service.name, window, service.window(load=0.5 if window >= 130 else 1), pod=f'pod-{pod}')

def canary(feed, service, draw):
    for window in range(WINDOWS):
        feed.add(service.name, window, service.window(load=0.9), pod='a', service_version='1')
        if window >= DEPLOYED:
            feed.add(service.name, window, service.window(load=0.1), pod='b', service_version='2')

def faster(feed, service, draw):
    plain(feed, service, ('1', '2'), factors={service.largest(0): 0.7})

def fast_network(feed, service, draw):
    """A deployment after which calls to others take as long as before."""
    for window in range(WINDOWS):
        version = '2' if window >= DEPLOYED else '1'
        feed.add(service.name, window, service.window(), service_version=version)
        more = {('main', 'serve', f'call_{other}', 'recvfrom', 'sk_wait_data'): int(math.exp(draw.gauss(0, 0.3)) * 2 * SECOND) for other in range(4)}
        feed.add(service.name, window, {**IDLE, **more}, 'off_cpu', 'off_cpu', service_version=version)

HEALTHY = {
    'deployed, no change': of(version=('1', '2')),
    'deployed as traffic doubles': of(version=('1', '2'), load=lambda window: 2 if window >= DEPLOYED - 2 else 1),
    'traffic doubles': of(load=lambda window: 2 if window > 150 else 1),
    'noisy': of(noise=0.5, mix=0.4),
    'noisy and deployed': of(version=('1', '2'), noise=0.4, mix=0.3),
    'bursts at random': random_bursts, 'one long job': once, 'idle threads': idle, 'scaled out': scaled_out, 'canary': canary, 'deployed, faster': faster, 'deployed, same waits': fast_network,
}

def findings(plumb, server, begin):
    end = begin // SECOND + WINDOWS * STEP
    begun = time.monotonic()
    command = [plumb, 'query', 'findings', '--to', f'http://127.0.0.1:{server.port}', '--from', str(end - 3600), '--until', str(end), '--json']
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        sys.exit(f'{command}: {answer.stderr}')
    return json.loads(answer.stdout)['findings'], time.monotonic() - begun

def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--plumb', required=True)
    args.add_argument('--seed', type=int, default=1)
    args.add_argument('--only', default='')
    args = args.parse_args()
    draw = random.Random(args.seed)
    # Long enough ago that no answer is given that was computed before the profiles came.
    begin = (int(time.time()) - WINDOWS * STEP - 120) // STEP * STEP * SECOND
    work = tempfile.mkdtemp(prefix='plumb-stories-')
    try:
        server = Server(args.plumb, f'{work}/base')
        feed = Feed(server, begin)
        for one in range(29):
            plain(feed, Service(f'service-{one:02}', draw))
        feed.send()
        server.stop()
        named = false = of_all = healthy = 0
        for story in STORIES + list(HEALTHY):
            is_story = callable(story)
            name = story.__name__.replace('_', ' ') if is_story else story
            if args.only and args.only not in name:
                continue
            shutil.copytree(f'{work}/base', f'{work}/store')
            server = Server(args.plumb, f'{work}/store')
            feed, service = Feed(server, begin), Service('shop', draw, cpu=1)
            wanted = (story if is_story else HEALTHY[story])(feed, service, draw)
            feed.send()
            found, seconds = findings(args.plumb, server, begin)
            titles = [f"{one['kind']} {one.get('service')}: {one['title']}" for one in found[:3]]
            if is_story:
                kinds, words = wanted
                is_named = any(one.get('service') == 'shop' and one['kind'] in kinds and any(word in one['title'] for word in words) for one in found[:3])
                named, of_all = named + is_named, of_all + 1
                wrong = [f"{one['kind']} {one.get('service')}: {one['title']}" for one in found if one.get('service') != 'shop' and one['kind'] in CLAIMS]
                print(f"{'named    ' if is_named else 'NOT NAMED'} {name} ({words[0]}), {seconds:.2f} s: {'; '.join(titles) or '-'}" + (f' -- FALSE: {wrong}' if wrong else ''), flush=True)
                false += len(wrong)
            else:
                healthy += 1
                wrong = [one for one in found if one['kind'] in CLAIMS]
                false += len(wrong)
                print(f"{'FALSE    ' if wrong else 'quiet    '} {name}, {seconds:.2f} s: {'; '.join(titles) or '-'}", flush=True)
            server.stop()
            shutil.rmtree(f'{work}/store')
        print(f'{named} of {of_all} stories named in the first three findings; {false} false findings in {of_all + healthy} stores, {healthy} of them healthy')
    finally:
        shutil.rmtree(work, ignore_errors=True)

main()
