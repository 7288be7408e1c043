#!/bin/sh
# Checks deploy/ (xtask/deploy.py), with the tools that deploy/requirements.txt lists in an environment of their own. Where these can't be had, it says
# what is not checked.
set -eu
cd "$(dirname "$0")/.."

tools=${CARGO_TARGET_DIR:-target}/deploy-tools
if ! cmp -s deploy/requirements.txt "$tools/requirements.txt"; then
    if python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check -r deploy/requirements.txt; then
        cp deploy/requirements.txt "$tools/"
    fi
fi
python=$tools/bin/python
[ -x "$python" ] || python=python3
"$python" xtask/deploy.py "$@"
