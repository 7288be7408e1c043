#!/bin/bash
# Single-steps programs on an emulated arm64 machine and compares each stack with what the unwinder finds (crates/unwind/tests/oracle.rs): four
# minutes. Debian's programs come from its packages, the others are cross-built.   oracle.sh [KERNEL]    a kernel of boot.sh [6.12-arm64]
# WORK: where packages and programs are kept.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels}
root=$work/oracle-arm64
mkdir -p "$work"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static'
oracle=$(cargo test --quiet -p plumb-unwind --test oracle --no-run --message-format=json --target aarch64-unknown-linux-gnu |
    sed -n 's/.*"executable":"\([^"]*oracle-[^"]*\)".*/\1/p' | tail -n 1)
cp --remove-destination "$oracle" "$work/oracle"

if [ ! -d "$root" ]; then
    fresh=$(mktemp -d "$work/fresh.XXXXXX")
    # The kernel's own lists of packages, which boot.sh reads, have them all.
    lists=$work/apt-arm64
    [ -d "$lists/lists" ] || { echo "boot a kernel of arm64 first: make test-arm" >&2; exit 2; }
    apt=(-o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$lists/state" -o "Dir::State::lists=$lists/lists"
        -o "Dir::State::status=$lists/status" -o "Dir::Cache=$lists/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64)
    packages=(coreutils bash python3.13-minimal libpython3.13-minimal perl-base openssl libssl3t64 libc6 libc-bin libstdc++6 libgcc-s1 libselinux1
        libacl1 libattr1 libcap2 libpcre2-8-0 libtinfo6 zlib1g libexpat1 libcrypt1 libzstd1 libgmp10 gzip tar sqlite3 libsqlite3-0 libreadline8t64)
    (
        cd "$fresh"
        apt-get "${apt[@]}" download -q "${packages[@]/%//trixie}" >&2
        for package in ./*.deb; do dpkg -x "$package" .; done
        rm -rf ./*.deb usr/share usr/lib/aarch64-linux-gnu/gconv usr/lib/aarch64-linux-gnu/engines-3
        ln -sf python3.13 usr/bin/python3
        # As a system has them whose directories were merged.
        mkdir bin
        ln -s usr/lib lib
        ln -s /usr/bin/ls /usr/bin/bash bin
    )
    PLUMB_ORACLE_PROGRAMS=$fresh/programs cargo test --quiet -p plumb-unwind --test oracle -- --ignored cross_build >&2
    mv "$fresh" "$root"
fi
cat >"$work/oracle.sh" <<'S'
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"
PATH=/usr/bin:/bin PLUMB_ORACLE_PROGRAMS=/programs /bin/oracle --nocapture
S
log=$work/oracle.txt
ROOT=$root SCRIPT=$work/oracle.sh xtask/kernels/boot.sh "${1:-6.12-arm64}" "$work/bin-arm64/plumb" "$work/oracle" | tee "$log"
grep -q '^test result: ok' "$log"
