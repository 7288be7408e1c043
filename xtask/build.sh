#!/bin/sh
# Builds the command as it is given to others, for a processor, and prints where it is.   build.sh x86_64|aarch64 [static]
# static: it needs no library of the system.
set -eu
cd "$(dirname "$0")/.."
. xtask/cargo.sh
builds_for "$@"
cargo build --profile dist --locked --quiet -p plumb --target "$target"
echo "${CARGO_TARGET_DIR:-target}/$target/dist/plumb"
