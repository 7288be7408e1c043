#!/bin/sh
# A program that takes and returns memory all the time, with the allocator that it has, and with another one.
# $ROUNDS says how much of that it does. Options go through to `plumb compare`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cc -O2 -g1 -o "$folder/heap" "$here/../bench/advice/heap.c"
# tcmalloc or jemalloc, where one is installed; else glibc's own allocator, told to keep what is freed.
other=
for name in libtcmalloc_minimal.so.4 libjemalloc.so.2; do
    for path in /usr/lib/*-linux-gnu/$name /usr/lib64/$name /usr/lib/$name; do
        [ -z "$other" ] && [ -e "$path" ] && other=LD_PRELOAD=$path
    done
done
[ -n "$other" ] || other=MALLOC_TRIM_THRESHOLD_=1000000000
"${PLUMB:-plumb}" compare --env "B:$other" "$@" "$folder/heap ${ROUNDS:-300}" "$folder/heap ${ROUNDS:-300}"
