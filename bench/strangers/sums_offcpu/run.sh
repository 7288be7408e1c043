#!/bin/bash
# off-CPU and run-queue times beside cpu-clock in one recording: all readers' sums, the kinds of waits, and the waits that the program knows of itself
. "$(dirname "$0")/../lib.sh"; root; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s; static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER; static double waited[3];
static double wall(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void busy(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) void naps(int ms){ double a=wall(); usleep(ms*1000); waited[0]+=wall()-a; }
__attribute__((noinline)) void holds(void){ pthread_mutex_lock(&m); usleep(40000); pthread_mutex_unlock(&m); s++; }
__attribute__((noinline)) void wants(void){ double a=wall(); pthread_mutex_lock(&m); waited[1]+=wall()-a; pthread_mutex_unlock(&m); s++; }
static int fd[2];
__attribute__((noinline)) void reads(void){ char c; double a=wall(); if(read(fd[0],&c,1)!=1) _exit(4); waited[2]+=wall()-a; }
static void *holder(void*a){ pthread_setname_np(pthread_self(),"holder"); for(int i=0;i<8;i++){ holds(); usleep(20000); } return 0; }
static void *wanter(void*a){ pthread_setname_np(pthread_self(),"wanter"); for(int i=0;i<8;i++){ usleep(30000); wants(); } return 0; }
static void *writer(void*a){ pthread_setname_np(pthread_self(),"writer"); for(int i=0;i<6;i++){ usleep(60000); if(write(fd[1],"x",1)!=1) _exit(5);} return 0; }
static void *reader(void*a){ pthread_setname_np(pthread_self(),"reader"); for(int i=0;i<6;i++) reads(); return 0; }
int main(void){ if(pipe(fd)) return 3; pthread_t t[4]; pthread_create(t,0,holder,0); pthread_create(t+1,0,wanter,0); pthread_create(t+2,0,writer,0); pthread_create(t+3,0,reader,0);
  for(int i=0;i<6;i++){ busy(0.03); naps(25); } for(int i=0;i<4;i++) pthread_join(t[i],0);
  FILE*f=fopen("truth","w"); fprintf(f,"naps %.0f\nwants %.0f\nreads %.0f\n",waited[0]*1e3,waited[1]*1e3,waited[2]*1e3); return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o w -lpthread || exit 2
$PLUMB record -e cpu-clock --off-cpu --timeline -o a.plumb -- ./w 2>err || { bad "record: $(head -1 err)"; finish; }
while read -r f ms; do o=$(weight a.plumb ";$f;" --weights --event off-cpu); q=$(weight a.plumb ";$f;" --weights --event run-queue); t=$(((o+q)/1000000)); within $t $((ms*90/100-8)) $((ms*105/100+12)) && pass "$f: off-cpu and run-queue $t ms, the program says $ms" || { bad "$f: off-cpu $((o/1000000)) and run-queue $((q/1000000)) ms, the program says $ms"; $PLUMB fold --weights --event off-cpu a.plumb | grep "$f" | head -3 | cut -c1-150; }; done <truth
one() { python3 "$here/../sums.py" "$PLUMB" a.plumb "$@" || fail=1; }
one off-cpu; one off-cpu --comm wanter; one off-cpu --time 0.1-0.4; one off-cpu --focus 'usleep'; one off-cpu --ignore 'usleep'; one run-queue; one cpu-clock; one cpu-clock --comm w
$PLUMB report --json --event off-cpu a.plumb >r.json; d=$(pyjson r.json 'sum(w["weight"] for w in j["reports"][0]["waits"])-j["reports"][0]["kept_weight"]-sum(x["self_weight"] for x in j["reports"][0].get("idle_rows",[]))'); i=$(pyjson r.json 'sum(w["weight"] for w in j["reports"][0]["waits"] if w["kind"]!="idle")-j["reports"][0]["kept_weight"]'); [ "$d" = 0 ] || [ "$i" = 0 ] && pass "kinds of waits add up" || bad "kinds of waits: off by $d with idle, $i without"
p=$(pyjson r.json 'round(sum(w["percent"] or 0 for w in j["reports"][0]["waits"]),1)'); within "$p" 99.5 100.5 && pass "kinds of waits: $p%" || bad "kinds of waits add up to $p%"
finish
