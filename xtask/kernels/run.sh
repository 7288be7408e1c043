#!/bin/bash
# Tries every feature on the kernel that runs and on others under QEMU, all at once, and prints a table. Fails if something fails, or if
# docs/kernels.md says otherwise.
# KERNELS: series of Linux to boot [6.1 6.12 newest]; newest is that of Debian's backports. UPDATE=1: puts the results into docs/kernels.md.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels}
mkdir -p "$work/bin"
begin=$(date +%s)

# The build that the tests use: what matters for speed is optimised in it, and another would take minutes.
[ -n "${PLUMB_IS_BUILT:-}" ] || cargo build --quiet -p plumb
plumb=$(pwd)/${CARGO_TARGET_DIR:-target}/debug/plumb
case "${CARGO_TARGET_DIR:-}" in /*) plumb=$CARGO_TARGET_DIR/debug/plumb ;; esac
objects=$(cargo test --quiet --workspace --test objects --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*objects-[^"]*\)".*/\1/p' | tail -n 1)
gcc -O2 -g1 -fomit-frame-pointer -static -o "$work/bin/work" xtask/kernels/work.c
cp --remove-destination "$objects" "$work/bin/objects"
cp --remove-destination "$plumb" "$work/bin/plumb"

pids=() logs=()
boot() { nice xtask/kernels/boot.sh "$1" "$work/bin/plumb" "$work/bin/work" "$work/bin/objects" >"$work/result-$1.txt" 2>"$work/result-$1.txt.err"; }
for series in ${KERNELS:-6.1 6.12 newest}; do
    boot "$series" &
    pids+=($!) logs+=("$work/result-$series.txt")
done
log=$work/result-host.txt
PATH=$work/bin:$PATH sh xtask/kernels/check.sh >"$log" 2>"$log.err" &
pids+=($!) logs+=("$log")
for pid in "${pids[@]}"; do wait "$pid" || true; done
# An emulated processor that gets no time for long enough looks locked up to its kernel. A machine that ends early has its last words shown, and
# is started once more, alone; a kernel that plumb crashes ends early again.
for series in ${KERNELS:-6.1 6.12 newest}; do
    log=$work/result-$series.txt
    grep -q '^END' "$log" && continue
    echo "Linux $series ended early and is started once more. The end of its console:" >&2
    tail -n 40 "$log" | cut -c 1-200 >&2
    cp "$log" "$log.early"
    boot "$series" || true
done
tail -q -n 3 "${logs[@]/%/.err}" >&2
echo "took $(($(date +%s) - begin)) s"
python3 xtask/kernels/table.py ${UPDATE:+--update} docs/kernels.md "${logs[@]}"
