#!/usr/bin/env python3
"""Holds deploy/ against the tools that will read it, and against the plumb command.

    xtask/deploy.py            checks; what a missing tool would have checked is said
    xtask/deploy.sh --write    writes deploy/kubernetes/plumb.yaml, which is the chart with its own values

systemd-analyze (systemd): units. Helm's own library (helm-python-sdk), schemas of Kubernetes (kubernetes-validate), yamllint, checkov where it is installed:
`pip install -r deploy/requirements.txt` brings all but checkov. The schema of ServiceMonitor comes with the module of Prometheus' operator, by Go.
PLUMB names the command, whose options are those that units and manifests use.
"""
import json, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEPLOY = os.path.join(ROOT, 'deploy')
PLAIN = os.path.join(DEPLOY, 'kubernetes', 'plumb.yaml')
OLDEST, NEWEST = '1.30.0', '1.35.0'
OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0'
MONITORS = 'monitoring.coreos.com/v1'
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

def modes():
    """Values of the chart beside its own, by name: each has to render to valid manifests."""
    bucket = dict(url='s3://profiles/plumb', secret='plumb-s3', endpoint='https://minio.storage.svc:9000', allowHttp=True)
    monitoring = dict(namespaceSelector=dict(matchLabels={'kubernetes.io/metadata.name': 'monitoring'}))
    policy = {'from': [monitoring], 'egress': [dict(to=[dict(ipBlock=dict(cidr='10.0.0.0/8'))])]}
    monitor = dict(enabled=True, labels=dict(release='prometheus'))
    role = {'annotations': {'eks.amazonaws.com/role-arn': 'arn:aws:iam::123456789012:role/plumb'}}
    pods = dict(podLabels=dict(team='profiling'), podAnnotations={'linkerd.io/inject': 'enabled'})
    other = dict(nodeSelector=dict(disk='fast'), tenants=['* retention=30d rate=256K', 'shop rate=1M'], tolerations=[dict(operator='Exists')], extraArgs=['--max-query-length=30d'], **pods)
    agent = dict(url='https://profiles.example:4041', cluster='east', extraArgs=['--relabel=drop:service.name=backup.*'], priorityClassName='high', **pods)
    return {
        'agent alone': dict(agent=agent, server=dict(enabled=False)),
        'several servers': dict(server=dict(replicas=3, bucket=bucket, networkPolicy=policy, serviceMonitor=monitor, storage=dict(className='fast'), **other)),
        'one server of a bucket, by role': dict(server=dict(bucket=dict(url='s3://profiles/plumb'), serviceAccount=role, readiness='pushes', **pods)),
        'server alone, on two architectures': dict(agent=dict(enabled=False), image=dict(architectures=['amd64', 'arm64']), server=dict(serviceMonitor=dict(enabled=True), networkPolicy=dict(enabled=False), serviceAccount=dict(name='plumb'))),
    }

# Values that must not render, and the sentence that says why.
REFUSED = [
    (dict(server=dict(replicas=2)), 'several servers need server.bucket.url'),
    (dict(server=dict(readiness='pull')), 'write queries or pushes'),
]

def joined(files):
    texts = [text.strip().removeprefix('---').strip() for path, text in sorted(files.items()) if path.endswith('.yaml') and text.strip()]
    return '---\n' + '\n---\n'.join(text for text in texts if text) + '\n'

def render():
    """The chart with its own values, and by name with others."""
    from helm_python import Chart, lint
    chart = os.path.join(DEPLOY, 'helm', 'plumb')
    report = lint(chart, strict=True)
    failures.extend(f'helm lint: {one["path"]}: {one["error"]}' for one in report['messages'] if one['severity'] > 1)
    failures.extend(f'helm lint: {error}' for error in report['errors'])
    with Chart.load(chart) as loaded:
        plain = joined(loaded.render(name='plumb', namespace='plumb'))
        others = {name: joined(loaded.render(values, name='plumb', namespace='plumb')) for name, values in modes().items()}
        for name, values in modes().items():
            pods = sum('podLabels' in values.get(part, {}) for part in ('agent', 'server'))
            if [others[name].count(text) for text in ('team: profiling', 'linkerd.io/inject: enabled')] != [pods, pods]:
                failures.append(f'{name}: labels or annotations of pods are missing')
        for values, why in REFUSED:
            try:
                loaded.render(values, name='plumb', namespace='plumb')
                failures.append(f'the chart accepts {values}')
            except Exception as error:
                if why not in str(error):
                    failures.append(f'the chart refuses {values} without saying {why!r}: {error}')
    return HEAD + plain, others

def check_manifests(plumb, plain, others):
    if open(PLAIN).read() != plain:
        failures.append('deploy/kubernetes/plumb.yaml is not the chart: xtask/deploy.sh --write')
    monitors = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [PLAIN]
        for name, text in others.items():
            paths.append(os.path.join(folder, name.replace(' ', '-') + '.yaml'))
            documents = re.split(r'^---\n', text, flags=re.M)
            monitors += [one for one in documents if f'apiVersion: {MONITORS}\n' in one]
            open(paths[-1], 'w').write('---\n'.join(one for one in documents if one not in monitors))
        for path in paths:
            check_options(plumb, path)
        for version in (OLDEST, NEWEST):
            command = [sys.executable, '-m', 'kubernetes_validate', '--strict', '--quiet', '--no-warn', '-k', version, *paths, os.path.join(DEPLOY, 'kubernetes', 'namespace.yaml')]
            run(f'kubernetes-validate {version}', command)
    check_monitors(monitors)
    style = '{extends: relaxed, rules: {line-length: disable}}'
    run('yamllint', [sys.executable, '-m', 'yamllint', '--strict', '-d', style, os.path.join(DEPLOY, 'kubernetes'), os.path.join(DEPLOY, 'collector'), os.path.join(DEPLOY, 'helm', 'plumb', 'values.yaml')])

def check_monitors(monitors):
    """Holds each ServiceMonitor against the definition that Prometheus' operator installs; a field it does not have is a failure."""
    import jsonschema, yaml
    if not monitors:
        failures.append('no mode of the chart has a ServiceMonitor')
    fetched = shutil.which('go') and subprocess.run(['go', 'mod', 'download', '-json', OPERATOR], capture_output=True, text=True)
    if not fetched or fetched.returncode:
        skipped.append(f'{OPERATOR}: the ServiceMonitor')
        return
    crds = os.path.join(json.loads(fetched.stdout)['Dir'], 'example', 'prometheus-operator-crd', 'monitoring.coreos.com_servicemonitors.yaml')
    schema = closed(yaml.safe_load(open(crds))['spec']['versions'][0]['schema']['openAPIV3Schema'])
    schema['properties']['metadata'] = {'type': 'object'}
    for text in monitors:
        failures.extend(f'ServiceMonitor: {error.json_path}: {error.message}' for error in jsonschema.Draft7Validator(schema).iter_errors(yaml.safe_load(text)))

def closed(schema):
    """A schema whose objects have no other fields than those it lists."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: closed(one) for name, one in schema.items()}
    if isinstance(schema.get('properties'), dict) and 'type' in schema:
        schema.setdefault('additionalProperties', False)
    return schema

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
