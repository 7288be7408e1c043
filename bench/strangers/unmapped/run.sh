#!/bin/bash
# code in memory that is unmapped or replaced right after it ran (one address, three names by a perf map in turn), and the vsyscall page from threads and inside such code
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static char *at;
static const unsigned char code[]={0x48,0xff,0xcf,0x75,0xfb,0xc3};
/* push rbp; mov rbp,rsp; call *rsi; pop rbp; ret: code without any table that calls back */
static const unsigned char thunk[]={0x55,0x48,0x89,0xe5,0xff,0xd6,0x5d,0xc3};
static char *fresh(void){ char*m=mmap(at,4096,PROT_READ|PROT_WRITE|PROT_EXEC,MAP_PRIVATE|MAP_ANONYMOUS|(at?MAP_FIXED:0),-1,0); at=m; return m; }
__attribute__((noinline)) void gone_code(double d){ double e=cpu()+d; while(cpu()<e){ char*m=fresh(); memcpy(m,code,sizeof code); ((void(*)(long))m)(3000000); munmap(m,4096); } s++; }
__attribute__((noinline)) void plain_code(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) void called_back(void){ double e=cpu()+0.02; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; s++; }
__attribute__((noinline)) void through_thunk(double d){ double e=cpu()+d; while(cpu()<e){ char*m=fresh(); memcpy(m,thunk,sizeof thunk); ((void(*)(long,void*))m)(1,(void*)called_back); munmap(m,4096); } s++; }
static void *vsys(void*a){ double e=cpu()+0.4; long (*f)(long*)=(long(*)(long*))0xffffffffff600400UL; while(cpu()<e) for(int i=0;i<200;i++) f(0); s++; return 0; }
__attribute__((noinline)) void *vsys_thread(void*a){ vsys(a); s++; return 0; }
int main(int c,char**v){ if(c>1){ pthread_t t; pthread_create(&t,0,vsys_thread,0); pthread_join(t,0); return 0; } gone_code(0.4); through_thunk(0.4); plain_code(0.4); s++; return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o p -lpthread && ./p || exit 2
chk() { s=$(share a.plumb "$2" $4); within "$s" $(($3-6)) $(($3+6)) && pass "$1: $2 $s% (true $3)" || { bad "$1: $2 $s% (true $3)"; top3 a.plumb; sed -n 2,5p err; }; }
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- ./p 2>err; chk $cap 'main;gone_code' 33; chk $cap 'main;through_thunk;.*called_back' 33; chk $cap 'main;plain_code' 33
  n=$(share a.plumb 'plain_code;.*(gone|called)|gone_code;(.*;)?plain'); [ "$n" = 0.0 ] && pass "$cap: no mixed stacks" || bad "$cap: $n% have stacks that can't be"; done
if ./p v 2>/dev/null; then for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- ./p v 2>err; chk "$cap, vsyscall in a thread" 'vsys_thread;vsys' 97; done
  $PLUMB record -e page-faults,cpu-clock -o a.plumb -- ./p v 2>err; s=$(share a.plumb 'vsys_thread;vsys' --event cpu-clock); ge "$s" 85 && pass "two events: $s%" || { bad "two events: vsys_thread;vsys $s%"; top3 --event cpu-clock a.plumb; }
else note "no vsyscall page here"; fi
finish
