#!/bin/bash
# Instructions a frame of plumb's unwinder and of framehop on aarch64, both built for it and run under qemu's user mode. Prints Markdown.
#   bench/unwind-arm64/run.sh     one minute; needs gcc, gcc-aarch64-linux-gnu and its C library, qemu-user, rustup target add aarch64-unknown-linux-gnu
# Executed instructions are counted by a plugin (count.c), and are differences of two runs, so that reading files is not in them: `warm` walks each
# stack twice in succession, `stream` all of them twice in order. All addresses are known by then.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. xtask/cargo.sh
builds_for aarch64 static
folder=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --manifest-path bench/unwind-arm64/Cargo.toml --target "$target" --target-dir "$folder"
tool=$folder/$target/release/plumb-bench-unwind-arm64
gcc -O2 -shared -fPIC -o "$work/count.so" bench/unwind-arm64/count.c
$compiler -static -O2 -fexceptions -o "$work/stacks" bench/unwind-arm64/stacks.c

# executed ENGINE ORDER TIMES: frames of one time, and instructions.
executed() {
    qemu-aarch64 -plugin "$work/count.so" "$tool" "$1" "$2" "$3" "$work/stacks" "$work/snapshots" 2>&1 | awk '/^executed/ { print frames, $2; next } { frames = $1 }'
}

echo '| stacks | frames each | unwinder | warm | stream |'
echo '|---|---|---|---|---|'
for depth in 12 60; do
    for seed in 1 2 3; do qemu-aarch64 "$work/stacks" $seed $depth; done >"$work/snapshots"
    for engine in plumb framehop; do
        row=$(qemu-aarch64 "$tool" $engine warm 0 "$work/stacks" "$work/snapshots")
        frames=$(echo "$row" | cut -d' ' -f1)
        stacks=$(echo "$row" | cut -d' ' -f2)
        warm=() stream=()
        for times in 1 2; do
            warm+=("$(executed $engine warm $times | cut -d' ' -f2)")
            stream+=("$(executed $engine stream $times | cut -d' ' -f2)")
        done
        awk -v f="$frames" -v s="$stacks" -v e=$engine -v w=$((warm[1] - warm[0])) -v t=$((stream[1] - stream[0])) \
            'BEGIN { printf "| %d | %.1f | %s | %.1f | %.1f |\n", s, f / s, e, w / f, t / f }'
    done
done
