#!/bin/sh
# Copies the store of a plumb server that may be running:   backup.sh STORE COPY
# The copy has every profile that was acknowledged before this began, and maybe later ones. Where COPY exists, only new blocks are copied, and those
# that are gone from the store go from the copy. COPY is a store: docs/server/operations.md says how to restore it.
set -eu
[ $# = 2 ] || { sed -n 's/^# //p' "$0" | head -n 3 >&2; exit 2; }
store=${1%/} copy=${2%/}
[ -f "$store/server" ] && [ -d "$store/log" ] || { echo "$store is no directory of a plumb server" >&2; exit 1; }
umask 077
mkdir -p "$copy/blocks"
listed=$copy/listed
why=$copy/why
trap 'rm -f "$listed" "$why"' EXIT

# The log comes first: what becomes a block from now on is copied with the blocks, and counts once. A segment that goes has become a block.
cp -p "$store/server" "$copy/"
rm -rf "$copy/log"
mkdir "$copy/log"
for file in "$store"/log/*; do
    cp -p "$file" "$copy/log/" 2>"$why" || [ ! -e "$file" ] || { cat "$why" >&2; exit 1; }
done

# Copies a block, whose files never change; block.json is its last file to come and the first to go. Fails if the block goes meanwhile.
copy_block() {
    [ ! -f "$copy/blocks/$1/block.json" ] || return 0
    mkdir -p "$copy/blocks/$1"
    { cp -p "$store/blocks/$1"/*.parquet "$copy/blocks/$1/" && cp -p "$store/blocks/$1/block.json" "$copy/blocks/$1/"; } 2>"$why" || {
        [ ! -e "$store/blocks/$1/block.json" ] || { cat "$why" >&2; exit 1; }
        return 1
    }
}

# A block that goes was merged into a new one: the list is made again until all its blocks could be copied.
is_whole=
until [ "$is_whole" ]; do
    is_whole=1
    (cd "$store/blocks" && find . -path '*/blocks/*/block.json' | sed 's,^\./,,; s,/block\.json$,,') >"$listed"
    while read -r block; do
        copy_block "$block" || is_whole=
    done <"$listed"
done

# Only listed blocks: others are in these, or too old.
(cd "$copy/blocks" && find . -type d -path './*/blocks/*' -prune | sed 's,^\./,,') | while read -r block; do
    grep -qxF "$block" "$listed" || rm -rf "${copy:?}/blocks/$block"
done

# Files with symbols that clients uploaded.
for tenant in "$store"/blocks/*/; do
    [ ! -d "$tenant/symbols" ] || cp -Rp "$tenant/symbols" "$copy/blocks/$(basename "$tenant")/"
done
echo "$copy: blocks: $(wc -l <"$listed"), segments of the log: $(find "$copy/log" -name '*.wal' | wc -l)"
