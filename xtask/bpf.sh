#!/bin/sh
# Builds the programs for the kernel. The objects are committed, so that building plumb takes no clang.
# bpf.sh: writes them   bpf.sh --check: builds them again and compares
set -eu
cd "$(dirname "$0")/../crates/capture-bpf/bpf"

CLANG=${CLANG:-clang-19}
STRIP=${STRIP:-llvm-strip-19}
out=${TMPDIR:-/tmp}/plumb-bpf.$$.o
trap 'rm -f "$out"' EXIT

# Writes or compares the objects of one architecture: its name in Rust, and the one that kernel headers and clang have for it.
build() {
    for source in *.bpf.c; do
        object=$1/${source%.c}.o
        # No paths of this machine in it: the same source gives the same bytes anywhere.
        "$CLANG" -target bpf -D__TARGET_ARCH_$2 -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-declarations \
            -ffile-prefix-map="$PWD=bpf" -fdebug-compilation-dir=bpf -c $source -o "$out"
        "$STRIP" -g "$out"
        if [ "$check" = --check ]; then
            cmp "$out" $object || {
                echo "crates/capture-bpf/bpf/$object is not what its source gives ($("$CLANG" --version | head -n 1)): xtask/bpf.sh" >&2
                exit 1
            }
        else
            cp "$out" $object
        fi
    done
}

check=${1:-}
build x86_64 x86
build aarch64 arm64
