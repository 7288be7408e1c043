#!/bin/sh
# Builds the command as it is given to others, for a processor, and prints where it is.   build.sh x86_64|aarch64 [static]
# static: it needs no library of the system. Another processor than this machine's takes a cross compiler of Debian (gcc-aarch64-linux-gnu and
# libc6-dev-arm64-cross) and Rust's standard library (rustup target add).
set -eu
cd "$(dirname "$0")/.."
machine=$1
target=$machine-unknown-linux-gnu
name=$(echo "$target" | tr a-z- A-Z_)
if [ "$machine" != "$(uname -m)" ]; then
    compiler=$machine-linux-gnu-gcc
    command -v "$compiler" >/dev/null || { echo "no compiler for $machine: apt-get install gcc-$machine-linux-gnu, and its C library" >&2; exit 1; }
    export "CC_$(echo "$target" | tr - _)=$compiler" "CARGO_TARGET_${name}_LINKER=$compiler"
fi
[ "${2:-}" = static ] && export "CARGO_TARGET_${name}_RUSTFLAGS=-C target-feature=+crt-static"
cargo build --profile dist --locked --quiet -p plumb --target "$target"
echo "${CARGO_TARGET_DIR:-target}/$target/dist/plumb"
