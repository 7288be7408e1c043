#!/bin/bash
# Prints the directory of an arm64 system for xtask/kernels/boot.sh (ROOT): programs of Debian trixie, perf among them, and those of programs.sh in
# /programs. Made once.   WORK: where kernels and packages are kept.
set -eu
cd "$(dirname "$0")/../.."
work=${WORK:-${TMPDIR:-/tmp}/plumb-kernels} architecture=arm64
root=$work/bench-arm64
if [ ! -d "$root" ]; then
    mkdir -p "$work"
    . xtask/kernels/packages.sh
    ask_others apt-cache "${others[@]}" show python3.13-minimal
    packages=(coreutils bash dash mawk python3.13-minimal libpython3.13-minimal libpython3.13 libpython3.13-stdlib perl-base perl libperl5.40
        perl-modules-5.40 openssl libssl3t64 gzip bzip2 xz-utils tar zstd sqlite3 ruby3.3 libruby3.3 php8.4-cli linux-perf
        libc6 libc-bin libstdc++6 libgcc-s1 libselinux1 libacl1 libattr1 libcap2 libpcre2-8-0 libtinfo6 zlib1g libexpat1 libcrypt1 libzstd1 libgmp10
        libbz2-1.0 liblzma5 liblz4-1 libxxhash0 libsqlite3-0 libreadline8t64 libffi8 libyaml-0-2 libedit2 libbsd0 libmd0 libargon2-1 libsodium23
        libxml2 libdebuginfod1t64 libdw1t64 libelf1t64 libnuma1 libopencsd1 libslang2 libtraceevent1 libcurl3t64-gnutls libjson-c5
        libunwind8 libbabeltrace1 libglib2.0-0t64 libuuid1 libgnutls30t64 libp11-kit0 libtasn1-6 libunistring5 libhogweed6t64 libnettle8t64
        libbrotli1 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libcom-err2 libkrb5support0 libkeyutils1 libidn2-0 libldap2 libsasl2-2
        libnghttp2-14 libnghttp3-9 libngtcp2-16 libngtcp2-crypto-gnutls8 libpsl5t64 librtmp1 libssh2-1t64 libatomic1)
    take "$root.new" "${packages[@]/%//trixie}"
    rm -rf "$root.new"/usr/lib/aarch64-linux-gnu/{gconv,engines-3}
    ln -sf python3.13 "$root.new/usr/bin/python3"
    ln -sf mawk "$root.new/usr/bin/awk"
    # As a system has them whose directories were merged.
    mkdir -p "$root.new/bin"
    ln -s usr/lib "$root.new/lib"
    ln -s /usr/bin/bash "$root.new/bin/bash"
    bench/arm/programs.sh "$root.new/programs" >&2
    mv "$root.new" "$root"
fi
echo "$root"
