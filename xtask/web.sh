#!/bin/sh
# Checks web/: types, that the committed page is what the sources build, unit tests, and the page in a browser.
set -eu
cd "$(dirname "$0")/../web"

npm ci --no-audit --no-fund --silent
npm run --silent check
npm test --silent
npm run --silent test:browser
