#!/bin/bash
# Single-steps programs on an emulated arm64 machine and compares each stack with what the unwinder finds (crates/unwind/tests/oracle.rs): one
# minute or two. Debian's programs come from its packages, the others are cross-built.   oracle.sh [KERNEL]    a kernel of boot.sh [6.12-arm64]
# WORK: where packages and programs are kept.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels} architecture=arm64
root=$work/oracle-arm64
mkdir -p "$work"
. xtask/cargo.sh
. xtask/kernels/packages.sh
builds_for aarch64 static
cp --remove-destination "$(test_program oracle -p plumb-unwind --target "$target")" "$work/oracle"

if [ ! -d "$root" ]; then
    ask_others apt-cache "${others[@]}" show python3.13-minimal
    packages=(coreutils bash python3.13-minimal libpython3.13-minimal perl-base openssl libssl3t64 libc6 libc-bin libstdc++6 libgcc-s1 libselinux1
        libacl1 libattr1 libcap2 libpcre2-8-0 libtinfo6 zlib1g libexpat1 libcrypt1 libzstd1 libgmp10 gzip tar sqlite3 libsqlite3-0 libreadline8t64)
    take "$root.new" "${packages[@]/%//trixie}"
    rm -rf "$root.new"/usr/lib/aarch64-linux-gnu/{gconv,engines-3}
    ln -sf python3.13 "$root.new/usr/bin/python3"
    # As a system has them whose directories were merged.
    mkdir "$root.new/bin"
    ln -s usr/lib "$root.new/lib"
    ln -s /usr/bin/ls /usr/bin/bash "$root.new/bin"
    PLUMB_ORACLE_PROGRAMS=$root.new/programs cargo test --quiet -p plumb-unwind --test oracle -- --ignored cross_build >&2
    mv "$root.new" "$root"
fi
cat >"$work/oracle.sh" <<'S'
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"
PATH=/usr/bin:/bin PLUMB_ORACLE_PROGRAMS=/programs /bin/oracle --nocapture
S
ROOT=$root SCRIPT=$work/oracle.sh xtask/kernels/boot.sh "${1:-6.12-arm64}" "$work/oracle" | tee "$work/oracle.txt"
grep -q '^test result: ok' "$work/oracle.txt"
