#!/bin/bash
# the main thread of a static PIE ends with pthread_exit, two workers go on, with 3:1 of the time and a known number of calls: -p, --tree, -a, stack, trace, kernel, off-cpu
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > p.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void burn(double d){ volatile char pad[120]; pad[0]=1; double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; s+=pad[0]; }
/* both work and sleep in turns: 15 ms and 5 ms of processor time a round, each round one call of its own kind */
__attribute__((noinline)) void big_share(void){ burn(0.015); s++; }
__attribute__((noinline)) void small_share(void){ burn(0.005); s++; }
static volatile long turn; 
static void *big(void*a){ for(;;){ while(turn&1) usleep(300); big_share(); syscall(SYS_getpgrp); turn++; } return 0; }
static void *small(void*a){ for(;;){ while(!(turn&1)) usleep(300); small_share(); syscall(SYS_getuid); turn++; } return 0; }
int main(void){ pthread_t a,b; pthread_create(&a,0,big,0); pthread_create(&b,0,small,0); printf("%d\n",getpid()); fflush(stdout); pthread_exit(0); }
C
gcc -O2 -g -fomit-frame-pointer -static-pie p.c -o spie -lpthread 2>/dev/null || skip "no static PIE here"
./spie >pid & p=$!; kids=$p; filled pid; sleep 0.3; note "maps of the leader: $(wc -l </proc/$p/maps) lines"
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -p $p --duration 1 2>err; s=$(share a.plumb 'big;big_share;burn'); t=$(share a.plumb 'small;small_share;burn'); within "$s" 66 84 && within "$t" 16 34 && pass "$cap -p: $s%, $t% (true 75, 25)" || { bad "$cap -p: $s%, $t% (true 75, 25)"; top3 a.plumb; sed -n 1,4p err; }; done
$PLUMB record --tree $p -o a.plumb --duration 1 2>err; s=$(share a.plumb 'big;big_share;burn'); t=$(share a.plumb 'small;small_share;burn'); within "$s" 66 84 && within "$t" 16 34 && pass "--tree: $s%, $t%" || { bad "--tree: $s%, $t% (true 75, 25)"; top3 a.plumb; }
$PLUMB record -a -o a.plumb --duration 1 2>err; s=$(share a.plumb 'big;big_share;burn' --pid $p); t=$(share a.plumb 'small;small_share;burn' --pid $p); within "$s" 66 84 && within "$t" 16 34 && pass "-a: $s%, $t%" || { bad "-a, --pid: $s%, $t% (true 75, 25)"; top3 a.plumb --pid $p; }
$PLUMB stack -p $p >st 2>err; { grep -q big_share st || grep -q small_share st; } && grep -qE 'big|small' st && pass "stack -p" || { bad "stack -p"; cat err; head -9 st; }
$PLUMB trace -p $p -e getpgrp,getuid --duration 1 >tr 2>err; a=$(grep -c 'getpgrp()' tr); b=$(grep -c 'getuid()' tr); ge "$a" 5 && near "$a" "$((b+0))" 25 && pass "trace -p: $a getpgrp, $b getuid (as many)" || { bad "trace -p: $a getpgrp, $b getuid (should be as many)"; cat err; head -3 tr; }
$PLUMB kernel --calls -p $p --duration 1 --json >k.json 2>err; a=$(pyjson k.json 'sum(c["calls"] for c in j["calls"] if c["name"]=="getpgrp")'); ge "$a" 5 && pass "kernel --calls -p: $a getpgrp" || { bad "kernel --calls -p: '$a' getpgrp"; cat err; }
$PLUMB record --off-cpu -p $p -o a.plumb --duration 1 2>err; a=$(weight a.plumb usleep --weights --event off-cpu); ge "$a" 100000000 && pass "--off-cpu -p: $((a/1000000)) ms in usleep" || { bad "--off-cpu -p: $a ns in usleep"; cat err; }
kill -9 $p; wait $p 2>/dev/null; finish
