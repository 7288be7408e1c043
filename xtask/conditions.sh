#!/bin/sh
# Runs the tests as machines differ: one condition after the other, and a line for each. They have to hold in all of them.
#   conditions.sh [-l] [-t SUITES] [CONDITION...]
#   -l            lists the conditions
#   -t SUITES     only the suites whose name (such as cli/stat, or unwind/plumb_unwind (unit)) matches this extended regular expression
# Without a CONDITION it is all of them. What the tests print is kept in target/conditions/CONDITION/. Fails if a test does.
#
# `rate` changes kernel.perf_event_max_sample_rate for the whole machine while it runs, and puts back what was there.
set -eu
cd "$(dirname "$0")/.."

ALL="plain sigint one-cpu busy bare hidden double nobody quota rate"
NOBODY=65534 # on every distribution
RATE=/proc/sys/kernel/perf_event_max_sample_rate
target=${CARGO_TARGET_DIR:-$PWD/target}
out=$target/conditions

about() {
    case "$1" in
    plain) echo "the machine as it is" ;;
    sigint) echo "SIGINT and SIGQUIT are ignored, as in a script's background job" ;;
    one-cpu) echo "one processor" ;;
    busy) echo "two busy loops beside" ;;
    bare) echo "no standard input, no HOME, a German locale, a small environment" ;;
    hidden) echo "no performance counters: hidden, if there are any" ;;
    double) echo "a double of performance counters, which ends what opens a hardware event in frequency mode" ;;
    nobody) echo "a user without rights (needs root)" ;;
    quota) echo "half a processor, in slices of 100 ms (needs root and a cpu cgroup)" ;;
    rate) echo "500 samples a second at most (needs root; the whole machine)" ;;
    *) return 1 ;;
    esac
}

only=
tab=$(printf '\t')
while getopts lt: option; do
    case $option in
    l) for name in $ALL; do printf '%-8s %s\n' "$name" "$(about "$name")"; done; exit ;;
    t) only=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# shellcheck disable=SC2086 # one word a condition
[ $# -gt 0 ] || set -- $ALL
for name; do
    about "$name" >/dev/null || {
        echo "conditions.sh: there is no condition $name; there are: $ALL" >&2
        exit 2
    }
done

# What a condition has made, to be undone.
busy= quota= rate= list=

# A library in whose presence the machine has other counters, compiled with these options.
preload() {
    cc -O2 -shared -fPIC "$@" -o "$out/$name.so" crates/fixtures/programs/pmu.c || { why="no C compiler"; return 1; }
}

# Makes what a condition needs for all suites. Fails with the reason in $why.
prepare() {
    case "$1" in
    nobody | quota | rate) [ "$(id -u)" = 0 ] || { why="not root"; return 1; } ;;
    esac
    case "$1" in
    busy)
        for _ in 1 2; do
            sh -c 'while :; do :; done' &
            busy="$busy $!"
        done
        ;;
    hidden) preload || return 1 ;;
    double) preload -DFAKE || return 1 ;;
    quota)
        if [ -e /sys/fs/cgroup/cpu/cgroup.procs ]; then
            quota=/sys/fs/cgroup/cpu/test-conditions.$$ file=cpu.cfs_quota_us value=50000
        else
            quota=/sys/fs/cgroup/test-conditions.$$ file=cpu.max value='50000 100000'
        fi
        mkdir "$quota" 2>/dev/null && echo "$value" 2>/dev/null >"$quota/$file" || { why="no cgroup with $file"; return 1; }
        ;;
    rate)
        rate=$(cat $RATE)
        echo 500 >$RATE
        ;;
    esac
}

# Undoes it.
restore() {
    for pid in $busy; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || :
    done
    [ -z "$rate" ] || echo "$rate" >$RATE
    # Those that ended may be in it for a moment.
    if [ -d "$quota" ]; then rmdir "$quota" 2>/dev/null || { sleep 1 && rmdir "$quota"; } || :; fi
    busy= quota= rate=
}
trap 'restore; rm -f "$list"' EXIT
trap 'exit 130' INT TERM HUP

# Becomes the binary, under the condition.
run() {
    condition=$1
    cd "$2"
    shift 2
    set -- "$@" --show-output
    case "$condition" in
    sigint) trap '' INT QUIT ;;
    one-cpu) exec taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "$@" ;;
    bare) exec env -i PATH="$PATH" LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8 "$@" </dev/null ;;
    hidden | double) export LD_PRELOAD="$out/$condition.so" ;;
    nobody)
        # A folder that belongs to nobody, in the place of the one that tests write to.
        mkdir -p "$out/nobody-tmp" "$target/tmp"
        chown $NOBODY "$out/nobody-tmp"
        # shellcheck disable=SC2016 # for the shell that is started
        exec unshare --mount sh -c 'mount --bind "$1" "$2" && shift 2 && unset HOME && exec setpriv "$@"' \
            sh "$out/nobody-tmp" "$target/tmp" --reuid $NOBODY --regid $NOBODY --clear-groups --bounding-set -all --inh-caps -all "$@"
        ;;
    # 0: who writes it.
    quota) echo 0 >"$quota/cgroup.procs" ;;
    esac
    exec "$@"
}

mkdir -p "$out"
list=$(mktemp)
cargo run -q -p xtask -- suites | sort | awk -F "$tab" -v only="$only" '$1 ~ only' >"$list"
[ -s "$list" ] || {
    echo "conditions.sh: no suite is named so, or they don't build" >&2
    exit 1
}
failures=0
for name; do
    if ! prepare "$name"; then
        printf '%-8s skipped: %s\n' "$name" "$why"
        restore
        continue
    fi
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name"
    begin=$(date +%s)
    while IFS=$tab read -r binary folder command <&3; do
        log=$out/$name/$(echo "$binary" | tr '/ ' --).log
        # shellcheck disable=SC2086 # the program and the names of its tests
        (IFS=$tab; set -- $command; unset IFS; run "$name" "$folder" "$@") >"$log" 2>&1 3<&- || echo "FAILED SUITE $binary" >>"$log"
    done 3<"$list"
    restore
    cat "$out/$name"/*.log >"$out/$name.log" 2>/dev/null || :
    sum=$(awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 } /: skipped|^skipped/ { skipped++ }
        END { printf "%d passed, %d failed, %d said that they skip something", passed, failed, skipped }' "$out/$name.log")
    printf '%-8s %s, %d s\n' "$name" "$sum" $(($(date +%s) - begin))
    if grep -q '^FAILED SUITE' "$out/$name.log"; then
        failures=1
        grep -E '^(test .* \.\.\. FAILED|FAILED SUITE)' "$out/$name.log" | sed 's/^/    /'
    fi
done
exit $failures
