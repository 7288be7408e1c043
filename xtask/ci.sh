#!/bin/sh
# Everything that has to hold before a change lands. The slow parts come last, the test runner's lines at the very end.
set -eu
cd "$(dirname "$0")/.."

# What a test may not skip for want of: what this machine has, and xtask/deps.sh installs. Another list, or none, can be given.
export PLUMB_REQUIRE="${PLUMB_REQUIRE-bpf,cc,perf,perf-command,root}"
# Tests of probes need it, and a machine that has just been started may lack it.
[ -e /sys/kernel/tracing/uprobe_events ] || mount -t tracefs none /sys/kernel/tracing || true
# Nothing is built a second time here, and what would make that quicker takes gigabytes.
export CARGO_INCREMENTAL=0

step() {
    printf '\n== %s\n' "$*"
    begin=$(date +%s)
    # Not left to -e, which does not hold in what `||` follows.
    "$@" || { printf '== failed: %s\n' "$*"; exit 1; }
    printf '== took %s s\n' $(($(date +%s) - begin))
}

# Runs two functions at once, each of which leaves a processor idle now and then: a browser waits for pictures, a server for its clients. The
# output of the second one comes when both have ended.
side_by_side() {
    log=$(mktemp)
    "$2" >"$log" 2>&1 &
    other=$!
    failed=
    ("$1") || failed=yes
    wait "$other" || failed=yes
    cat "$log"
    rm "$log"
    [ -z "$failed" ] || exit 1
}

step cargo fmt --all --check
step cargo run -q -p xtask -- tidy
step xtask/links.sh
step cargo run -q -p xtask -- codegen --check
step xtask/bpf.sh --check
step cargo clippy --workspace --all-targets -- -D warnings
step env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --quiet
# The build of the tests is what the page, the kernels and the documentation are tried with: another one would have other features of its
# dependencies, and take minutes.
step cargo test --workspace --no-run --quiet
export PLUMB_IS_BUILT=1
step cargo check --manifest-path crates/unwind/no_std/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/no_std"
# Of the whole workspace, of which no other package has such a test: with one package chosen, its dependencies would be built again.
step env PLUMB_FUZZ_SECONDS=30 cargo test --workspace --test smoke -- --nocapture
step env QUICK=1 make test-kernels
step make test-arm KERNELS=6.12-arm64 FEATURES='record_all record_bpf python off_cpu uprobe_bpf tracepoint_bpf stat kernel_calls kernel_advice trace stack agent load'
step xtask/kernels/oracle.sh
# Both together take 1.6 GB, and nothing below looks at them.
rm -rf "${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu" "${CARGO_TARGET_DIR:-target}/doc"
built=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
page() {
    step xtask/web.sh
}
others() {
    step env PLUMB="$built/plumb" xtask/docs.py
    step env PLUMB="$built/plumb" xtask/deploy.sh
    # Clients of others, from their registries, push and ask. Where one can't be installed it says so.
    step env PLUMB_CLIENTS=optional bench/serve/clients.sh "$built/plumb"
    # Two minutes of processes, servers that are killed and agents that are restarted: the store has what agents took, to the nanosecond. Memory
    # is that of a debug build.
    step bench/agent/soak.py --plumb "$built/plumb" --short --most 300
}
side_by_side page others
step make test
