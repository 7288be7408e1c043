#!/bin/bash
# bpftrace with loops at tracepoints and timers that run most of a program's time
. "$(dirname "$0")/../lib.sh"; root; need gcc bpftrace; cd "$W" || exit 1
cat > zr.c <<'C'
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void *user_thread(void*a){ double e=cpu()+0.4; unsigned long k=0; while(cpu()<e) for(int i=0;i<50000;i++) s+=i+k; return 0; }
__attribute__((noinline)) void *call_thread(void*a){ double e=cpu()+0.8; while(cpu()<e) for(int i=0;i<20;i++) { syscall(SYS_getpriority,0,0); } s++; return 0; }
int main(void){ pthread_t a,b; pthread_create(&a,0,user_thread,0); pthread_create(&b,0,call_thread,0); pthread_join(a,0); pthread_join(b,0); s++; return 0; }
C
gcc -O2 -g zr.c -o zr -lpthread
L='$i=0; $x=0; while ($i < 2000) { $i++; $x += $i * 3; } @=$x;'
cause() { grep -qiE "other (tool|program)|BPF program|bpf_prog|interrupt" "$1"; }
for probe in tracepoint:syscalls:sys_enter_getpriority profile:hz:199; do
  bpftrace -e "$probe /comm == \"zr\"/ { $L }" >bt 2>&1 & b=$!; kids="$kids $b"; for _ in $(seq 100); do grep -q Attaching bt && break; sleep 0.1; done; sleep 0.5
  kill -0 $b 2>/dev/null || { note "bpftrace can't: $(tail -1 bt)"; continue; }
  $PLUMB record -o a.plumb -- ./zr 2>err; c=$(coverage err); n=${probe%%:*}
  if within "$c" 95 105; then pass "$n: coverage $c%"; s=$(share a.plumb call_thread); within "$s" 60 73 && pass "$n: call_thread $s% (true 66.7)" || { bad "$n: call_thread $s% (true 66.7)"; top3 a.plumb; }
  elif cause err; then pass "$n: coverage $c%, cause said"; else bad "$n: coverage $c% without the cause"; cat err; fi
  $PLUMB record -a -o b.plumb 2>err2 & r=$!; kids="$kids $r"; for _ in $(seq 60); do [ -e b.plumb.part ] && break; sleep 0.1; done; sleep 0.7; ./zr; kill -INT $r; wait $r; s=$(share b.plumb call_thread --comm zr)
  if ge "$s" 60 && ge "$(total b.plumb --comm zr)" 1000; then pass "$n: -a: call_thread $s% of zr, $(total b.plumb --comm zr) samples (1200 are true)"; elif cause err2; then pass "$n: -a: cause said"; else bad "$n: -a: call_thread $s% of zr's samples (true 66.7), $(total b.plumb --comm zr) samples of true 1200, no cause said"; cat err2; fi
  $PLUMB explain a.plumb >ex 2>&1; { grep -q 'call_thread' ex || cause ex; } && pass "$n: explain" || { bad "$n: explain names neither call_thread nor the cause"; head -5 ex; }
  kill -INT $b; wait $b 2>/dev/null
done
finish
