#!/bin/bash
# spikes of context switches between two processes of Python and two threads of C, with the number by getrusage: -e context-switches, tracepoint, off-cpu, stat
. "$(dirname "$0")/../lib.sh"; root; need gcc python3; cd "$W" || exit 1
cat > pp.py <<'Y'
import os, resource, time
def spike(n, a, b):
    for i in range(n):
        os.write(a, b"x"); os.read(b, 1)
def echo(n, a, b):
    for i in range(n):
        os.read(b, 1); os.write(a, b"y")
r1, w1 = os.pipe(); r2, w2 = os.pipe()
if os.fork() == 0:
    for k in range(3): echo(4000, w2, r1)
    os._exit(0)
for k in range(3):
    time.sleep(0.3); spike(4000, w1, r2)
os.wait()
a = resource.getrusage(resource.RUSAGE_SELF); b = resource.getrusage(resource.RUSAGE_CHILDREN)
open("truth", "w").write(str(a.ru_nvcsw + a.ru_nivcsw + b.ru_nvcsw + b.ru_nivcsw))
Y
cat > ft.c <<'C'
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int v; static int turns=6000;
static void fw(int old){ syscall(SYS_futex,&v,FUTEX_WAIT_PRIVATE,old,0,0,0); }
static void fk(void){ syscall(SYS_futex,&v,FUTEX_WAKE_PRIVATE,1,0,0,0); }
__attribute__((noinline)) void ping_side(void){ for(int i=0;i<turns;i++){ while(v&1) fw(v); v++; fk(); } }
__attribute__((noinline)) void pong_side(void){ for(int i=0;i<turns;i++){ while(!(v&1)) fw(v); v++; fk(); } }
static void *t(void*a){ pong_side(); return 0; }
int main(void){ pthread_t x; for(int k=0;k<3;k++){ usleep(200000); pthread_create(&x,0,t,0); ping_side(); pthread_join(x,0); }
  struct rusage a; getrusage(RUSAGE_SELF,&a); FILE*f=fopen("truth","w"); fprintf(f,"%ld",a.ru_nvcsw+a.ru_nivcsw); return 0; }
C
gcc -O2 -g -fomit-frame-pointer ft.c -o ft -lpthread || exit 2
lost() { grep -oE '[0-9,]+ lost' err | head -1 | grep -vq '^0 lost'; }
one() { # OPTIONS EVENT CMD...
  local o=$1 e=$2; shift 2; $PLUMB record $o -o a.plumb -- "$@" 2>err || { bad "$o $*: $(head -1 err)"; return; }; t=$(cat truth); n=$(total a.plumb --event "$e" --weights); near "$n" "$t" 5 && pass "$o $1: $n of $t" || { lost && pass "$o $1: $n of $t, lost said" || { bad "$o $1: $n of $t, nothing lost said"; head -2 err; }; }; }
for c in "python3 pp.py" "./ft"; do one "-e context-switches" context-switches $c; one "-e cs -F 99" context-switches $c; one "-e sched:sched_switch" sched:sched_switch $c; done
one "-e cs --capture perf" context-switches ./ft
s=$(share a.plumb 'ping_side|pong_side' --event context-switches); ge "$s" 90 && pass "stacks lead to the two sides: $s%" || { bad "stacks to the two sides: $s%"; top3 a.plumb; }
$PLUMB record --off-cpu -o a.plumb -- ./ft 2>err; a=$(weight a.plumb 'main;' --weights --event off-cpu); within "$a" 600000000 20000000000 && pass "off-cpu: $((a/1000000)) ms from main (600 of sleep and more)" || bad "off-cpu: $((a/1000000)) ms from main (600 of sleep at least)"; u=$(weight a.plumb 'usleep' --weights --event off-cpu); within "$u" 590000000 800000000 && pass "off-cpu: usleep $((u/1000000)) ms (true 600)" || bad "off-cpu: usleep $((u/1000000)) ms (true 600)"
$PLUMB kernel --calls --json -- ./ft >k.json 2>err; n=$(pyjson k.json 'j["events"]["voluntary_switches"]+j["events"]["involuntary_switches"]'); near "$n" "$(cat truth)" 3 && pass "kernel --calls: $n of $(cat truth)" || bad "kernel --calls: '$n' of $(cat truth)"
finish
