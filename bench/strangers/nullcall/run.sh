#!/bin/bash
# calls of a NULL pointer, of a data address and of a never mapped one, caught by a SIGSEGV handler that returns by siglongjmp or by fixing the context; the caller has to stay on the stack
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
static volatile unsigned long s; static sigjmp_buf jb; static volatile int fix;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void in_handler(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
static void handler(int n, siginfo_t*i, void*u){ ucontext_t*c=u; in_handler(0.01);
  if(fix){ long*sp=(long*)c->uc_mcontext.gregs[REG_RSP]; c->uc_mcontext.gregs[REG_RIP]=*sp; c->uc_mcontext.gregs[REG_RSP]+=8; return; } /* as if the called function returned */
  siglongjmp(jb,1); }
typedef void fn(void); static fn *volatile target; static char data[64] __attribute__((aligned(64)));
__attribute__((noinline)) void calls_null(void){ volatile char p[64]; p[0]=1; target=0; target(); s+=p[0]; }
__attribute__((noinline)) void calls_data(void){ volatile char p[96]; p[0]=1; target=(fn*)data; target(); s+=p[0]; }
__attribute__((noinline)) void calls_wild(void){ volatile char p[32]; p[0]=1; target=(fn*)0x123456789000; target(); s+=p[0]; }
__attribute__((noinline)) void jumper(fn*f){ if(!sigsetjmp(jb,1)) f(); s++; }
__attribute__((noinline)) void fixer(fn*f){ fix=1; f(); fix=0; s++; }
__attribute__((noinline)) void quiet(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
int main(int c,char**v){ struct sigaction a; memset(&a,0,sizeof a); a.sa_sigaction=handler; a.sa_flags=SA_SIGINFO|SA_NODEFER|(c>1?SA_ONSTACK:0); sigaction(SIGSEGV,&a,0); 
  if(c>1){ stack_t st={.ss_sp=malloc(1<<16),.ss_size=1<<16}; sigaltstack(&st,0); }
  for(int i=0;i<20;i++){ jumper(calls_null); fixer(calls_null); fixer(calls_data); jumper(calls_wild); quiet(0.01); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o p && ./p || exit 2
for cap in bpf perf; do for alt in "" alt; do $PLUMB record --capture $cap -o a.plumb -- ./p $alt 2>err
  for k in "main;jumper;calls_null;.*handler;in_handler 20" "main;fixer;calls_null;.*handler;in_handler 20" "main;fixer;calls_data;.*handler;in_handler 20" "main;jumper;calls_wild;.*handler;in_handler 20" "main;quiet 20"; do set -- $k; s=$(share a.plumb "$1"); within "$s" $(($2-4)) $(($2+4)) && pass "$cap $alt: $1 $s% (true $2)" || { [ "$cap$alt" = perfalt ] && ge "$(share a.plumb 'another stack, which was not copied')" 75 && pass "$cap $alt: cut, the other stack was not copied" && continue; bad "$cap $alt: $1 $s% (true $2)"; top3 a.plumb; sed -n 2,4p err; }; done; done; done
$PLUMB record -e page-faults -o a.plumb -- ./p 2>err && { s=$(share a.plumb 'main;'); ge "$s" 10 && pass "page faults of it are recorded" || bad "page faults: $s% from main"; }
finish
