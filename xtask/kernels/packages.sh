# For scripts that take programs and kernels from Debian: `. xtask/kernels/packages.sh`, with $work and $architecture set (amd64, arm64).

# Options of apt-get and apt-cache for the packages of all releases, which are asked for without touching the machine's own lists.
lists=$work/apt-$architecture
others=(-o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$lists/state" -o "Dir::State::lists=$lists/lists"
    -o "Dir::State::status=$lists/status" -o "Dir::Cache=$lists/cache" -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture")

# ask_others COMMAND...: gets their lists, unless the command already finds something in them.
ask_others() {
    mkdir -p "$lists"/{lists/partial,cache/archives/partial,state}
    touch "$lists/status"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep 'debian/$' | head -n 1)
    for suite in bullseye bookworm bookworm-backports trixie trixie-backports; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$lists/sources.list"
    (flock 9; [ -n "$("$@" 2>/dev/null)" ] || apt-get "${others[@]}" -qq update) 9>"$lists/lock" >&2 || true
}

# take DIRECTORY PACKAGE...: unpacks them there, once whole.
take() {
    local to=$1 fresh
    shift
    fresh=$(mktemp -d "$work/fresh.XXXXXX")
    (
        cd "$fresh"
        apt-get "${others[@]}" download -q "$@" >&2
        for package in ./*.deb; do dpkg -x "$package" .; done
        rm -rf ./*.deb usr/share
    )
    mv -T "$fresh" "$to" 2>/dev/null || rm -rf "$fresh"
}
