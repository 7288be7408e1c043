#!/usr/bin/env python3
"""What the symbols of files take in the store, beside the files: those of this machine, and others.

  symbols.py --plumb PLUMB [FILE...]     # FILE: more files, such as those with debug information
"""
import argparse, glob, os, re, shutil, subprocess, tempfile, time
from server import Server

MOST = 256 << 20

def build_id(path):
    notes = subprocess.run(['readelf', '-nW', path], capture_output=True, text=True).stdout
    found = re.search(r'Build ID: ([0-9a-f]+)', notes)
    return found and found.group(1)

def files_of_machine():
    seen = {}
    for folder in ('/usr/bin', '/usr/sbin', '/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu'):
        for path in glob.glob(f'{folder}/*'):
            real = os.path.realpath(path)
            if os.path.isfile(real) and os.path.getsize(real) <= MOST:
                with open(real, 'rb') as file:
                    if file.read(4) == b'\x7fELF':
                        seen[real] = True
    return sorted(seen)

def measure(server, store, name, paths):
    sent = stored = refused = count = 0
    slowest, since = (0, ''), time.time()
    for path in paths:
        id = build_id(path)
        if not id or os.path.getsize(path) > MOST:
            continue
        begin = time.time()
        status, answer = server.put(f'/api/v1/symbols/{id}', open(path, 'rb').read())
        slowest = max(slowest, (time.time() - begin, path))
        if status != 201:
            refused += 1
            print(f'  {path}: {status} {answer[:200]}')
            continue
        count, sent = count + 1, sent + os.path.getsize(path)
        kept = glob.glob(f'{store}/blocks/*/symbols/{id}')
        stored += sum(os.path.getsize(one) for one in kept)
    seconds = time.time() - since
    if count:
        print(f'{name}: {count} files of {sent / 1e6:.1f} MB take {stored / 1e6:.2f} MB ({100 * stored / sent:.2f}%), '
              f'{seconds / (sent / 1e6) * 1000:.0f} ms a MB, slowest {slowest[0]:.1f} s {slowest[1]}, {refused} refused', flush=True)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plumb', required=True)
    parser.add_argument('files', nargs='*')
    options = parser.parse_args()
    work = tempfile.mkdtemp()
    try:
        store = os.path.join(work, 'store')
        server = Server(options.plumb, store, '--retention', '10000d')
        measure(server, store, 'files of this machine', files_of_machine())
        print(f'  memory {server.memory()} MB (now, peak)')
        for path in options.files:
            measure(server, store, path, [path])
            print(f'  memory {server.memory()} MB (now, peak)')
        server.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)

if __name__ == '__main__':
    main()
