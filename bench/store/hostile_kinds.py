"""Pushes that are too deep, too wide, too large, packed bombs, malformed, cut short or from another time, for every route that takes profiles or symbols.

`kinds` has them all: what each makes of a size and a random source.
"""
import base64, gzip, json, os, struct, subprocess, threading
from server import field, number as plain, varint

BASE = 1795246147
FORMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../crates/formats/tests/data/async-profiler-4.0.jfr')

def signed(tag, value):
    return varint(tag << 3) + varint(value & (1 << 64) - 1)

def packed(tag, values):
    return field(tag, b''.join(map(varint, values)))

def zstd(data, *options):
    return subprocess.run(['zstd', '-q', '-c', '-1', *options], input=data, capture_output=True, check=True).stdout

# pprof: each takes a size and a random source.

KIND = plain(1, 1) + plain(2, 2)
TEXTS = ['', 'cpu', 'nanoseconds', 'f', 'main.go', 'key', 'value']

def strings(*more):
    return b''.join(field(6, one if isinstance(one, bytes) else one.encode()) for one in [*TEXTS, *more])

def pprof(body, *more, types=None, when=BASE * 10**9):
    return (types if types is not None else field(1, KIND)) + body + strings(*more) + signed(9, when) + field(11, KIND) + plain(12, 1)

def location(id, *functions):
    return field(4, plain(1, id) + b''.join(field(4, plain(1, one) + plain(2, 7)) for one in functions))

def function(id, name=3):
    return field(5, plain(1, id) + plain(2, name) + plain(3, name) + plain(4, 4))

def one_sample(ids, value=1, more=b''):
    return field(2, packed(1, ids) + signed(2, value) + more)

ONE = location(1, 1) + function(1)

def rows(n, make):
    return b''.join(map(make, range(1, n + 1)))

def named(n):
    return [f'name_{one}' for one in range(n)]

SMALL_IDS = bytes(one % 127 + 1 for one in range(256))

LONG_LABELS = b''.join(field(3, plain(1, 7 + one) + plain(2, 37)) for one in range(30))

PPROF = {
    'depth': lambda n, draw: pprof(ONE + field(2, field(1, b'\1' * n) + plain(2, 1))),
    'recursion of two functions': lambda n, draw: pprof(location(1, 1) + location(2, 2) + function(1) + function(2, 5) + field(2, field(1, b'\1\2' * (n // 2)) + plain(2, 1))),
    'deep distinct stacks': lambda n, draw: pprof(rows(200, lambda id: location(id, id) + function(id, 6 + id)) + b''.join(field(2, field(1, draw.randbytes(1000).translate(SMALL_IDS)) + plain(2, 1)) for _ in range(n // 1000)), *named(200)),
    'width': lambda n, draw: pprof(rows(n, lambda id: location(id, id) + function(id, 6 + id) + one_sample([id])), *named(n)),
    'locations': lambda n, draw: pprof(rows(n, lambda id: field(4, plain(1, id))) + one_sample([1])),
    'locations and functions': lambda n, draw: pprof(rows(n, lambda id: field(4, plain(1, id)) + field(5, plain(1, id))) + one_sample([1])),
    'mappings': lambda n, draw: pprof(ONE + one_sample([1]) + rows(n, lambda id: field(3, plain(1, id)))),
    'samples without stacks': lambda n, draw: pprof(field(2, plain(2, 1)) * n),
    'samples without values': lambda n, draw: pprof(field(2, b'') * n),
    'empty locations': lambda n, draw: pprof(field(4, b'') * n),
    'empty functions': lambda n, draw: pprof(field(5, b'') * n),
    'empty strings': lambda n, draw: pprof(ONE + one_sample([1])) + field(6, b'') * n,
    'sample types': lambda n, draw: pprof(b'', types=field(1, b'') * n),
    'distinct sample types': lambda n, draw: pprof(ONE + field(2, plain(1, 1) + packed(2, [1] * n)), *named(n), types=b''.join(field(1, plain(1, 7 + one) + plain(2, 2)) for one in range(n))),
    'values': lambda n, draw: pprof(ONE + field(2, plain(1, 1) + field(2, b'\1' * n))),
    'labels of a sample': lambda n, draw: pprof(ONE + field(2, plain(1, 1) + plain(2, 1) + field(3, b'') * n)),
    'text labels of a sample': lambda n, draw: pprof(ONE + field(2, plain(1, 1) + plain(2, 1) + b''.join(field(3, plain(1, 7 + one) + plain(2, 6)) for one in range(n))), *named(n)),
    'series': lambda n, draw: pprof(ONE + b''.join(field(2, plain(1, 1) + plain(2, 1) + field(3, plain(1, 5) + plain(2, 7 + one))) for one in range(n)), *named(n)),
    'series of long labels': lambda n, draw: pprof(ONE + b''.join(field(2, plain(1, 1) + plain(2, 1) + LONG_LABELS + field(3, plain(1, 5) + plain(2, 38 + one))) for one in range(n)), *named(30), 'x' * 2000, *named(n)),
    'lines of a location': lambda n, draw: pprof(function(1) + field(4, plain(1, 1) + field(4, plain(1, 1)) * n) + one_sample([1])),
    'empty lines': lambda n, draw: pprof(field(4, plain(1, 1) + field(4, b'') * n) + one_sample([1])),
    'lines times depth': lambda n, draw: pprof(function(1) + field(4, plain(1, 1) + field(4, plain(1, 1)) * 100) + field(2, field(1, b'\1' * (n // 100)) + plain(2, 1))),
    'comments': lambda n, draw: pprof(ONE + one_sample([1])) + field(13, b'\1' * n),
    'long name': lambda n, draw: pprof(location(1, 1) + function(1, 7) + one_sample([1]), b'x' * n),
    'distinct long names': lambda n, draw: pprof(rows(max(n >> 20, 1), lambda id: location(id, id) + function(id, 6 + id) + one_sample([id])), *[draw.randbytes(1 << 19).hex() for _ in range(max(n >> 20, 1))]),
    'bidi and control characters': lambda n, draw: pprof(rows(4, lambda id: location(id, id) + function(id, 6 + id) + one_sample([id])), '\u202e\u2066evil\u2069' * max(n >> 10, 1), '\x00\x01\x1b[2J\r\n', '\ufeff\u200b', '<script>alert(1)</script>"\'&;{}'),
    'invalid UTF-8': lambda n, draw: pprof(location(1, 1) + function(1, 7) + one_sample([1]), b'\xff\xfe\xc0\x80' * max(n >> 10, 1)),
    'nested unknown fields': lambda n, draw: pprof(ONE + one_sample([1])) + nested(n),
    'nested groups': lambda n, draw: pprof(ONE + one_sample([1])) + b'\xa3\x06' * (n // 4) + b'\xa4\x06' * (n // 4),
    'negative value': lambda n, draw: pprof(ONE + one_sample([1], -n)),
    'values that overflow': lambda n, draw: pprof(ONE + one_sample([1], 2**63 - 1) * (1 + n % 3)),
    'largest value': lambda n, draw: pprof(ONE + one_sample([1], 2**63 - 1), when=(BASE + draw.randrange(100)) * 10**9),
    'indexes out of range': lambda n, draw: pprof(draw.choice([location(1, n + 9), location(n + 9, 1) + ONE, function(2, n + 9) + location(1, 2), field(4, plain(1, 1) + plain(2, n + 9))]) + one_sample([1]) + one_sample([n + 9 if draw.randrange(2) else 2**64 - 1])),
    'repeated ids': lambda n, draw: pprof(ONE * 2 + one_sample([1])),
    'another time': lambda n, draw: pprof(ONE + one_sample([1]), when=draw.choice([1, -1, -2**63, 2**63 - 1, 10**9, 253402300800 * 10**9, (BASE + 10**9) * 10**9, n * 10**9])),
    'cut short': lambda n, draw: cut(pprof(rows(50, lambda id: location(id, id) + function(id, 6 + id) + one_sample([id])), *named(50)), draw),
    'flipped bytes': lambda n, draw: flipped(pprof(rows(50, lambda id: location(id, id) + function(id, 6 + id) + one_sample([id])), *named(50)), draw),
    'nonsense': lambda n, draw: draw.randbytes(min(n, 1 << 20)),
    'zeros': lambda n, draw: bytes(n),
}

def nested(n):
    """A message in a message, n bytes of it: the lengths grow outwards, so this is a few thousand deep at most."""
    inner, step = b'', 0
    while len(inner) < min(n, 200_000) and step < 20_000:
        inner, step = b'\x7a' + varint(len(inner)) + inner, step + 1
    return inner

def cut(whole, draw):
    return whole[:draw.randrange(len(whole))]

def flipped(whole, draw):
    out = bytearray(whole)
    for _ in range(draw.randrange(1, 20)):
        out[draw.randrange(len(out))] = draw.randrange(256)
    return bytes(out)

# OTLP.

def profiles(dictionary, samples=b'', resource=b'', when=BASE * 10**9, more=b''):
    kind = plain(1, 1) + plain(2, 2)
    profile = field(1, kind) + samples + varint(3 << 3 | 1) + struct.pack('<Q', when % 2**64) + field(5, kind) + plain(6, 1) + more
    name = field(1, field(1, b'service.name') + field(2, field(1, b'hostile')))
    return field(1, field(1, name + resource) + field(2, field(2, profile))) + field(2, dictionary)

def otlp_strings(*more):
    return b''.join(field(5, one if isinstance(one, bytes) else one.encode()) for one in ['', 'cpu', 'nanoseconds', 'f', *more])

# Row 0 of each table is empty.
TABLES = field(1, b'') + field(2, b'') + field(2, field(3, plain(1, 1))) + field(3, b'') + field(3, plain(1, 3)) + field(7, b'')
STACK = field(7, packed(1, [1]))
SAMPLE = field(2, plain(1, 1) + packed(4, [1]))

OTLP = {
    'depth': lambda n, draw: profiles(TABLES + field(7, field(1, b'\1' * n)) + otlp_strings(), SAMPLE),
    'width': lambda n, draw: profiles(field(1, b'') + field(2, b'') + field(3, b'') + field(7, b'') + rows(n, lambda id: field(2, field(3, plain(1, id))) + field(3, plain(1, 3 + id)) + field(7, packed(1, [id]))) + otlp_strings(*named(n)), rows(n, lambda id: field(2, plain(1, id) + packed(4, [1])))),
    'same stack in many samples': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), SAMPLE * n),
    'samples without anything': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), field(2, b'') * n),
    'empty mappings': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(1, b'') * n, SAMPLE),
    'empty locations': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(2, b'') * n, SAMPLE),
    'empty functions': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(3, b'') * n, SAMPLE),
    'empty links': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(4, b'') * n, SAMPLE),
    'empty strings': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(5, b'') * n, SAMPLE),
    'empty attributes': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(6, b'') * n, SAMPLE),
    'empty stacks': lambda n, draw: profiles(TABLES + STACK + otlp_strings() + field(7, b'') * n, SAMPLE),
    'lines of a location': lambda n, draw: profiles(field(2, b'') + field(2, field(3, plain(1, 1)) * n) + field(3, b'') + field(3, plain(1, 3)) + field(7, b'') + STACK + otlp_strings(), SAMPLE),
    'values of a sample': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), field(2, plain(1, 1) + field(4, b'\1' * n))),
    'times of a sample': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), field(2, plain(1, 1) + field(5, struct.pack('<Q', BASE * 10**9) * (n // 8)))),
    'attributes of a sample': lambda n, draw: profiles(TABLES + STACK + field(6, b'') + otlp_strings(), field(2, plain(1, 1) + packed(4, [1]) + field(2, b'\0' * n))),
    'series': lambda n, draw: profiles(TABLES + STACK + field(6, b'') + rows(n, lambda id: field(6, plain(1, 4) + field(2, field(1, b'v%d' % id)))) + otlp_strings('key'), rows(n, lambda id: field(2, plain(1, 1) + packed(4, [1]) + packed(2, [id])))),
    'attributes of a resource': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), SAMPLE, resource=rows(n, lambda id: field(1, field(1, b'k%d' % id) + field(2, field(1, b'v'))))),
    'empty attributes of a resource': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), SAMPLE, resource=field(1, b'') * n),
    'resources': lambda n, draw: field(1, b'') * n,
    'scopes': lambda n, draw: field(1, field(2, b'') * n),
    'profiles': lambda n, draw: field(1, field(2, field(2, b'') * n)),
    'services': lambda n, draw: rows(n, lambda id: profiles(b'', SAMPLE, resource=field(1, field(1, b'k') + field(2, field(1, b'v%d' % id))))) + field(2, TABLES + STACK + otlp_strings()),
    'nested values': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), SAMPLE, resource=field(1, field(1, b'k') + field(2, nested_value(n)))),
    'nested groups': lambda n, draw: b'\xa3\x06' * (n // 4) + b'\xa4\x06' * (n // 4) + profiles(TABLES + STACK + otlp_strings(), SAMPLE),
    'long name': lambda n, draw: profiles(field(2, b'') + field(2, field(3, plain(1, 1))) + field(3, b'') + field(3, plain(1, 4)) + field(7, b'') + STACK + otlp_strings(b'x' * n), SAMPLE),
    'invalid UTF-8': lambda n, draw: profiles(TABLES + STACK + otlp_strings(b'\xff\xfe' * max(n >> 10, 1)), SAMPLE),
    'bidi and control characters': lambda n, draw: profiles(field(2, b'') + field(2, field(3, plain(1, 1))) + field(3, b'') + field(3, plain(1, 4)) + field(7, b'') + STACK + otlp_strings('\u202e\x00\x1b[2J' * max(n >> 10, 1)), SAMPLE),
    'negative value': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), field(2, plain(1, 1) + packed(4, [2**64 - n]))),
    'values that overflow': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), field(2, plain(1, 1) + packed(4, [2**63 - 1] * 2))),
    'indexes out of range': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), field(2, plain(1, draw.choice([n + 9, 2**64 - 1])) + packed(4, [1]))),
    'another time': lambda n, draw: profiles(TABLES + STACK + otlp_strings(), SAMPLE, when=draw.choice([1, 2**64 - 1, 10**9, 253402300800 * 10**9, n * 10**9])),
    'cut short': lambda n, draw: cut(profiles(TABLES + STACK + otlp_strings(), SAMPLE * 10), draw),
    'flipped bytes': lambda n, draw: flipped(profiles(TABLES + STACK + otlp_strings(), SAMPLE * 10), draw),
    'nonsense': lambda n, draw: draw.randbytes(min(n, 1 << 20)),
}

def nested_value(n):
    inner = b''
    for _ in range(min(n, 20_000)):
        inner = field(5, field(1, inner))
        if len(inner) > 200_000:
            break
    return inner

# Text and trees of /ingest.

def level(name, value, children):
    return varint(len(name)) + name + varint(value) + varint(children)

TEXT = {
    'folded': {
        'depth': lambda n, draw: b';'.join([b'f'] * (n // 2)) + b' 1\n',
        'width': lambda n, draw: b''.join(b'main;f%d 1\n' % one for one in range(n)),
        'long name': lambda n, draw: b'x' * n + b' 1\n',
        'long lines': lambda n, draw: (b'main;' + b'y' * 60_000 + b' 1\n') * max(n // 60_000, 1),
        'empty lines': lambda n, draw: b'\n' * n,
        'counts': lambda n, draw: draw.choice([b'a;b -5\n', b'a;b 99999999999999999999\n', b'a;b 9223372036854775807\n' * 3, b'a;b x\n', b'a;b\n', b'a;b 1e9\n']),
        'controls': lambda n, draw: '\u202ea;\x00\x1b[2J;b 1\n'.encode() * max(n >> 10, 1),
        'invalid UTF-8': lambda n, draw: b'\xff\xfe;b 1\n' * max(n >> 10, 1),
    },
    'lines': {
        'depth': lambda n, draw: b';'.join([b'f'] * (n // 2)) + b'\n',
        'same line': lambda n, draw: b'a;b\n' * n,
        'deep same line': lambda n, draw: (b'a;' * 5000 + b'b\n') * max(n // 10_000, 1),
    },
    'tree': {
        'depth': lambda n, draw: level(b'', 0, 1) + level(b'f', 1, 1) * (n // 3),
        'width': lambda n, draw: level(b'', 0, n) + b''.join(level(b'f%d' % one, 1, 0) for one in range(n)),
        'children that never come': lambda n, draw: level(b'', 0, n * 1000),
        'names longer than all': lambda n, draw: varint(2**63) + b'x' * min(n, 1 << 20),
        'counts': lambda n, draw: level(b'', 0, 2) + level(b'a', 2**64 - 1, 0) * 2,
        'nonsense': lambda n, draw: draw.randbytes(min(n, 1 << 20)),
    },
    'trie': {
        'depth': lambda n, draw: level(b'', 0, 1) + level(b'f;', 1, 1) * (n // 3),
        'prefixes': lambda n, draw: level(b'x;' * (n // 2), 0, 500) + b''.join(level(b'f%d' % one, 1, 0) for one in range(500)),
        'nonsense': lambda n, draw: draw.randbytes(min(n, 1 << 20)),
    },
    'speedscope': {
        'frames': lambda n, draw: speedscope([{'name': f'f{one}'} for one in range(n)], [[0]], [1]),
        'samples': lambda n, draw: speedscope([{'name': 'f'}], [[0]] * n, [1] * n),
        'depth': lambda n, draw: speedscope([{'name': 'f'}], [[0] * n], [1]),
        'indexes out of range': lambda n, draw: speedscope([{'name': 'f'}], [[n + 1]], [1]),
        'weights': lambda n, draw: speedscope([{'name': 'f'}], [[0]], [draw.choice([-1, 1e300, -1e300, 2**70])]),
        'nested arrays': lambda n, draw: b'[' * n,
        'nested objects': lambda n, draw: b'{"profiles":' * n,
        'long name': lambda n, draw: speedscope([{'name': 'x' * n}], [[0]], [1]),
    },
}

def speedscope(frames, samples, weights):
    profile = {'type': 'sampled', 'name': 'x', 'unit': 'nanoseconds', 'startValue': 0, 'endValue': 1, 'samples': samples, 'weights': weights}
    return json.dumps({'$schema': 'https://www.speedscope.app/file-format-schema.json', 'shared': {'frames': frames}, 'profiles': [profile]}).encode()

JFR = open(FORMS, 'rb').read()
TEXT['jfr'] = {
    'cut short': lambda n, draw: cut(JFR, draw),
    'flipped bytes': lambda n, draw: flipped(JFR, draw),
    'chunks': lambda n, draw: JFR * max(n // len(JFR), 1),
    'nonsense': lambda n, draw: b'FLR\0' + draw.randbytes(min(n, 1 << 20)),
    'sizes': lambda n, draw: JFR[:8] + struct.pack('>QQQ', *(draw.choice([0, 1, n, 2**63, 2**64 - 1]) for _ in range(3))) + JFR[32:],
}

# What a request is: path, headers, body, made of a kind's bytes.

LABELS = {'__name__': 'process_cpu', 'service_name': 'hostile'}
PROTO = {'Content-Type': 'application/proto'}

def in_series(profile, labels=LABELS):
    pairs = b''.join(field(1, field(1, name if isinstance(name, bytes) else name.encode()) + field(2, value if isinstance(value, bytes) else value.encode())) for name, value in labels.items())
    return field(1, pairs + field(2, field(1, profile)))

def packed_push(profile):
    return '/push.v1.PusherService/Push', PROTO, in_series(gzip.compress(profile, 1))

def push_of_gzip(profile):
    return '/push.v1.PusherService/Push', dict(PROTO, **{'Content-Encoding': 'gzip'}), gzip.compress(in_series(profile), 1)

def push_of_zstd(profile):
    return '/push.v1.PusherService/Push', dict(PROTO, **{'Content-Encoding': 'zstd'}), zstd(in_series(profile))

def push_json(profile):
    text = base64.b64encode(gzip.compress(profile, 1)).decode()
    labels = [{'name': name, 'value': value} for name, value in LABELS.items()]
    return '/push.v1.PusherService/Push', {'Content-Type': 'application/json'}, json.dumps({'series': [{'labels': labels, 'samples': [{'rawProfile': text}]}]}).encode()

def ingest(profile):
    return f'/ingest?name=hostile.cpu&format=pprof&from={BASE}', {}, gzip.compress(profile, 1)

def ingest_form(profile):
    head = b'--x\r\nContent-Disposition: form-data; name="profile"; filename="p"\r\n\r\n'
    return f'/pyroscope/ingest?name=hostile.cpu&from={BASE}', {'Content-Type': 'multipart/form-data; boundary=x'}, head + gzip.compress(profile, 1) + b'\r\n--x--\r\n'

def otlp(message):
    return '/v1development/profiles', {'Content-Type': 'application/x-protobuf', 'Content-Encoding': 'gzip'}, gzip.compress(message, 1)

def otlp_zstd(message):
    return '/v1development/profiles', {'Content-Type': 'application/x-protobuf', 'Content-Encoding': 'zstd'}, zstd(message)

GRPC = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export'

def grpc(message):
    whole = gzip.compress(message, 1)
    return GRPC, {'Content-Type': 'application/grpc', 'grpc-encoding': 'gzip'}, b'\1' + struct.pack('>I', len(whole)) + whole

def of_text(format):
    def route(body):
        return f'/ingest?name=hostile.cpu&format={format}&from={BASE}', {}, gzip.compress(body, 1) if format not in ('speedscope',) else body
    return route

def kinds(work):
    """(name, what makes (path, headers, body) of a size and a random source, largest size)."""
    out = []
    for route, name in [(packed_push, 'push'), (push_of_gzip, 'push, gzip'), (push_of_zstd, 'push, zstd'), (push_json, 'push, JSON'), (ingest, 'ingest pprof'), (ingest_form, 'ingest form')]:
        out += [(f'{name}: {kind}', lambda n, draw, make=make, route=route: route(make(n, draw)), LARGEST.get(kind, 32 << 20)) for kind, make in PPROF.items()]
    for route, name in [(otlp, 'OTLP HTTP'), (otlp_zstd, 'OTLP HTTP, zstd'), (grpc, 'OTLP gRPC')]:
        out += [(f'{name}: {kind}', lambda n, draw, make=make, route=route: route(make(n, draw)), LARGEST.get(kind, 32 << 20)) for kind, make in OTLP.items()]
    for format, of in TEXT.items():
        out += [(f'ingest {format}: {kind}', lambda n, draw, make=make, route=of_text(format): route(make(n, draw)), LARGEST.get(kind, 32 << 20)) for kind, make in of.items()]
    return out + wrapped() + symbols(work)

# Rows that Python makes one by one.
LARGEST = dict.fromkeys(['width', 'locations', 'locations and functions', 'mappings', 'distinct sample types', 'text labels of a sample', 'series', 'series of long labels', 'attributes of a resource', 'services', 'frames', 'samples'], 1 << 18)
LARGEST.update({'locations': 1 << 20, 'locations and functions': 1 << 19, 'mappings': 1 << 20})

def bomb(n, pack):
    """Zeros, packed as pack does, in the shape of a long string."""
    return pack(pprof(ONE + one_sample([1])) + field(6, bytes(n)))

def wrapped():
    """Bombs, label sets and what is no profile."""
    push, gz = '/push.v1.PusherService/Push', lambda data: gzip.compress(data, 1)
    enc = lambda how: dict(PROTO, **{'Content-Encoding': how})
    odd = ['a\nb', '\u202ename', '', '__name__', 'x' * 5000, 'ü', '<b>', '0', 'a b', '\x00']
    json_kind = {'Content-Type': 'application/json'}
    return [
        ('bomb: gzip in push', lambda n, draw: (push, PROTO, in_series(bomb(n, gz))), 160 << 20),
        ('bomb: gzip around push', lambda n, draw: (push, enc('gzip'), gz(in_series(bomb(n, bytes)))), 160 << 20),
        ('bomb: zstd around push', lambda n, draw: (push, enc('zstd'), zstd(in_series(bomb(n, bytes)))), 160 << 20),
        ('bomb: zstd with a large window', lambda n, draw: (push, enc('zstd'), zstd(in_series(bomb(n, bytes)), '--long=30')), 64 << 20),
        ('bomb: gzip in gzip', lambda n, draw: (push, enc('gzip'), gz(in_series(gz(bomb(n, bytes))))), 160 << 20),
        ('bomb: many members', lambda n, draw: (push, enc('gzip'), gz(b'\0' * 65536) * max(n >> 16, 1)), 160 << 20),
        ('bomb: many profiles in a push', lambda n, draw: (push, PROTO, in_series(bomb(32 << 20, gz)) * max(n >> 20, 1)), 64 << 20),
        ('bomb: gzip in ingest', lambda n, draw: ('/ingest?name=hostile.cpu&format=pprof', {}, bomb(n, gz)), 160 << 20),
        ('bomb: gzip of OTLP', lambda n, draw: ('/v1development/profiles', {'Content-Type': 'application/x-protobuf', 'Content-Encoding': 'gzip'}, gz(bytes(n))), 160 << 20),
        ('bomb: gzip of folded', lambda n, draw: ('/ingest?name=hostile.cpu&format=folded', {}, gz(b'a' * n + b' 1')), 160 << 20),
        ('bomb: gzip of JFR', lambda n, draw: ('/ingest?name=hostile.cpu&format=jfr', {}, gz(JFR + bytes(n))), 160 << 20),
        ('bomb: gzip of JSON', lambda n, draw: ('/v1development/profiles', {'Content-Type': 'application/json', 'Content-Encoding': 'gzip'}, gz(b'[' * n)), 160 << 20),
        ('profiles in a push', lambda n, draw: (push, PROTO, in_series(gz(pprof(ONE + one_sample([1])))) * min(n, 60_000)), 60_000),
        ('labels of a push', lambda n, draw: (push, PROTO, in_series(pprof(ONE + one_sample([1])), dict(LABELS, **{f'l{one}': 'v' for one in range(n)}))), 1 << 20),
        ('empty labels of a push', lambda n, draw: (push, PROTO, field(1, field(1, b'') * n)), 15 << 20),
        ('series of a push', lambda n, draw: (push, PROTO, b''.join(in_series(pprof(ONE + one_sample([1])), dict(LABELS, pod=f'p{draw.random()}')) for _ in range(n))), 200_000),
        ('empty series of a push', lambda n, draw: (push, PROTO, field(1, b'') * n), 15 << 20),
        ('empty profiles of a push', lambda n, draw: (push, PROTO, field(1, field(2, b'') * n)), 15 << 20),
        ('odd label names', lambda n, draw: (push, PROTO, in_series(pprof(ONE + one_sample([1])), dict(LABELS, **{draw.choice(odd): 'v'}))), 1),
        ('odd label values', lambda n, draw: (push, PROTO, in_series(pprof(ONE + one_sample([1])), dict(LABELS, pod=draw.choice(['\u202ex', '\x00', '"}', '\x1b[2J', 'x' * 3000, '\n']))))  , 1),
        ('label values that are no UTF-8', lambda n, draw: (push, PROTO, in_series(pprof(ONE + one_sample([1])), dict(LABELS, pod=b'\xff\xfe'))), 1),
        ('long label value', lambda n, draw: (push, PROTO, in_series(pprof(ONE + one_sample([1])), dict(LABELS, pod='x' * n))), 8 << 20),
        ('names of an application', lambda n, draw: ('/ingest?name=' + 'a' * min(n, 60_000) + '&format=folded', {}, b'a;b 1'), 60_000),
        ('labels of an application', lambda n, draw: ('/ingest?name=hostile.cpu%7B' + ','.join(f'l{one}=v' for one in range(min(n, 5000))) + '%7D&format=folded', {}, b'a;b 1'), 5000),
        ('times of a request', lambda n, draw: (f'/ingest?name=hostile.cpu&format=folded&from={draw.choice([-1, 0, 10**30, "now-9999999999d", "x", 2**63])}', {}, b'a;b 1'), 1),
        ('nested JSON', lambda n, draw: (push, json_kind, b'{"series":' * (n // 2) + b'[' * (n // 2)), 4 << 20),
        ('nested JSON of OTLP', lambda n, draw: ('/v1development/profiles', json_kind, b'{"resourceProfiles":[{"resource":{"attributes":[{"key":"k","value":' + b'{"arrayValue":{"values":[' * (n // 25)), 8 << 20),
        ('unknown content', lambda n, draw: (push, {'Content-Type': draw.choice(['text/html', '', 'application/x-www-form-urlencoded'])}, b'x' * min(n, 1 << 20)), 1 << 20),
        ('unknown compression', lambda n, draw: (push, enc('br'), b'x' * min(n, 1 << 20)), 1 << 20),
        ('form of many fields', lambda n, draw: ('/ingest?name=hostile.cpu', {'Content-Type': 'multipart/form-data; boundary=x'}, b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' * n + b'--x--\r\n'), 400_000),
        ('gRPC lengths', lambda n, draw: (GRPC, {'Content-Type': 'application/grpc'}, b'\0' + struct.pack('>I', draw.choice([0, n, 2**32 - 1])) + b'x'), 1 << 20),
    ]

def symbols(work):
    """A file with a build id, grown, damaged, and with debug information packed like a bomb."""
    source, program = os.path.join(work, 's.c'), os.path.join(work, 's')
    open(source, 'w').write('int spin(int n){int s=0;for(int i=0;i<n;i++)s+=i*i;return s;}int main(int c,char**v){return spin(c);}')
    subprocess.run(['gcc', '-g', '-O1', '-Wl,--build-id=0x' + 'ab' * 20, '-o', program, source], check=True)
    elf, id = open(program, 'rb').read(), 'ab' * 20
    put = lambda body, more={}: (f'/api/v1/symbols/{id}', dict({'X-Method': 'PUT'}, **more), body)
    def inflated(n):
        big = os.path.join(work, f'bomb{threading.get_ident()}')
        open(big + '.raw', 'wb').write(bytes(n))
        subprocess.run(['objcopy', '--update-section', f'.debug_info={big}.raw', program, big], check=True)
        subprocess.run(['objcopy', '--compress-debug-sections=zlib', big], check=True)
        return open(big, 'rb').read()
    spin = int(next(line for line in subprocess.run(['nm', program], capture_output=True, text=True, check=True).stdout.splitlines() if line.endswith(' spin')).split()[0], 16)
    attribute = field(6, b'') + field(6, plain(1, 5) + field(2, field(1, id.encode())))
    frames = field(1, b'') + field(1, plain(4, 4) + packed(5, [1])) + field(2, b'') + field(2, plain(1, 1) + plain(2, spin)) + field(3, b'') + field(7, b'') + STACK + attribute + otlp_strings('/opt/s', 'process.executable.build_id.gnu')
    return [
        ('symbols: frames of the file', lambda n, draw: otlp(profiles(frames, SAMPLE)), 1),
        ('symbols: grown', lambda n, draw: put(elf + bytes(n)), 257 << 20),
        ('symbols: gzip bomb', lambda n, draw: put(gzip.compress(elf + bytes(n), 1), {'Content-Encoding': 'gzip'}), 320 << 20),
        ('symbols: debug information like a bomb', lambda n, draw: put(inflated(n)), 160 << 20),
        ('symbols: cut short', lambda n, draw: put(cut(elf, draw)), 1),
        ('symbols: flipped bytes', lambda n, draw: put(flipped(elf, draw)), 1),
        ('symbols: nonsense', lambda n, draw: put(b'\x7fELF' + draw.randbytes(min(n, 1 << 20))), 1 << 20),
        ('symbols: another id', lambda n, draw: (f'/api/v1/symbols/{draw.choice(["..%2f..%2fetc", "x" * 3000, "00", "%ff"])}', {'X-Method': 'PUT'}, elf), 1),
    ]
