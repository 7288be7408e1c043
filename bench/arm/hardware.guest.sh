# In the guest: runs two programs alone and beside recordings by the cycle counter, in turns, and prints a line a run:
# RUN program way wall-ns samples highest-rate-before highest-rate-after
printf '\nKERNEL\t%s\t%s\n' "$(uname -r)" "$(uname -m)"
export PATH=/usr/bin:/bin LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu
cd /tmp || exit 2
rate=/proc/sys/kernel/perf_event_max_sample_rate
head -c 2500000 /usr/bin/perl >data
# the program's own wall time, in seconds, whatever the recorder takes before and after it
wall() { sed -n 's/.*"wall":\([0-9.]*\).*/\1/p' out.json; }
# one PROGRAM WAY PLUMB-OPTION... -- COMMAND...
one() {
    program=$1 way=$2
    shift 2
    before=$(cat $rate)
    timeout 100 plumb record -o a.plumb "$@" >/dev/null 2>err || { echo "FAILED $program $way: $(tail -n 1 err)"; return; }
    echo "RUN $program $way $(wall) $(sed -n 's/^.*plumb: \([0-9]*\) samples.*/\1/p' err | head -n 1) $before $(cat $rate) $(grep -c 'not sampled after' err)"
}
alone() {
    program=$1
    shift
    "$@" >/dev/null
    echo "RUN $program alone $(wall) 0 0 0 0"
}
# three of a program: alone, by frequency, by period
three() {
    program=$1
    shift
    alone "$program" /programs/tw out.json "$@"
    one "$program" '-F_999' -e cycles -F 999 -- /programs/tw out.json "$@"
    one "$program" '-c_4000000' -e cycles -c 4000000 -- /programs/tw out.json "$@"
}
for _ in $(seq "${ROUNDS_OF_EACH:-10}"); do
    three recursion /programs/recur-O2 8
    three recursion-x10 /programs/recur-O2 80
    three xz /usr/bin/xz -2c data
done
dmesg | grep 'interrupt took too long' | tail -n 5
