# For scripts that build with cargo: `. xtask/cargo.sh`.

# builds_for x86_64|aarch64 [static]: has cargo build for a processor with --target "$target". static: what is built needs no library of the system.
# Another processor than this machine's takes a cross compiler of Debian (gcc-aarch64-linux-gnu and libc6-dev-arm64-cross) and Rust's standard library
# (rustup target add).
builds_for() {
    target=$1-unknown-linux-gnu
    name=$(echo "$target" | tr a-z- A-Z_)
    if [ "$1" != "$(uname -m)" ]; then
        compiler=$1-linux-gnu-gcc
        command -v "$compiler" >/dev/null || { echo "no compiler for $1: apt-get install gcc-$1-linux-gnu, and its C library" >&2; exit 1; }
        export "CC_$(echo "$target" | tr - _)=$compiler" "CARGO_TARGET_${name}_LINKER=$compiler"
    fi
    [ "${2:-}" != static ] || export "CARGO_TARGET_${name}_RUSTFLAGS=-C target-feature=+crt-static"
}

# test_program NAME CARGO-OPTION...: builds the test of that name and prints where it is.
test_program() {
    test=$1
    shift
    cargo test --quiet --test "$test" --no-run --message-format=json "$@" | sed -n 's/.*"executable":"\([^"]*'"$test"'-[^"]*\)".*/\1/p' | tail -n 1
}
