#!/bin/bash
# Boots an emulated arm64 machine with root.sh's system and runs a script of this directory there: hardware (the cycle counter), coverage (short processes).
# run.sh hardware|coverage [KERNEL]    a kernel of xtask/kernels/boot.sh [6.12-arm64]
# PLUMB_ARM64: plumb of arm64, static [target/aarch64-unknown-linux-gnu/debug/plumb]. WORK, of xtask/kernels/work.c there: built by `make test-arm`.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels}
plumb=${PLUMB_ARM64:-${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu/debug/plumb}
ROOT=$(bench/arm/root.sh) SCRIPT=bench/arm/$1.guest.sh xtask/kernels/boot.sh "${2:-6.12-arm64}" "$plumb" "$work/bin-arm64/work"
