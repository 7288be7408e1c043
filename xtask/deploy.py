#!/usr/bin/env python3
"""Holds deploy/ against the tools that will read it, and against the plumb command.

    xtask/deploy.py            checks; what a missing tool would have checked is said
    xtask/deploy.sh --write    writes deploy/kubernetes/plumb.yaml, which is the chart with its own values

systemd-analyze (systemd): units. Helm's own library (helm-python-sdk), schemas of Kubernetes (kubernetes-validate), yamllint, checkov where it is installed:
`pip install -r deploy/requirements.txt` brings all but checkov. PLUMB names the command, whose options are those that units and manifests use.
"""
import os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEPLOY = os.path.join(ROOT, 'deploy')
PLAIN = os.path.join(DEPLOY, 'kubernetes', 'plumb.yaml')
OLDEST, NEWEST = '1.30.0', '1.35.0'
HEAD = '# The chart in deploy/helm/plumb with its own values: change that, then xtask/deploy.sh --write.\n'
failures, skipped = [], []

def run(name, command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        failures.append(f'{name}: {(done.stdout + done.stderr).strip()}')
    return done

def arguments(text):
    """Command lines of plumb in a unit, a manifest or a comment of one, as lists of words."""
    for line in re.findall(r'^ExecStart=/usr/bin/plumb (.*)$', text, re.M):
        options = re.search(r'^# PLUMB_OPTIONS=(.*)$', text, re.M)
        yield line.replace('$PLUMB_OPTIONS', options[1] if options else '').split()
    for block in re.findall(r'^ +args:\n((?: +- .*\n)+)', text, re.M):
        yield [one.strip()[2:].strip('"\'') for one in block.splitlines()]

def check_options(plumb, path):
    found = 0
    for words in arguments(open(path).read()):
        found += 1
        run(f'{os.path.relpath(path, ROOT)}: plumb {" ".join(words)}', [plumb, *words, '--help'])
    if not found:
        failures.append(f'{path}: no command line of plumb was found')

def check_units(plumb):
    units = sorted(os.listdir(os.path.join(DEPLOY, 'systemd')))
    for unit in units:
        check_options(plumb, os.path.join(DEPLOY, 'systemd', unit))
    if not shutil.which('systemd-analyze'):
        skipped.append('systemd-analyze: units')
        return
    with tempfile.TemporaryDirectory() as folder:
        for unit in units:
            # The command is where the package puts it; its manual pages need not be here.
            text = open(os.path.join(DEPLOY, 'systemd', unit)).read()
            text = re.sub(r'^Documentation=.*\n', '', text.replace('/usr/bin/plumb', plumb), flags=re.M)
            path = os.path.join(folder, unit)
            open(path, 'w').write(text)
            done = run(f'systemd-analyze verify {unit}', ['systemd-analyze', 'verify', '--man=no', path])
            if 'Unknown' in done.stderr or 'ignoring' in done.stderr:
                failures.append(f'{unit}: {done.stderr.strip()}')
            run(f'systemd-analyze security {unit}', ['systemd-analyze', 'security', '--offline=true', '--threshold=40', path])

def render():
    from helm_python import Chart, lint
    chart = os.path.join(DEPLOY, 'helm', 'plumb')
    report = lint(chart, strict=True)
    failures.extend(f'helm lint: {one["path"]}: {one["error"]}' for one in report['messages'] if one['severity'] > 1)
    failures.extend(f'helm lint: {error}' for error in report['errors'])
    with Chart.load(chart) as loaded:
        files = loaded.render(name='plumb', namespace='plumb')
        # What else can be chosen has to render too.
        other = dict(agent=dict(url='https://profiles.example:4041', cluster='east', extraArgs=['--relabel=drop:service.name=backup.*'], priorityClassName='high'), server=dict(enabled=False))
        others = [text for text in loaded.render(other, name='plumb', namespace='plumb').values()]
    texts = [text.strip() for path, text in sorted(files.items()) if path.endswith('.yaml') and text.strip()]
    return HEAD + '---\n' + '\n---\n'.join(texts) + '\n', others

def check_manifests(plumb, plain, others):
    if open(PLAIN).read() != plain:
        failures.append('deploy/kubernetes/plumb.yaml is not the chart: xtask/deploy.sh --write')
    with tempfile.TemporaryDirectory() as folder:
        paths = [PLAIN]
        for number, text in enumerate(text for text in others if 'kind: DaemonSet' in text):
            paths.append(os.path.join(folder, f'other-{number}.yaml'))
            open(paths[-1], 'w').write(text)
        for path in paths:
            check_options(plumb, path)
        for version in (OLDEST, NEWEST):
            command = [sys.executable, '-m', 'kubernetes_validate', '--strict', '--quiet', '--no-warn', '-k', version, *paths, os.path.join(DEPLOY, 'kubernetes', 'namespace.yaml')]
            run(f'kubernetes-validate {version}', command)
    style = '{extends: relaxed, rules: {line-length: disable}}'
    run('yamllint', [sys.executable, '-m', 'yamllint', '--strict', '-d', style, os.path.join(DEPLOY, 'kubernetes'), os.path.join(DEPLOY, 'collector'), os.path.join(DEPLOY, 'helm', 'plumb', 'values.yaml')])

def main():
    plumb = os.path.abspath(os.environ.get('PLUMB', os.path.join(ROOT, 'target', 'debug', 'plumb')))
    check_units(plumb)
    try:
        plain, others = render()
        if '--write' in sys.argv:
            open(PLAIN, 'w').write(plain)
        check_manifests(plumb, plain, others)
    except ImportError as error:
        skipped.append(f'{error.name}: the chart and manifests; pip install -r deploy/requirements.txt')
    checkov = shutil.which('checkov') or os.path.join(os.path.dirname(sys.executable), 'checkov')
    if os.path.exists(checkov):
        # It has no network to ask: its rules are its own.
        run('checkov', [checkov, '--quiet', '--compact', '--config-file', os.path.join(DEPLOY, 'checkov.yaml'), '-d', DEPLOY], env=dict(os.environ, LOG_LEVEL='CRITICAL'))
    else:
        skipped.append('checkov: the Dockerfile and rules of Kubernetes')
    print(*(f'not checked, missing {one}' for one in skipped), *failures, sep='\n')
    print(f'deploy: {len(failures)} failures' if failures else 'deploy: all is well')
    sys.exit(bool(failures))

main()
