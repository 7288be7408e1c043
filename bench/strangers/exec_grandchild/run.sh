#!/bin/bash
# a thread of a grandchild execs (made by vfork in a thread, then fork), two such execs in a row: -p and --tree attached before, counts and shares
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s; static char *self;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void spin(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline)) void parent_work(double d){ spin(d); s++; }
__attribute__((noinline)) void first_image(double d){ spin(d); s++; }
__attribute__((noinline)) void second_image(double d){ spin(d); s++; }
static void calls(int n){ for(int i=0;i<n;i++) syscall(SYS_getppid); }
static void *ex(void *a){ execl(self,self,(char*)a,(char*)0); _exit(9); }
static void exec_in_thread(char *stage){ pthread_t t; pthread_create(&t,0,ex,stage); for(;;) pause(); }
static void *forker(void *a){ pid_t p=vfork(); if(!p){ execl(self,self,"child",(char*)0); _exit(9);} int st; waitpid(p,&st,0); return 0; }
int main(int c,char**v){ self=v[0];
  if(c<2||!strcmp(v[1],"wait")){ if(c>1){ printf("%d\n",getpid()); fflush(stdout); sleep(4); } parent_work(0.2); pthread_t t; pthread_create(&t,0,forker,0); pthread_join(t,0); return 0; }
  if(!strcmp(v[1],"child")){ pid_t p=fork(); if(!p) exec_in_thread("one"); int st; waitpid(p,&st,0); return 0; }
  if(!strcmp(v[1],"one")){ first_image(0.3); calls(1500); exec_in_thread("two"); }
  if(!strcmp(v[1],"two")){ second_image(0.5); calls(2500); }
  return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o gc -lpthread || exit 2
chk() { local l=$1; for k in "main;parent_work 20" "main;first_image 30" "main;second_image 50"; do set -- $k; s=$(share a.plumb "$1"); within "$s" $(($2-6)) $(($2+6)) && pass "$l: $1 $s% (true $2)" || { bad "$l: $1 $s% (true $2)"; top3 a.plumb; }; done; }
$PLUMB record -o a.plumb -- ./gc 2>err; chk command
n=$($PLUMB procs --json a.plumb 2>/dev/null >pr.json; pyjson pr.json 'j["processes"]'); [ "$n" = 3 ] && pass "procs: 3 processes" || bad "procs: '$n' processes (true 3)"
./gc wait >pid & filled pid; $PLUMB record -o a.plumb -p "$(cat pid)" 2>err; chk "-p"; wait
./gc wait >pid & filled pid; $PLUMB record -o a.plumb --tree "$(cat pid)" 2>err; chk "--tree"; wait
./gc wait >pid & filled pid; $PLUMB trace -e getppid -p "$(cat pid)" >tr 2>err; n=$(grep -c 'getppid(' tr); [ $n = 4000 ] && pass "trace -p: 4000 getppid" || bad "trace -p: $n of 4000 getppid"; wait
$PLUMB kernel --calls --per process --json -- ./gc >k.json 2>err; n=$(pyjson k.json 'sum(c["calls"] for c in j["calls"] if c["name"]=="getppid")'); [ "$n" = 4000 ] && pass "kernel --calls: 4000" || bad "kernel --calls: '$n' of 4000"
n=$(pyjson k.json 'max(sum(c["calls"] for c in g["calls"] if c["name"]=="getppid") for g in j["groups"])'); [ "$n" = 4000 ] && pass "kernel --calls --per process: 4000 in one process" || bad "kernel --calls --per process: '$n' of 4000 in the largest"
finish
