#!/bin/sh
# Tries each feature of plumb on the running kernel and looks at what it says of programs whose numbers are known. Prints a line a feature:
# RESULT <tab> feature <tab> yes, FAILED or the version of Linux that it takes <tab> what was seen.
# Wants plumb, work and objects (crates/capture-bpf/tests/objects.rs) in PATH, and python3.11 for one feature. Runs in busybox's sh.
# check.sh [FEATURE...]
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export XDG_CACHE_HOME="$dir/cache"
work=$(command -v work)
# The console may hold the beginning of a line of the kernel's.
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"

kernel=$(uname -r | awk -F. '{ print $1 * 1000 + $2 }')
# Whether the kernel is a version of Linux or newer.
is_at_least() { [ "$kernel" -ge "$(echo "$1" | awk -F. '{ print $1 * 1000 + $2 }')" ]; }

say() { echo "$*"; }
# fails TEXT: what was seen instead; the last lines of what plumb said go with it.
fails() { echo "$*; plumb said: $(tail -n 4 "$dir/err" | tr '\n\t\r' '   ' | cut -c 1-600)"; return 1; }
# plumb, with what it says kept; an unexpected exit status fails.
run() { timeout 100 plumb "$@" >"$dir/out" 2>"$dir/err" || { fails "plumb $1 exits with $?"; return 1; }; }
# is NUMBER FROM TO
is() { awk -v n="${1:-x}" -v a="$2" -v b="$3" 'BEGIN { exit !(n ~ /^[0-9.]+$/ && n + 0 >= a && n + 0 <= b) }'; }
# share FILE FUNCTION: the percentage of a recording's weight below a function.
share() { plumb report --csv --min 0 "$1" 2>/dev/null | awk -F, -v f="$2" '$NF == f { print $2; exit }'; }
# The numbers of a recording of `work cpu`. A slow timer takes fewer samples, but not others.
cpu_is_right() {
    hot=$(share "$1" hot) main=$(share "$1" main)
    is "$hot" 45 95 || { fails "hot() has '$hot' percent, not 75"; return 1; }
    is "$main" "${2:-70}" 100 || { fails "main() has '$main' percent"; return 1; }
    say "hot() $hot% of 75"
}
walked() { sed -n 's/^plumb: \([0-9.]*\)% of samples walked in the kernel.*/\1/p' err; }

# runs_agent WORDS...: starts an agent in the background.
runs_agent() {
    plumb agent --to "$server" --interval 5 --symbols agent --no-observe "$@" >out 2>err &
    agent=$!
}

# awaits TEXT [TIMES]: until the agent has said so as often, however long it takes where the processor is emulated.
awaits() { for _ in $(seq $((60 * ${2:-1}))); do [ "$(grep -c "$1" err)" -ge "${2:-1}" ] && break; sleep 1; done; }

# stops_agent WORDS...: what the server took too long for is in the agent's spool, and the next agent with these words sends it.
stops_agent() {
    kill "$agent"
    wait "$agent"
    code=$?
    for _ in 1 2 3; do
        # An agent that has lost samples is the last: its words are looked at.
        { [ $code != 0 ] || grep -q ' spooled=0 ' err || ! grep -q 'dropped=0 lost=0' err; } && break
        runs_agent "$@"
        awaits started
        kill "$agent"
        wait "$agent"
        code=$?
    done
}

agent() {
    server=http://127.0.0.1:4571
    plumb serve --no-agent --listen "${server#http://}" --store "$dir/store" >/dev/null 2>serve.err &
    serves=$!
    OTEL_SERVICE_NAME=work "$work" cpu 100000 &
    busy=$!
    runs_agent --spool "$dir/spool"
    # The first windows have the most samples, as the rate falls where the kernel is slow, and are sent before a slow machine has found their names.
    awaits ' window ' 2
    since=$(date +%s)
    awaits ' window ' 5
    kill "$busy"
    stops_agent --spool "$dir/spool"
    # A slow kernel fills the usual twenty rows, and those that call others come last.
    plumb query functions --limit 1000 --from "$since" --to "$server" --query '{service_name="work"}' >functions 2>>err
    kill "$serves"
    wait "$serves"
    [ $code = 0 ] || { fails "plumb agent exits with $code"; return 1; }
    hot=$(awk '$NF == "hot" { print $2 + 0 }' functions) main=$(awk '$NF == "main" { print $2 + 0 }' functions)
    is "$hot" 45 95 && is "$main" 70 100 || { fails "hot() has '$hot' percent, main() '$main'"; return 1; }
    grep -q 'dropped=0 lost=0' err || { fails "samples are missing"; return 1; }
    say "hot() $hot% of 75$(grep -o 'stacks are copied.*' err | head -n 1 | sed 's/^/; /')"
}

# Containers that are gone before the agent looks, which is once a second: their pod is that of the group in which they ended.
containers() {
    hierarchy=$(awk '$3 == "cgroup" && $4 ~ /perf_event/ { print $2; exit }' /proc/mounts)
    [ -n "$hierarchy" ] || hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    uid=11111111-2222-4333-8444-555555555555
    group=$hierarchy/pod$uid/$(printf %064d 7)
    mkdir -p "$group" || { say "no control groups can be made below $hierarchy"; return 1; }
    server=http://127.0.0.1:4572
    plumb serve --no-agent --listen "${server#http://}" --store "$dir/pods" >/dev/null 2>serve.err &
    serves=$!
    runs_agent --max-cpu 100% --spool "$dir/spool-pods"
    awaits started
    for _ in $(seq 30); do sh -c "echo \$\$ >$group/cgroup.procs && exec $work cpu 5"; done
    stops_agent --max-cpu 100% --spool "$dir/spool-pods"
    plumb query functions --limit 1000 --to "$server" --query "{k8s_pod_uid=\"$uid\"}" >functions 2>>err
    kill "$serves"
    wait "$serves"
    rmdir "$group" "${group%/*}"
    spin=$(awk '$NF == "spin" { print $2 + 0 }' functions)
    is "$spin" 10 100 || { fails "spin() has '$spin' percent of the pod's"; return 1; }
    say "spin() $spin% of the pod's, in ${hierarchy#/}"
}

load() {
    # One after the other, as plumb loads them: two at once have locked up both processors of an emulated 6.1.
    timeout 800 objects --test-threads 1 >out 2>err || { cat out >>err; fails "a program is refused"; return 1; }
    grep -q '^skipped' err && { grep '^skipped' err | head -n 1; return 1; }
    say "$(sed -n 's/^test result: ok. \([0-9]*\) passed.*/\1/p' out) sets of programs in every variant"
}

doctor() {
    run doctor --json || return 1
    grep -q '"schema": "1' out || { fails "no schema"; return 1; }
    # What it found missing must be missing for want of a newer kernel.
    missing=$(awk -F'"' '/"feature":/ { f = $4 } /"state": "missing"/ && f { printf "%s ", f } /"since":/ { f = "" }' out)
    for feature in $missing; do
        since=$(awk -F'"' -v f="$feature" '/"feature":/ { g = $4 } /"since":/ && g == f { print $4 }' out)
        is_at_least "$since" && { fails "$feature is missing"; return 1; }
    done
    say "${missing:+missing: }$missing"
}

record() {
    run record -o a.plumb -- "$work" cpu 200 || return 1
    grep -q 'whole machine is sampled' err && { fails "no cgroup for the command"; return 1; }
    cpu_is_right a.plumb
}

record_bpf() {
    run record --capture bpf -o a.plumb -- "$work" cpu 400 || return 1
    is "$(walked)" 30 100 || { fails "'$(walked)'% walked in the kernel"; return 1; }
    cpu_is_right a.plumb
}

record_all() {
    "$work" cpu 1500 &
    run record -a --duration 3 -o a.plumb || { kill $!; return 1; }
    kill $! 2>/dev/null
    plumb report --comm work --csv a.plumb >b.csv 2>/dev/null
    hot=$(awk -F, '$NF == "hot" { print $4 }' b.csv) main=$(awk -F, '$NF == "main" { print $4 }' b.csv)
    is "$(awk -v a="$hot" -v b="$main" 'BEGIN { print b ? 100 * a / b : 0 }')" 45 95 || { fails "hot() $hot of main() $main"; return 1; }
    say "hot() in it"
}

record_pid() {
    "$work" cpu 1500 &
    run record -p $! --duration 2 -o a.plumb || { kill $!; return 1; }
    kill $! 2>/dev/null
    cpu_is_right a.plumb
}

record_cgroup() {
    group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/check-of-plumb
    mkdir -p "$group" && sh -c "echo \$\$ >$group/cgroup.procs && exec $work cpu 1500" &
    sleep 1
    run record --cgroup "$group" --duration 2 -o a.plumb
    code=$?
    for pid in $(cat "$group/cgroup.procs"); do kill "$pid"; done
    wait
    rmdir "$group"
    [ $code = 0 ] || return 1
    cpu_is_right a.plumb
}

python() {
    command -v python3.11 >/dev/null || { say "untried: no Python 3.11"; return 2; }
    cat >p.py <<P
def inner_of_python(n):
    value = 0
    for i in range(n):
        value += i * i
    return value
def outer_of_python():
    for i in range(${ROUNDS:-400}):
        inner_of_python(20000)
outer_of_python()
P
    run record -o a.plumb -- python3.11 -I -S p.py || return 1
    inner=$(share a.plumb inner_of_python) outer=$(share a.plumb outer_of_python)
    is "$inner" 30 100 && is "$outer" 30 100 || { fails "inner_of_python() has '$inner' percent, outer '$outer'"; return 1; }
    say "inner_of_python() $inner%"
}

off_cpu() {
    run record --off-cpu -o a.plumb -- "$work" waits || return 1
    off=$(plumb fold a.plumb 2>/dev/null | awk '/;waits_here;/ { sum += $NF } END { print sum / 1e6 }')
    # The first stack is copied, as there is no table yet; on an emulated processor the copy may come too late to be told whose it is.
    all=$(plumb fold a.plumb 2>/dev/null | awk '{ sum += $NF } END { print sum / 1e6 }')
    is "$off" 580 6000 && is "$all" 880 6000 || { fails "$off of $all ms in waits_here(), not 900"; return 1; }
    say "$off ms of 900"
}

faults() {
    run record -e page-faults -o a.plumb -- "$work" children || return 1
    is "$(sed -n 's/.*samples of page-faults.*; \([0-9]*\) happened.*/\1/p; s/^plumb: \([0-9]*\) samples of page-faults, each.*/\1/p' err | head -n 1)" 200 100000 ||
        { fails "too few page faults"; return 1; }
    say "stacks of page faults"
}

happened() { sed -n 's/.* samples of .*; \([0-9]*\) happened.*/\1/p; s/^plumb: \([0-9]*\) samples of .*, each one.*/\1/p' err | head -n 1; }

tracepoint() {
    run record --capture perf -e syscalls:sys_enter_getppid -c 10 -o a.plumb -- "$work" calls || return 1
    is "$(share a.plumb calls)" 95 100 || { fails "calls() has $(share a.plumb calls) percent"; return 1; }
    say "stacks of getppid"
}

tracepoint_bpf() {
    run record --capture bpf -e syscalls:sys_enter_getppid -c 10 -o a.plumb -- "$work" later || return 1
    is "$(walked)" 30 100 || { fails "'$(walked)'% walked in the kernel"; return 1; }
    [ "$(happened)" = 2500 ] || { fails "$(happened) passings, not 2500"; return 1; }
    is "$(share a.plumb calls)" 95 100 || { fails "calls() has $(share a.plumb calls) percent"; return 1; }
    say "2500 passings"
}

uprobe() {
    run record --capture perf -e "uprobe:$work:tick" -c 1 -o a.plumb -- "$work" calls || return 1
    [ "$(happened)" = 500 ] || { fails "$(happened) calls, not 500"; return 1; }
    say "500 calls"
}

uprobe_bpf() {
    run record --capture bpf -e "uprobe:$work:tick" -c 1 -o a.plumb -- "$work" later || return 1
    is "$(walked)" 30 100 || { fails "'$(walked)'% walked in the kernel"; return 1; }
    [ "$(happened)" = 500 ] || { fails "$(happened) calls, not 500"; return 1; }
    say "500 calls"
}

kernel_table() {
    # Twenty programs of a millisecond have few samples, and it may be that none is of an exec.
    for _ in 1 2 3 4 5 6; do
        run kernel --csv -- "$work" children || return 1
        sum=$(awk -F, 'NR > 1 { sum += $5 } END { print sum }' out)
        is "$sum" 99 101 || { fails "the rows make $sum percent"; return 1; }
        grep -q '^exec,exec' out && { say "rows make 100%"; return 0; }
    done
    fails "no exec in $(cut -d, -f1 out | tr '\n' ' ')"
}

# calls_of CALL: how often it was called, in the CSV of plumb kernel
calls_of() { awk -F, -v c="$1" '$1 == c { print $6; exit }' out; }

kernel_calls() {
    run kernel --calls --csv -- "$work" calls || return 1
    [ "$(calls_of getppid)" = 2500 ] && [ "$(calls_of read)" = 1500 ] || { fails "$(calls_of getppid) getppid, $(calls_of read) read"; return 1; }
    run kernel --calls --per file -- "$work" calls || return 1
    grep -q '/zero' out || { fails "no /dev/zero by file"; return 1; }
    say "2500 of 2500 getppid"
}

kernel_time() {
    run kernel --latency --csv -- "$work" waits || return 1
    slept=$(awk -F, '$1 ~ /nanosleep/ { print $8 / 1e6 }' out)
    # An emulated processor that others keep busy wakes late from each of its sleeps.
    is "$slept" 880 6000 || { fails "'$slept' ms in nanosleep, not 900"; return 1; }
    say "$slept ms of 900"
}

kernel_advice() {
    run kernel --advice --json -- "$work" calls || return 1
    seen=$(sed -n 's/.*"watched": *\([0-9]*\).*/\1/p' out | head -n 1)
    is "$seen" 4020 20000 || { fails "'$seen' calls and page faults, not 4000 and more"; return 1; }
    say "$seen calls and faults"
}

trace() {
    run trace -e getppid -- "$work" calls || return 1
    [ "$(grep -c 'getppid() = ' out)" = 2500 ] || { fails "$(grep -c 'getppid() = ' out) lines, not 2500"; return 1; }
    run trace -e openat -- "$work" calls || return 1
    grep -q 'openat(.*"/dev/zero"' out || { fails "no name of a file"; return 1; }
    say "2500 calls, names of files"
}

procs() {
    run procs --csv -- "$work" children || run procs -- "$work" children || return 1
    grep -Eq '(^|[^0-9])2[01]([^0-9]|$)' out || { fails "no 20 processes"; return 1; }
    say "20 processes"
}

stat() {
    run stat --json -o s.json -- "$work" calls || return 1
    calls=$(tr -d ' \n' <s.json | sed -n 's/.*"calls":{"confidence":[0-9.]*,"high":\([0-9.]*\),.*/\1/p')
    is "$calls" 4000 4100 || { fails "'$calls' system calls, not 4000 and some"; return 1; }
    say "$calls system calls"
}

stack() {
    "$work" cpu 1500 &
    sleep 0.2
    run stack -p $! || { kill $!; return 1; }
    kill $! 2>/dev/null
    grep -q middle out && grep -q main out || { fails "no stack"; return 1; }
    say "middle() below main()"
}

top() {
    "$work" cpu 1500 &
    run top --batch -n 2 -p $! || { kill $!; return 1; }
    kill $! 2>/dev/null
    grep -q 'hot' out && grep -q 'middle' out || { fails "no hot() in it"; return 1; }
    say "hot() and middle() in it"
}

# try FEATURE SINCE FUNCTION
try() {
    [ -z "$wanted" ] || case " $wanted " in *" $3 "*) ;; *) return ;; esac
    begin=$(date +%s)
    note=$("$3" 2>&1)
    code=$?
    note=$(echo "$note" | tail -n 1)
    case $code in
        0) result=yes ;;
        2) result=untried ;;
        # It must say so itself.
        *) is_at_least "$2" || ! echo "$note" | grep -q "$2" && result=FAILED || result="Linux $2" ;;
    esac
    printf 'RESULT\t%s\t%s\t%s (%s s)\n' "$1" "$result" "$note" $(($(date +%s) - begin))
}

wanted=$*
try 'doctor' 5.10 doctor
try 'record CMD' 5.10 record
try 'record -p' 5.10 record_pid
try 'record -a' 5.10 record_all
try 'record --cgroup' 5.10 record_cgroup
try 'record -e page-faults' 5.10 faults
try 'record -e GROUP:NAME (tracepoint)' 5.10 tracepoint
try 'record -e uprobe:FILE:FUNCTION' 5.10 uprobe
try 'stack' 5.10 stack
try 'top' 5.10 top
try 'procs' 5.10 procs
try 'stat' 5.17 stat
try 'kernel' 5.10 kernel_table
try 'kernel --calls' 5.17 kernel_calls
try 'kernel --latency' 5.17 kernel_time
try 'kernel --advice' 5.17 kernel_advice
try 'trace' 5.17 trace
try 'record --capture bpf' 5.17 record_bpf
try 'record, with Python functions' 5.17 python
try 'record --off-cpu' 5.17 off_cpu
try 'record -e uprobe:… --capture bpf' 5.17 uprobe_bpf
try 'record -e GROUP:NAME --capture bpf' 6.10 tracepoint_bpf
try 'agent' 5.10 agent
try 'agent, short containers' 5.17 containers
try 'every BPF program, every variant' 5.17 load
echo END
