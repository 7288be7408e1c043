#!/bin/sh
# What clients of others pushed is found by a query: pyroscope-io for Python, @pyroscope/nodejs, pyroscope-go, OpenTelemetry's exporter of
# profiles, and the Connect clients that Pyroscope publishes, which ask too.
#
#   bench/serve/clients.sh PLUMB
#
# Installs the clients into a folder of its own, starts a server on a free port of the loopback address, has each client push its own processor
# time for ten seconds, and asks for the function that took it. Prints a line a client; fails if one is missing, or can't be installed. With
# PLUMB_CLIENTS=optional it says which can't, and does nothing.
set -eu
plumb=$(realpath "${1:-target/release/plumb}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
port=${PORT:-$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
url=http://127.0.0.1:$port
"$plumb" serve --listen "127.0.0.1:$port" --store "$work/store" --no-agent --log-level debug 2> "$work/log" &
server=$!
trap 'kill $server 2> /dev/null || true; wait $server 2> /dev/null || true; rm -rf "$work"' EXIT
cd "$work"

cat > spin.py <<'P'
import os, time
import pyroscope
pyroscope.configure(application_name="from-python", server_address=os.environ["URL"], tags={"region": "eu"})
def spin_python(until):
    n = 0
    while time.time() < until:
        n += sum(i * i for i in range(1000))
    return n
spin_python(time.time() + 14)
pyroscope.shutdown()
P

cat > spin.js <<'P'
const Pyroscope = require('@pyroscope/nodejs');
Pyroscope.init({ serverAddress: process.env.URL, appName: 'from-node', tags: { region: 'eu' }, flushIntervalMs: 5000, wall: { collectCpuTime: true } });
Pyroscope.start();
function spinNode(until) { let n = 0; while (Date.now() < until) n += Math.sqrt(n + 1); return n; }
let rounds = 0;
const timer = setInterval(() => {
  spinNode(Date.now() + 400);
  if (++rounds === 28) { clearInterval(timer); Pyroscope.stop().then(() => process.exit(0)); }
}, 10);
P

mkdir go && cat > go/main.go <<'P'
package main

import (
	"os"
	"time"

	"github.com/grafana/pyroscope-go"
)

//go:noinline
func spinGo(until time.Time) int {
	n := 0
	for time.Now().Before(until) {
		for i := 0; i < 100000; i++ {
			n += i * i
		}
	}
	return n
}

func main() {
	p, err := pyroscope.Start(pyroscope.Config{ApplicationName: "from-go", ServerAddress: os.Getenv("URL"),
		Tags: map[string]string{"region": "eu"}, UploadRate: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	spinGo(time.Now().Add(12 * time.Second))
	_ = p.Flush
	_ = p.Stop()
}
P

absent() {
	echo "skipped: $1 can't be installed here"
	[ "${PLUMB_CLIENTS:-}" = optional ] && exit 0
	exit 1
}
export URL="$url"
{ python3 -m venv v > /dev/null && v/bin/pip -q install pyroscope-io opentelemetry-proto grpcio; } || absent "pyroscope-io or opentelemetry-proto"
{ npm init -y > /dev/null && npm install --silent @pyroscope/nodejs; } || absent @pyroscope/nodejs
mkdir connect && cp "$here/clients/connect.go" connect/main.go
(cd connect && go mod init asks 2> /dev/null && go mod tidy 2> /dev/null && go build .) || absent "Pyroscope's Connect client for Go"
(cd go && go mod init spin 2> /dev/null && go get github.com/grafana/pyroscope-go 2> /dev/null && go build .) || absent pyroscope-go

v/bin/python spin.py
v/bin/python "$here/clients/exporter.py"
node spin.js
(cd connect && go run .)
(cd go && go run .)

failed=0
for client in from-python:spin_python from-node:spinNode from-go:main.spinGo otlp-grpc:work_otlp otlp-grpc-gzip:work_otlp otlp-http:work_otlp otlp-json:work_otlp; do
	service=${client%%:*} function=${client#*:}
	found=""
	for type in $(curl -s "$url/api/v1/types" | tr -d '[]"' | tr ',' ' '); do
		rows=$(curl -sG "$url/api/v1/functions" --data-urlencode "type=$type" --data-urlencode "query={service_name=\"$service\",region=\"eu\"}" --data-urlencode order=total)
		case $rows in
		*"$function"*) found="$found $type=$(printf %s "$rows" | tr '{' '\n' | grep -F "$function" | head -n 1 | sed 's/.*"total":\([0-9]*\).*/\1/')" ;;
		esac
	done
	if [ -n "$found" ]; then echo "$service: $function:$found"; else
		echo "$service: $function is not found" && failed=1
	fi
done
grep -c WARN "$work/log" && grep WARN "$work/log" | head -n 5
exit $failed
