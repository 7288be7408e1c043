#!/bin/sh
# Makes what is given to others: an archive with the command, its manual pages, completions, licences and deploy/, a Debian package of the same with
# units of systemd, and the Helm chart.
# All go to dist/. The package needs dpkg-deb, which is a part of Debian; elsewhere the archive is all.
set -eu
cd "$(dirname "$0")/.."

cargo build --profile dist --quiet
target=${CARGO_TARGET_DIR:-target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
machine=$(uname -m)
name=plumb-$version-$machine-linux
rm -rf dist
stage=dist/$name
install -Dm 755 "$target/dist/plumb" "$stage/bin/plumb"
"$stage/bin/plumb" generate man "$stage/share/man/man1" >/dev/null 2>&1
mkdir -p "$stage/share/bash-completion/completions" "$stage/share/zsh/site-functions" "$stage/share/fish/vendor_completions.d"
"$stage/bin/plumb" generate completions bash >"$stage/share/bash-completion/completions/plumb"
"$stage/bin/plumb" generate completions zsh >"$stage/share/zsh/site-functions/_plumb"
"$stage/bin/plumb" generate completions fish >"$stage/share/fish/vendor_completions.d/plumb.fish"
install -Dm 644 README.md CHANGELOG.md LICENSE-* docs/install.md -t "$stage/share/doc/plumb"
mkdir -p "$stage/share/plumb"
cp -r deploy "$stage/share/plumb/"
tar -C dist --owner 0 --group 0 -czf "dist/$name.tar.gz" "$name"
echo "dist/$name.tar.gz"
# What `helm package` makes: the chart's directory, by its name.
tar -C deploy/helm --owner 0 --group 0 --sort name -czf "dist/plumb-chart-$version.tgz" plumb
echo "dist/plumb-chart-$version.tgz"

if command -v dpkg-deb >/dev/null; then
    package=dist/package
    mkdir -p "$package/DEBIAN" "$package/usr"
    cp -r "$stage/bin" "$stage/share" "$package/usr/"
    gzip -9n "$package"/usr/share/man/man1/*
    install -Dm 644 deploy/systemd/*.service -t "$package/lib/systemd/system"
    # The libraries that it was linked with are those of this machine: an older system's C library may lack what it calls.
    libc=$(ldd --version | sed -n '1s/.* //p')
    cat >"$package/DEBIAN/control" <<C
Package: plumb
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the plumb developers <plumb@localhost>
Section: devel
Priority: optional
Depends: libc6 (>= $libc), libgcc-s1
Description: sampling profiler with complete stacks and kernel time that adds up
 Records commands, processes or the machine, unwinds optimised code without
 frame pointers, and says what is slow and why.
C
    dpkg-deb --root-owner-group --build "$package" "dist/plumb_${version}_$(dpkg --print-architecture).deb" >/dev/null
    rm -rf "$package"
    echo "dist/plumb_${version}_$(dpkg --print-architecture).deb"
fi
rm -rf "$stage"
