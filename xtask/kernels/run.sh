#!/bin/bash
# Tries every feature on the kernel that runs and on others under QEMU, all at once, and prints a table. Fails if something fails, or if
# docs/kernels.md says otherwise.
# KERNELS: what to try [host 6.1 6.12 newest]: the kernel that runs, and series of Linux to boot. newest is that of Debian's backports; 6.1-arm64 and
# 6.12-arm64-16k are of the other processor (boot.sh). UPDATE=1: puts the results into docs/kernels.md.
# QUICK=1: of all kernels of a processor but the first that is booted, only what depends most on the kernel. FEATURES: only these functions of
# check.sh, on each that is booted.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels}
built=${CARGO_TARGET_DIR:-target}
kernels=${KERNELS:-host 6.1 6.12 newest}
begin=$(date +%s)

. xtask/cargo.sh

# Builds what is run on one processor into a directory. The build is the one that the tests use: what matters for speed is optimised in it, and
# another would take minutes.
build_amd64() {
    [ -n "${PLUMB_IS_BUILT:-}" ] || cargo build --quiet -p plumb
    fill amd64 gcc "$built/debug/plumb" "$(test_program objects --workspace)"
}
# Without shared libraries, so that the machine needs none.
build_arm64() {
    builds_for aarch64 static
    cargo build --quiet -p plumb --target "$target"
    fill arm64 aarch64-linux-gnu-gcc "$built/$target/debug/plumb" "$(test_program objects -p plumb-capture-bpf --target "$target")"
}
# fill PROCESSOR COMPILER PLUMB OBJECTS
fill() {
    local bin=$work/bin-$1
    mkdir -p "$bin"
    "$2" -O2 -g1 -fomit-frame-pointer -static -o "$bin/work" xtask/kernels/work.c
    cp --remove-destination "$3" "$bin/plumb"
    cp --remove-destination "$4" "$bin/objects"
}
processor_of() { case $1 in *-arm64*) echo arm64 ;; *) echo amd64 ;; esac; }
for processor in $(for name in $kernels; do processor_of "$name"; done | sort -u); do "build_$processor"; done

# What each kernel has its own way of.
some='doctor record_bpf python off_cpu uprobe_bpf tracepoint_bpf kernel_calls kernel_advice trace load'
# try KERNEL [FEATURE...]
try() {
    local name=$1 bin
    bin=$work/bin-$(processor_of "$name")
    shift
    case $name in
        host) PATH=$bin:$PATH sh xtask/kernels/check.sh "$@" ;;
        *) FEATURES=$* nice xtask/kernels/boot.sh "$name" "$bin/plumb" "$bin/work" "$bin/objects" ;;
    esac >"$work/result-$name.txt" 2>"$work/result-$name.txt.err"
}

declare -A features is_tried
pids=() logs=()
for name in $kernels; do
    processor=$(processor_of "$name")
    features[$name]=
    if [ "$name" != host ]; then
        features[$name]=${FEATURES:-${is_tried[$processor]:+${QUICK:+$some}}}
        is_tried[$processor]=yes
    fi
    logs+=("$work/result-$name.txt")
    # shellcheck disable=SC2086
    case $name in
        # Each of them has two processors: one after the other.
        *-arm64*) try "$name" ${features[$name]} || true ;;
        *) try "$name" ${features[$name]} & pids+=($!) ;;
    esac
done
for pid in "${pids[@]}"; do wait "$pid" || true; done
# An emulated processor that gets no time for long enough looks locked up to its kernel. A machine that ends early has its last words shown, and
# is started once more, alone; a kernel that plumb crashes ends early again.
for name in $kernels; do
    log=$work/result-$name.txt
    grep -q '^END' "$log" || [ "$name" = host ] && continue
    echo "Linux $name ended early and is started once more. The end of its console:" >&2
    tail -n 40 "$log" | cut -c 1-200 >&2
    cp "$log" "$log.early"
    # shellcheck disable=SC2086
    try "$name" ${features[$name]} || true
done
tail -q -n 3 "${logs[@]/%/.err}" >&2
echo "took $(($(date +%s) - begin)) s"
python3 xtask/kernels/table.py ${UPDATE:+--update} docs/kernels.md "${logs[@]}"
