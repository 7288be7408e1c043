#!/bin/sh
# Builds the programs for the kernel. The objects are committed, so that building plumb takes no clang.
# bpf.sh: writes them   bpf.sh --check: builds them again and compares
set -eu
cd "$(dirname "$0")/../crates/capture-bpf/bpf"

CLANG=${CLANG:-clang-19}
STRIP=${STRIP:-llvm-strip-19}
out=${TMPDIR:-/tmp}/plumb-bpf.$$.o
trap 'rm -f "$out"' EXIT

for source in *.bpf.c; do
    name=${source%.bpf.c}
    # No paths of this machine in it: the same source gives the same bytes anywhere.
    "$CLANG" -target bpf -D__TARGET_ARCH_x86 -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-declarations \
        -ffile-prefix-map="$PWD=bpf" -fdebug-compilation-dir=bpf -c $name.bpf.c -o "$out"
    "$STRIP" -g "$out"
    if [ "${1:-}" = --check ]; then
        cmp "$out" $name.bpf.o || {
            echo "crates/capture-bpf/bpf/$name.bpf.o is not what its source gives ($("$CLANG" --version | head -n 1)): xtask/bpf.sh" >&2
            exit 1
        }
    else
        cp "$out" $name.bpf.o
    fi
done
