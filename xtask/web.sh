#!/bin/sh
# Checks web/: types, unit tests, that the committed bundle is what the sources build, and the page in a browser.
set -eu
cd "$(dirname "$0")/../web"

npm ci --no-audit --no-fund --silent
npm run --silent check
npm test --silent
npm run --silent build
git diff --exit-code -- dist || {
    echo "web/dist is not what the sources build: run make web and commit it" >&2
    exit 1
}
