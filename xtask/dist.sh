#!/bin/sh
# Makes what is given to others: for each processor an archive with the command, its manual pages, completions, licences and deploy/, and a Debian
# package of the same with units of systemd; and the Helm chart.   dist.sh [x86_64|aarch64]...
# All go to dist/. The package needs dpkg-deb, which is a part of Debian; elsewhere the archive is all.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
rm -rf dist
mkdir dist
# The manual pages and completions are made by a program of this machine.
own=$(xtask/build.sh "$(uname -m)")

# The version of the C library that programs for a processor are linked with.
libc_of() {
    compiler=cc
    [ "$1" = "$(uname -m)" ] || compiler=$1-linux-gnu-gcc
    "$compiler" -include features.h -x c -dM -E /dev/null |
        awk '$2 == "__GLIBC__" { major = $3 } $2 == "__GLIBC_MINOR__" { minor = $3 } END { print major "." minor }'
}

pack() {
    machine=$1
    case $machine in x86_64) architecture=amd64 ;; *) architecture=arm64 ;; esac
    name=plumb-$version-$machine-linux
    stage=dist/$name
    install -Dm 755 "$(xtask/build.sh "$machine")" "$stage/bin/plumb"
    "$own" generate man "$stage/share/man/man1" >/dev/null 2>&1
    mkdir -p "$stage/share/bash-completion/completions" "$stage/share/zsh/site-functions" "$stage/share/fish/vendor_completions.d"
    "$own" generate completions bash >"$stage/share/bash-completion/completions/plumb"
    "$own" generate completions zsh >"$stage/share/zsh/site-functions/_plumb"
    "$own" generate completions fish >"$stage/share/fish/vendor_completions.d/plumb.fish"
    install -Dm 644 README.md CHANGELOG.md LICENSE-* docs/install.md -t "$stage/share/doc/plumb"
    mkdir -p "$stage/share/plumb"
    cp -r deploy "$stage/share/plumb/"
    tar -C dist --owner 0 --group 0 -czf "dist/$name.tar.gz" "$name"
    echo "dist/$name.tar.gz"

    if command -v dpkg-deb >/dev/null; then
        package=dist/package
        mkdir -p "$package/DEBIAN" "$package/usr"
        cp -r "$stage/bin" "$stage/share" "$package/usr/"
        gzip -9n "$package"/usr/share/man/man1/*
        install -Dm 644 deploy/systemd/*.service -t "$package/lib/systemd/system"
        # An older system's C library than the one that it was linked with may lack what it calls.
        libc=$(libc_of "$machine")
        cat >"$package/DEBIAN/control" <<C
Package: plumb
Version: $version
Architecture: $architecture
Maintainer: the plumb developers <plumb@localhost>
Section: devel
Priority: optional
Depends: libc6 (>= $libc), libgcc-s1
Description: sampling profiler with complete stacks and kernel time that adds up
 Records commands, processes or the machine, unwinds optimised code without
 frame pointers, and says what is slow and why.
C
        dpkg-deb --root-owner-group --build "$package" "dist/plumb_${version}_$architecture.deb" >/dev/null
        rm -rf "$package"
        echo "dist/plumb_${version}_$architecture.deb"
    fi
    rm -rf "$stage"
}

for machine in "${@:-$(uname -m)}"; do pack "$machine"; done
# What `helm package` makes: the chart's directory, by its name.
tar -C deploy/helm --owner 0 --group 0 --sort name -czf "dist/plumb-chart-$version.tgz" plumb
echo "dist/plumb-chart-$version.tgz"
