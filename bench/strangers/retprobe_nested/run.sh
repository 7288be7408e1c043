#!/bin/bash
# return probes of another tool (lines r: of uprobe_events, with perf record) on several nested functions and on a recursion
. "$(dirname "$0")/../lib.sh"; root; need gcc perf; T=/sys/kernel/tracing; [ -w $T/uprobe_events ] || skip "no uprobe_events"; cd "$W" || exit 1
g=rpn$$; case_cleanup() { echo 0 >$T/events/$g/enable 2>/dev/null; for e in n1 n2 n3 deep; do echo "-:$g/$e" >>$T/uprobe_events 2>/dev/null; done; }
cat > p.c <<'C'
#include <stdio.h>
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void leaf(void){ for(int i=0;i<100000;i++) s+=i; }
__attribute__((noinline)) void n3(double d){ volatile char p[30]; p[0]=1; double e=cpu()+d; while(cpu()<e) leaf(); s+=p[0]; }
__attribute__((noinline)) void n2(double d){ volatile char p[90]; p[0]=1; n3(d); s+=p[0]; }
__attribute__((noinline)) void plain(double d){ volatile char p[60]; p[0]=1; n2(d); s+=p[0]; }
__attribute__((noinline)) void n1(double d){ volatile char p[10]; p[0]=1; plain(d); s+=p[0]; }
__attribute__((noinline)) void rec(int n, double d){ volatile char p[50]; p[0]=1; if(n) rec(n-1,d); else { double e=cpu()+d; while(cpu()<e) leaf(); } s+=p[0]; }
__attribute__((noinline)) void nested(double d){ n1(d); s++; }
__attribute__((noinline)) void recursion(double d){ rec(12,d); s++; }
int main(int c,char**v){ for(int i=0;i<(c>1?300:10);i++){ nested(0.05); recursion(0.05); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -no-pie -fno-ipa-cp -fno-ipa-sra p.c -o p || exit 2
for e in n1 n2 n3 deep; do echo "r:$g/$e $W/p:$(file_offset p ${e/deep/rec})" >>$T/uprobe_events || skip "uprobe_events refuses r:"; done
perf record -q -a -e $g:n1 -e $g:n2 -e $g:n3 -e $g:deep -o perf.data sleep 100 >pl 2>&1 & b=$!; kids=$b; sleep 1.5; kill -0 $b 2>/dev/null || skip "perf: $(head -3 pl)"
R=$(printf 'rec;%.0s' $(seq 13))
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- ./p 2>err
  for k in "main;nested;n1;plain;n2;n3; 50" "main;recursion;$R 50"; do set -- $k; s=$(share a.plumb "$1"); within "$s" 43 57 && pass "$cap: $1 $s% (true 50)" || { bad "$cap: $1 $s% (true 50)"; top3 a.plumb; sed -n 2,4p err; }; done
  n=$(share a.plumb 'uprobes|0x7fffffff'); ge 1 "$n" && pass "$cap: the kernel's trampoline is no function ($n%)" || bad "$cap: $n% of samples show the trampoline of the probe as a function"
done
./p long & q=$!; kids="$kids $q"; sleep 0.4; okk=0; for i in 1 2 3 4; do $PLUMB stack -p $q >st 2>&1; { grep -q nested st || grep -q recursion st; } && grep -q main st && okk=$((okk+1)); done; [ $okk = 4 ] && pass "stack: 4 of 4 to main" || { bad "stack: $okk of 4 reach main"; head -12 st; }
$PLUMB record -p $q -o a.plumb --duration 1 2>err; s=$(share a.plumb 'main;(nested;n1;plain;n2;n3|recursion;rec;rec)'); ge "$s" 95 && pass "-p: $s%" || { bad "-p: $s%"; top3 a.plumb; }
kill $q 2>/dev/null; wait $q 2>/dev/null; kill -INT $b; wait $b 2>/dev/null; note "the probes hit $(perf script -i perf.data 2>/dev/null | grep -c "$g:") times"; finish
