#!/bin/bash
# Cross-builds programs for arm64 into a directory, with debug information: C and C++ of GCC and Clang at several levels, Rust, Go where it is
# installed.   programs.sh DIRECTORY
set -eu
cd "$(dirname "$0")/../.."
out=$1
mkdir -p "$out"
gcc="aarch64-linux-gnu-gcc -g" gxx="aarch64-linux-gnu-g++ -std=c++17 -g -pthread"
nice $gcc -O2 bench/cpu/tw.c -o "$out/tw"
nice $gcc -O2 -fno-optimize-sibling-calls bench/cpu/deep.c -o "$out/deep-O2"
nice $gcc -O3 -funroll-loops -mbranch-protection=standard bench/arm/loops.c -o "$out/loops-O3"
nice $gcc -Os bench/arm/loops.c -o "$out/loops-Os"
nice $gxx -O2 bench/demo/slow.cpp -o "$out/slow-O2"
nice $gxx -O3 bench/demo/slow.cpp -o "$out/slow-O3"
nice $gxx -O3 -flto -mbranch-protection=standard crates/symbolize/tests/programs/{inline,other}.cpp -o "$out/inline-lto"
nice $gxx -O2 -fomit-frame-pointer bench/cpu/recur.cpp -o "$out/recur-O2"
if clang=$(command -v clang++-19 clang++ | head -n 1) && [ -n "$clang" ]; then
    nice "$clang" --target=aarch64-linux-gnu -std=c++17 -g -pthread -O3 bench/cpu/recur.cpp -o "$out/recur-clang"
fi
rust="rustc --edition 2024 --target aarch64-unknown-linux-gnu -C linker=aarch64-linux-gnu-gcc -g"
nice $rust -C opt-level=3 bench/arm/work.rs -o "$out/rust-O3"
nice $rust -C opt-level=s -C lto=fat -C panic=abort bench/arm/work.rs -o "$out/rust-lto"
go=$(command -v go || ls /usr/local/go/bin/go 2>/dev/null || true)
[ -z "$go" ] || CGO_ENABLED=0 GOARCH=arm64 nice "$go" build -o "$out/go" bench/programs/work.go
ls "$out"
