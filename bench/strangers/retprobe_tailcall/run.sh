#!/bin/bash
# return probes on a function that tail calls another one with a return probe, enabled in tracefs without perf; the callers must not get lost or doubled
. "$(dirname "$0")/../lib.sh"; root; need gcc; T=/sys/kernel/tracing; [ -w $T/uprobe_events ] || skip "no uprobe_events"; cd "$W" || exit 1
g=rpt$$; case_cleanup() { echo 0 >$T/events/$g/enable 2>/dev/null; for e in first second cold; do echo "-:$g/$e" >>$T/uprobe_events 2>/dev/null; done; }
cat > p.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void leaf(void){ for(int i=0;i<100000;i++) s+=i; }
__attribute__((noinline)) void second(double d){ volatile char p[130]; p[0]=1; double e=cpu()+d; while(cpu()<e) leaf(); s+=p[0]; }
__attribute__((noinline)) void first(double d){ s++; second(d); }           /* jmp second */
__attribute__((noinline)) void unprobed(double d){ s++; first(d); }         /* jmp first */
__attribute__((noinline)) void caller_a(double d){ volatile char p[20]; p[0]=1; unprobed(d); s+=p[0]; }
__attribute__((noinline)) void caller_b(double d){ volatile char p[70]; p[0]=1; second(d); s+=p[0]; }
int main(int c,char**v){ int n=c>1?atoi(v[1]):12; for(int i=0;i<n;i++){ caller_a(0.06); caller_b(0.03); } s++; return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o p || exit 2
for e in first second; do echo "r:$g/$e $W/p:$(file_offset p $e)" >>$T/uprobe_events || skip "uprobe_events refuses r:"; done
echo 1 >$T/events/$g/enable || skip "can't enable"
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- ./p 2>err
  for k in "main;caller_a;([a-z]*;)*second 67" "main;caller_b;second 33"; do set -- $k; s=$(share a.plumb "$1"); within "$s" $(($2-6)) $(($2+6)) && pass "$cap: $1 $s% (true $2)" || { bad "$cap: $1 $s% (true $2)"; top3 a.plumb; sed -n 2,4p err; }; done
  s=$(share a.plumb ';second;.*;second;|;caller_[ab];.*;caller_|;main;.*;main;'); [ "$s" = 0.0 ] && pass "$cap: no frame twice" || { bad "$cap: $s% have a frame twice"; top3 a.plumb; }
done
$PLUMB record -e page-faults,cpu-clock -o a.plumb -- ./p 4 2>err; s=$(share a.plumb 'main;caller_[ab]' --event cpu-clock); ge "$s" 90 && pass "two events: $s%" || { bad "two events: $s%"; top3 --event cpu-clock a.plumb; }
echo 0 >$T/events/$g/enable
# a probe that comes and goes while plumb records: both sides have the same stacks
./p 60 & q=$!; kids=$q; sleep 0.2; (sleep 0.6; echo 1 >$T/events/$g/enable; sleep 0.7; echo 0 >$T/events/$g/enable) & $PLUMB record -p $q -o a.plumb --duration 2 2>err; s=$(share a.plumb 'main;caller_[ab]'); ge "$s" 97 && pass "enabled while recording: $s%" || { bad "enabled while recording: $s%"; top3 a.plumb; sed -n 2,4p err; }
kill $q; wait $q 2>/dev/null; finish
