#!/usr/bin/env python3
"""What the recorder itself takes with programs that have assembly, large frames and JIT code, beside another build of plumb.

    recorder.py --plumb target/release/plumb [--before OTHER_PLUMB] [--rounds 3] [--only "openssl|git"]

openssl speed rsa2048; git repack of a copy of this repository's objects; ffmpeg encodes 40 s of a test picture by libx264; chromium runs a page with scripts
for 6 s. Each is recorded as a command, with copies and by BPF programs, the builds in turn. Medians. Recorder: its processor time while recording, for 1,000
samples, as runs differ in length; of BPF programs a tenth to a fifth of a second is what loading them takes. Root; programs that are missing are left out.
"""
import argparse, os, re, shutil, statistics, subprocess, tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
PAGE = '''<body><script>
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const end = performance.now() + 6000; let words = {};
(function more() { for (let i = 0; i < 20; i++) { fib(18); words['w' + i * 7 % 1000] = JSON.stringify(words).length; }
  document.body.textContent = Object.keys(words).length; if (performance.now() < end) setTimeout(more); })();
</script></body>'''

def commands(folder):
    page, repository = os.path.join(folder, 'page.html'), os.path.join(folder, 'repository')
    open(page, 'w').write(PAGE)
    subprocess.run(['git', 'clone', '-q', '--bare', '--no-local', ROOT, repository], check=True)
    return {
        'openssl speed rsa2048': ['openssl', 'speed', '-seconds', '4', 'rsa2048'],
        'git repack -adf': ['git', '-C', repository, 'repack', '-adfq', '--window=50'],
        'ffmpeg with libx264': ['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=640x360:d=40', '-c:v', 'libx264', '-y', os.path.join(folder, 'out.mp4')],
        'chromium': ['chromium', '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={folder}/profile', '--timeout=7000', '--virtual-time-budget=60000', '--dump-dom', 'file://' + page],
    }

def record(plumb, capture, command, folder):
    """Samples, share of complete stacks, share walked in the kernel, recorder's seconds."""
    made = subprocess.run([plumb, 'record', '--capture', capture, '-o', os.path.join(folder, 'one.plumb'), '--', *command], capture_output=True, text=True, errors='replace')
    found = lambda pattern: float((re.search(pattern, made.stderr) or [0, 'nan'])[1])
    return found(r'(\d+) samples in'), found(r'([\d.]+)% of stacks complete'), found(r'([\d.]+)% of samples walked'), found(r'recording ([\d.]+) s')

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='target/release/plumb')
    parser.add_argument('--before', help='another build')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', default='')
    options = parser.parse_args()
    builds = {name: os.path.abspath(path) for name, path in (('before', options.before), ('now', options.plumb)) if path}
    print(f'{options.rounds} rounds, load {os.getloadavg()[0]:.1f}\n')
    print('| program | capture | build | samples | complete, % | walked in the kernel, % | recorder, ms for 1,000 samples |\n|---|---|---|--:|--:|--:|--:|')
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands(folder).items():
            if not shutil.which(command[0]) or (options.only and not re.search(options.only, name)):
                continue
            for capture in ('copies', 'bpf'):
                runs = {build: [] for build in builds}
                for _ in range(options.rounds):
                    for build, plumb in builds.items():
                        runs[build].append(record(plumb, 'perf' if capture == 'copies' else 'bpf', command, folder))
                for build, all_runs in runs.items():
                    samples, complete, walked, _ = (statistics.median(column) for column in zip(*all_runs))
                    cost = [1e6 * seconds / max(samples, 1) for samples, _, _, seconds in all_runs]
                    shown = '' if walked != walked else f'{walked:.1f}'
                    print(f'| {name} | {capture} | {build} | {samples:.0f} | {complete:.1f} | {shown} | {statistics.median(cost):.0f} ({min(cost):.0f} to {max(cost):.0f}) |', flush=True)

main()
