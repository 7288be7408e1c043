#!/bin/bash
# bpftrace's return probe on a library's function that calls back into the program (qsort's comparison, a plugin's callback), and time off the CPU inside one
. "$(dirname "$0")/../lib.sh"; root; need gcc bpftrace; cd "$W" || exit 1
cat > l.c <<'C'
#include <time.h>
#include <unistd.h>
static volatile int s;
__attribute__((noinline)) void lib_each(void (*f)(void*), void *a, double until, double (*now)(void)){ volatile char p[40]; p[0]=1; while(now()<until) f(a); s+=p[0]; }
__attribute__((noinline)) void lib_wait(int ms){ volatile char p[100]; p[0]=1; usleep(ms*1000); s+=p[0]; }
C
cat > p.c <<'C'
#include <stdlib.h>
#include <time.h>
void lib_each(void (*f)(void*), void *a, double until, double (*now)(void)); void lib_wait(int ms);
static volatile unsigned long s;
double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void callback(void*a){ for(int i=0;i<100000;i++) s+=i; }
__attribute__((noinline)) void inner_callback(void*a){ lib_each(callback,0,cpu()+0.02,cpu); s++; }
__attribute__((noinline)) void one_level(double d){ lib_each(callback,0,cpu()+d,cpu); s++; }
__attribute__((noinline)) void two_levels(double d){ lib_each(inner_callback,0,cpu()+d,cpu); s++; }
__attribute__((noinline)) void waits(int ms){ lib_wait(ms); s++; }
int main(int c,char**v){ int n=c>1?atoi(v[1]):4; for(int i=0;i<n;i++){ one_level(0.1); two_levels(0.2); waits(60); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer -fPIC -shared l.c -o libcb.so && gcc -O2 -g -fomit-frame-pointer p.c -o p -L. -lcb -Wl,-rpath,"$W" || exit 2
bpftrace -e "uretprobe:$W/libcb.so:lib_each { @=count(); } uretprobe:$W/libcb.so:lib_wait { @w=count(); }" >bt 2>&1 & b=$!; kids=$b; for _ in $(seq 100); do grep -q Attaching bt && break; sleep 0.1; done; sleep 0.5; kill -0 $b || skip "bpftrace: $(tail -1 bt)"
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- ./p 2>err
  for k in "main;one_level;lib_each;callback 33" "main;two_levels;lib_each;inner_callback;lib_each;callback 67"; do set -- $k; s=$(share a.plumb "$1"); within "$s" $(($2-6)) $(($2+6)) && pass "$cap: $1 $s% (true $2)" || { bad "$cap: $1 $s% (true $2)"; top3 a.plumb; sed -n 2,4p err; }; done; done
$PLUMB record --off-cpu -o a.plumb -- ./p 2>err; n=$(weight a.plumb 'main;waits;lib_wait' --weights --event off-cpu); ms=$((n/1000000)); within $ms 235 320 && pass "off-cpu: main;waits;lib_wait $ms ms (true 240)" || { bad "off-cpu: main;waits;lib_wait $ms ms (true 240)"; $PLUMB fold --event off-cpu --weights a.plumb | sort -k2 -n | tail -3 | cut -c1-170; }
$PLUMB record -e syscalls:sys_enter_clock_nanosleep -o a.plumb -- ./p 2>err; n=$(weight a.plumb 'main;waits;lib_wait'); t=$(total a.plumb); [ "$t" = 4 ] && [ "$n" = 4 ] && pass "tracepoint: 4 of 4 in main;waits;lib_wait" || { bad "tracepoint: $n of $t in main;waits;lib_wait (true 4 of 4)"; top3 a.plumb; }
kill -INT $b; wait $b 2>/dev/null; grep -E '@w?:' bt | tr '\n' ' '; echo; finish
