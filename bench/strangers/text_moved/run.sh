#!/bin/bash
# text made writable and patched in place (mprotect), and a library's text moved elsewhere by mremap (which no mapping event tells) and called there
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > l.c <<'C'
static volatile unsigned long s_[1];
/* position independent, touches only its argument, so that it runs anywhere */
__attribute__((noinline,aligned(4096))) unsigned long moved_leaf(unsigned long n){ volatile unsigned long x=0; for(unsigned long i=0;i<n;i++) x+=i; return x; }
__attribute__((noinline)) unsigned long moved_mid(unsigned long n){ volatile char pad[77]; pad[1]=1; unsigned long r=0; for(int i=0;i<5;i++) r+=moved_leaf(n); return r+pad[1]; }
__attribute__((noinline,aligned(4096))) void moved_end(void){ s_[0]++; }
C
cat > p.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static volatile unsigned long s;
typedef unsigned long fn(unsigned long);
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void call_it(fn *f, double d){ double e=cpu()+d; while(cpu()<e) s+=f(20000); }
__attribute__((noinline)) void in_place(fn *f, double d){ call_it(f,d); s++; }
__attribute__((noinline)) void after_patch(fn *f, double d){ call_it(f,d); s++; }
__attribute__((noinline)) void after_move(fn *f, double d){ call_it(f,d); s++; }
int main(int c,char**v){ void*h=dlopen("./libm2.so",RTLD_NOW); if(!h) {puts(dlerror());return 2;} fn*f=dlsym(h,"moved_mid"); char*a=dlsym(h,"moved_leaf"), *b=dlsym(h,"moved_end"); size_t n=b-a;
  in_place(f,atof(v[1])); mprotect(a,n,PROT_READ|PROT_WRITE|PROT_EXEC); for(size_t i=0;i<n;i+=64) ((volatile char*)a)[i]=((volatile char*)a)[i]; mprotect(a,n,PROT_READ|PROT_EXEC);
  after_patch(f,atof(v[1]));
  char*t=mmap(0,n,PROT_NONE,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); if(mremap(a,n,n,MREMAP_MAYMOVE|MREMAP_FIXED,t)==MAP_FAILED) {perror("mremap");return 3;}
  puts("moved"); fflush(stdout); after_move((fn*)(t+((char*)f-a)),atof(v[2])); return 0; }
C
gcc -O2 -g -fPIC -shared -fomit-frame-pointer -fno-semantic-interposition l.c -o libm2.so && gcc -O2 -g -fomit-frame-pointer p.c -o p -ldl || exit 2
./p 0.01 0.01 >/dev/null || skip "the program can't move its text"
chk() { s=$(share a.plumb "$2"); within "$s" $(($3-6)) $(($3+6)) && pass "$1: $2 $s% (true $3)" || { bad "$1: $2 $s% (true $3)"; top3 a.plumb; sed -n 2,5p err; }; }
for cap in auto perf; do $PLUMB record --capture $cap -o a.plumb -- ./p 0.3 0.4 >/dev/null 2>err
  chk $cap 'main;in_place;call_it;moved_mid;moved_leaf' 30; chk $cap 'main;after_patch;call_it;moved_mid;moved_leaf' 30; chk $cap 'main;after_move;call_it;' 40; chk $cap 'after_move;call_it;moved_mid;moved_leaf' 40; done
./p 0.05 3 >out & p=$!; kids=$p; filled out; $PLUMB record -o a.plumb -p $p --duration 0.8 2>err; chk "-p, moved before" 'main;after_move;call_it;moved_mid;moved_leaf' 100
$PLUMB stack -p $p >st 2>&1; grep -q moved_leaf st && grep -q after_move st && pass stack || { bad stack; head -8 st; }
kill $p; wait $p 2>/dev/null; finish
