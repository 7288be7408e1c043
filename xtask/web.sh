#!/bin/sh
# Checks web/: types, that the committed pages are what the sources build, unit tests, and the pages in a browser, one of them before a server.
set -eu
cd "$(dirname "$0")/../web"

# What serves the page; tests of commands need it too.
[ -n "${PLUMB_IS_BUILT:-}" ] || cargo build -q -p plumb

npm ci --no-audit --no-fund --silent
npm run --silent check
npm test --silent
npm run --silent test:browser
