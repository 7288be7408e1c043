#!/bin/bash
# time off the CPU before and after an exec by a thread: a Python thread calls os.execv, a C thread execs a sleeper; the sums are known
. "$(dirname "$0")/../lib.sh"; root; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static char *self; static volatile int s;
__attribute__((noinline)) void nap(int ms){ struct timespec t={ms/1000,(ms%1000)*1000000L}; nanosleep(&t,0); s++; }
__attribute__((noinline)) void sleep_two(void){ for(int i=0;i<6;i++) nap(100); s++; }
__attribute__((noinline)) void sleep_three(void){ for(int i=0;i<8;i++) nap(50); s++; }
__attribute__((noinline)) void *run(void*a){ nap(200); execl(self,self,(char*)a,(char*)0); _exit(9); }
static void go(char*n){ pthread_t t; pthread_create(&t,0,run,n); for(;;) pause(); }
int main(int c,char**v){ self=v[0]; if(c<2) go("2"); if(*v[1]=='2'){ sleep_two(); go("3"); } sleep_three(); return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o p -lpthread || exit 2
$PLUMB record --off-cpu -o a.plumb -- ./p 2>err || { bad "record --off-cpu: $(head -1 err)"; }
for k in "run;nap 400" "main;sleep_two;nap 600" "main;sleep_three;nap 400" "main;(go.*;)?(__libc_)?pause 400"; do set -- $k; n=$(weight a.plumb "$1" --weights --event off-cpu); ms=$((n/1000000)); within $ms $(($2-10)) $(($2*13/10+60)) && pass "off-cpu $1 $ms ms (true $2)" || { bad "off-cpu $1 $ms ms (true $2)"; $PLUMB fold --weights --event off-cpu a.plumb | tail -6 | cut -c1-150; }; done
cat > t.py <<'Y'
import os, sys, threading, time
def nap_before(): time.sleep(0.5)
def nap_after():
    for i in range(7): time.sleep(0.1)
def busy_after():
    e = time.thread_time() + 0.5
    n = 0
    while time.thread_time() < e:
        for i in range(1000): n += i
def run():
    nap_before(); os.execv(sys.executable, [sys.executable, sys.argv[0], "2"])
if len(sys.argv) > 1:
    nap_after(); busy_after()
else:
    threading.Thread(target=run).start(); time.sleep(99)
Y
$PLUMB record -e cpu-clock --off-cpu -o b.plumb -- python3 t.py 2>err || bad "record: $(head -1 err)"
for k in "nap_before 500" "nap_after 700"; do set -- $k; n=$(weight b.plumb "$1" --weights --event off-cpu); ms=$((n/1000000)); within $ms $(($2-10)) $(($2*13/10+60)) && pass "python off-cpu $1 $ms ms (true $2)" || { bad "python off-cpu $1 $ms ms (true $2)"; sed -n 1,5p err; $PLUMB fold --weights --event off-cpu b.plumb | tail -4 | cut -c1-200; }; done
n=$(weight b.plumb busy_after --weights --event cpu-clock); ms=$((n/1000000)); within $ms 440 560 && pass "python on the CPU: busy_after $ms ms (true 500)" || { bad "python on the CPU: busy_after $ms ms (true 500)"; top3 --event cpu-clock b.plumb; }
finish
