#!/usr/bin/env python3
"""plumb behind nginx and oauth2-proxy, as deploy/proxy configures them, with people from a provider of OpenID Connect and programs with tokens.

  oidc.py --plumb PLUMB [--oauth2-proxy FILE]

Needs nginx, curl, openssl, Python's venv and Go, which builds oauth2-proxy (unless it is named) and the provider (mockoidc). Changes nothing in the configurations
but ports, and paths of files. Prints a line for each claim; fails if one does not hold.
"""
import argparse, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OAUTH2_PROXY = 'github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6'
READER, SHOP, SEARCH, ADMIN = 'reader-0123456789', 'shop-writer-0123456789', 'search-both-0123456789', 'admin-01234567890'
TOKENS = f'{READER} read\n{SHOP} write shop\n{SEARCH} read,write search\n{ADMIN} admin\n'
failures = []

def claim(text, holds, saw=''):
    print(('ok    ' if holds else 'FAILS ') + text + (f': {saw}' if saw != '' else ''))
    if not holds:
        failures.append(text)

def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    [one.bind(('127.0.0.1', 0)) for one in sockets]
    ports = [one.getsockname()[1] for one in sockets]
    [one.close() for one in sockets]
    return ports

def wait_for(port, process):
    for _ in range(1200):
        try:
            return socket.create_connection(('127.0.0.1', port), 1).close()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    sys.exit(f'{process.args[0]} does not listen')

class Site:
    """The whole set-up in a folder: provider, oauth2-proxy, nginx, plumb."""
    def __init__(self, options, work):
        self.work, self.plumb, self.processes = work, os.path.abspath(options.plumb), []
        self.port, self.server, self.proxy, self.issuer, self.control = free_ports(5)
        self.url = f'https://profiles.example:{self.port}'
        self.write('tokens', TOKENS)
        self.write('client-secret', 'client-secret')
        self.write('cookie-secret', os.urandom(16).hex())
        self.write('plumb-reader.conf', f'set $plumb_reader "Bearer {READER}";\n')
        self.run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=profiles.example',
                 '-addext', 'subjectAltName=DNS:profiles.example,IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', self.path('plumb.key'), '-out', self.path('plumb.crt'))
        oauth2_proxy = options.oauth2_proxy or self.installed(OAUTH2_PROXY, 'oauth2-proxy')
        provider = self.path('provider')
        self.run('go', 'build', '-o', provider, '.', cwd=os.path.join(HERE, 'oidc'), env=dict(os.environ, GOFLAGS='-buildvcs=false'))
        self.start(self.issuer, provider, str(self.issuer), str(self.control))
        self.start(self.server, self.plumb, 'serve', '--no-agent', '--listen', f'127.0.0.1:{self.server}', '--store', self.path('store'), '--tokens', self.path('tokens'))
        self.start(self.proxy, oauth2_proxy, '--config', self.configured('oauth2-proxy.cfg'))
        self.write('whole.conf', f'daemon off; pid {self.path("pid")}; error_log stderr warn; events {{}} http {{ access_log off; include {self.configured("nginx.conf")}; }}\n')
        self.start(self.port, shutil.which('nginx') or '/usr/sbin/nginx', '-p', work, '-e', 'stderr', '-c', self.path('whole.conf'))

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        open(self.path(name), 'w').write(text)
        os.chmod(self.path(name), 0o600)

    def run(self, *command, **more):
        done = subprocess.run(command, capture_output=True, text=True, **more)
        if done.returncode:
            sys.exit(f'{" ".join(command)}: {done.stdout}{done.stderr}')
        return done.stdout

    def installed(self, module, name):
        self.run('go', 'install', module, env=dict(os.environ, GOBIN=self.work, GOFLAGS='-buildvcs=false'))
        return self.path(name)

    def start(self, port, *command):
        log = open(self.path(f'{len(self.processes)}.log'), 'wb')
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        wait_for(port, self.processes[-1])

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)

    def configured(self, name):
        """A configuration of deploy/proxy with this site's ports, files and provider."""
        text = open(os.path.join(ROOT, 'deploy', 'proxy', name)).read()
        for old, new in (('127.0.0.1:4041', f'127.0.0.1:{self.server}'), ('127.0.0.1:4180', f'127.0.0.1:{self.proxy}'), ('listen 443', f'listen 127.0.0.1:{self.port}'),
                         ('https://profiles.example', self.url), ('https://login.example', f'http://127.0.0.1:{self.issuer}/oidc'), ('/etc/nginx/', self.work + '/'), ('/etc/oauth2-proxy/', self.work + '/')):
            text = text.replace(old, new)
        self.write(name, text)
        return self.path(name)

    def curl(self, path, *options, person=None):
        """Status, headers and body of an answer. A person has cookies."""
        cookies = ['-b', self.path(person), '-c', self.path(person)] if person else []
        out = self.run('curl', '-s', '-D', self.path('headers'), '-w', '\n%{http_code}', '--resolve', f'profiles.example:{self.port}:127.0.0.1', '--cacert', self.path('plumb.crt'),
                       *cookies, *options, self.url + path)
        body, status = out.rsplit('\n', 1)
        return int(status), open(self.path('headers')).read(), body

    def sign_in(self, name, groups, path):
        self.run('curl', '-sf', f'http://127.0.0.1:{self.control}/', '-d', f'name={name}', '-d', f'groups={groups}')
        status, headers, body = self.curl(path, '-L', person=name)
        locations = re.findall(r'^location: (.*?)\r?$', headers, re.M | re.I)
        return status, locations, body

    def direct(self, path, tenant):
        """The answer of plumb itself, for comparison."""
        return self.run('curl', '-s', '-H', f'Authorization: Bearer {ADMIN}', '-H', f'X-Scope-OrgID: {tenant}', f'http://127.0.0.1:{self.server}{path}')

def bearer(token):
    return ('-H', f'Authorization: Bearer {token}')

def folded(service, value):
    return ('-H', 'Content-Type: text/plain', '--data-binary', f'main;work {value}\n'), f'/ingest?name={service}&sampleRate=100'

FORGED = ('-H', 'X-Scope-OrgID: search')
SERVICES = '/api/v1/services?from=now-1h'

def pushes(site):
    for token, service, tenant in ((SHOP, 'checkout', 'shop'), (SEARCH, 'index', 'search')):
        body, path = folded(service, 7)
        # Each claims the other's tenant.
        other = 'search' if tenant == 'shop' else 'shop'
        status, _, _ = site.curl(path, *bearer(token), '-H', f'X-Scope-OrgID: {other}', *body)
        there = json.loads(site.direct(SERVICES, tenant))
        claim(f'a push with the token of {tenant} and a forged header is stored for {tenant}', status == 200 and there == [service], f'{status} {there}')
    body, path = folded('intruder', 7)
    claim('a push with a token that plumb does not know', site.curl(path, *bearer('wrong-0123456789'), *body)[0] == 401, 401)
    claim('a push without a token', site.curl(path, *body)[0] == 401, 401)
    _, _, body = site.curl(SERVICES, *bearer(READER), *FORGED)
    claim('a token without a tenant and a forged header sees no tenant', json.loads(body) == [], body)
    site.write('batch.folded', 'main;sort 500\n')
    site.write('shop-token', SHOP)
    command = [site.plumb, 'push', site.path('batch.folded'), '--service', 'batch', '--to', f'https://127.0.0.1:{site.port}', '--ca-cert', site.path('plumb.crt'), '--token', site.path('shop-token')]
    site.run(*command)
    there = json.loads(site.direct(SERVICES, 'shop'))
    claim('plumb push with a token', there == ['batch', 'checkout'], there)
    site.write('search-token', SEARCH)
    command = [site.plumb, 'query', '--to', f'https://127.0.0.1:{site.port}', '--ca-cert', site.path('plumb.crt'), '--token', site.path('search-token'), 'services']
    claim('plumb query with a token', site.run(*command) == 'index\n', 'index')

def opentelemetry(site):
    """OpenTelemetry's exporter over gRPC and HTTP, with the token of search and with one that is not known."""
    python = os.path.join(site.work, 'v', 'bin', 'python')
    site.run(sys.executable, '-m', 'venv', os.path.dirname(os.path.dirname(python)))
    site.run(python, '-m', 'pip', '-q', 'install', 'grpcio', 'opentelemetry-proto')
    def export(token):
        env = dict(os.environ, URL=f'https://127.0.0.1:{site.port}', CA=site.path('plumb.crt'), TOKEN=token)
        return subprocess.run([python, os.path.join(HERE, 'clients', 'exporter.py')], capture_output=True, text=True, env=env)
    done = export(SEARCH)
    there = json.loads(site.direct(SERVICES, 'search'))
    claim("OpenTelemetry's exporter with a token, gRPC plain and with gzip, HTTP with protocol buffers and JSON", done.returncode == 0 and there == ['index', 'otlp-grpc', 'otlp-grpc-gzip', 'otlp-http', 'otlp-json'], done.stderr[-300:] or there)
    refused = export('wrong-0123456789').stderr
    claim('gRPC with a token that plumb does not know', 'StatusCode.UNAUTHENTICATED' in refused, re.findall(r'StatusCode\.\w+', refused)[:1])

def people(site):
    status, headers, _ = site.curl('/')
    where = re.findall(r'^location: (\S+)', headers, re.M | re.I)
    claim('the page leads who is not signed in to the provider', status == 302 and where and '/oidc/authorize' in where[0], f'{status} {where and where[0].split("?")[0].replace(str(site.issuer), "PORT")}')
    for path in (SERVICES, '/page.js', '/metrics', '/ready'):
        claim(f'{path} without a session', site.curl(path)[0] == 401, 401)
    page = '/?query=%7Bservice_name%3D%22checkout%22%7D&from=now-1h'
    status, locations, body = site.sign_in('alice', 'team-shop,staff', page)
    claim('alice of team-shop signs in and gets the page that she asked for', status == 200 and 'page.js' in body and locations[-1].endswith(page), f'{status}, at {locations[-1]}')
    claim('the script of the page', site.curl('/page.js', person='alice')[0] == 200, 200)
    for forged in ((), FORGED):
        status, _, body = site.curl(SERVICES, *forged, person='alice')
        claim(f'alice sees the services of shop{" with a forged header too" if forged else ""}', status == 200 and json.loads(body) == ['batch', 'checkout'], body)
    status, _, body = site.curl('/querier.v1.QuerierService/LabelValues', '-H', 'Content-Type: application/json', '-H', f'Origin: {site.url}', '-H', 'Sec-Fetch-Site: same-origin', '-d', '{"name":"service_name"}', *FORGED, person='alice')
    claim("a POST of the page's own script", status == 200 and json.loads(body)['names'] == ['batch', 'checkout'], body)
    status, _, _ = site.curl('/querier.v1.QuerierService/LabelValues', '-H', 'Content-Type: application/json', '-H', 'Origin: https://evil.example', '-H', 'Sec-Fetch-Site: cross-site', '-d', '{"name":"service_name"}', person='alice')
    claim("a POST of another site's page with her session", status == 403, status)
    body, path = folded('intruder', 7)
    statuses = [site.curl(path, *body, person='alice')[0], site.curl('/api/v1/admin/flush', '-X', 'POST', person='alice')[0]]
    claim('her session may not push nor administer', statuses == [403, 403], statuses)
    site.sign_in('bob', 'team-search', '/')
    _, _, body = site.curl(SERVICES, person='bob')
    claim('bob of team-search sees the services of search', json.loads(body)[0] == 'index' and 'checkout' not in body, body)
    status, _, _ = site.sign_in('mallory', 'team-shopping', '/')
    claim('mallory of another team is refused', status == 403 and site.curl(SERVICES, person='mallory')[0] == 403, status)
    forged = ('-H', 'X-Auth-Request-Groups: team-shop', '-H', 'X-Auth-Request-User: alice', '-H', 'X-Forwarded-Groups: team-shop')
    claim('forged headers of oauth2-proxy without a session', site.curl(SERVICES, *forged)[0] == 401, 401)
    claim('... and with the session of another team', site.curl(SERVICES, *forged, person='mallory')[0] == 403, 403)
    claim('a cookie that was changed', site.curl(SERVICES, '-H', 'Cookie: _oauth2_proxy=forged')[0] == 401, 401)
    site.curl('/oauth2/sign_out', person='alice')
    claim('alice signs out', site.curl(SERVICES, person='alice')[0] == 401, 401)

def versions(site):
    nginx = subprocess.run([site.processes[-1].args[0], '-v'], capture_output=True, text=True).stderr.strip()
    print(f'{site.run(site.plumb, "--version").strip()}; {nginx}; oauth2-proxy {OAUTH2_PROXY.rsplit("@", 1)[1]}; mockoidc')

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--plumb', default='plumb')
    parser.add_argument('--oauth2-proxy')
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix='plumb-oidc-')
    site = Site(options, work)
    try:
        versions(site)
        pushes(site)
        opentelemetry(site)
        people(site)
    finally:
        site.stop()
    if failures:
        sys.exit(f'{len(failures)} claims do not hold; logs are in {work}')
    shutil.rmtree(work)
    print('all hold')

main()
