#!/bin/bash
# a shared library's text is copied to anonymous memory mapped over it with MAP_FIXED, only its middle pages, after the start and before -p
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > l.c <<'C'
#include <time.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline,aligned(4096))) void lib_first(void){ for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline,aligned(4096))) void lib_second(void){ for(int i=0;i<50000;i++) s^=i; }
__attribute__((noinline,aligned(4096))) void lib_run(double d, int which){ volatile char pad[333]; pad[3]=1; double e=cpu()+d; while(cpu()<e) if(which) lib_second(); else lib_first(); s+=pad[3]; }
__attribute__((noinline,aligned(4096))) void lib_last(void){ s++; }
C
cat > p.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int k;
void lib_first(void), lib_second(void), lib_last(void), lib_run(double,int);
__attribute__((noinline)) void work_before(double d){ lib_run(d,0); k++; }
__attribute__((noinline)) void work_after(double d){ lib_run(d/2,1); lib_run(d/2,0); k++; }
static void over(char *a, char *b){ size_t n=b-a; char *t=malloc(n); memcpy(t,a,n);
  if(mmap(a,n,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED,-1,0)==MAP_FAILED) _exit(3);
  memcpy(a,t,n); mprotect(a,n,PROT_READ|PROT_EXEC); free(t); }
int main(int c,char**v){ work_before(atof(v[1]));
  over((char*)lib_first,(char*)lib_run);           /* two pages in the middle only: lib_run stays of the file */
  puts("copied"); fflush(stdout); work_after(atof(v[2])); 
  over((char*)lib_run,(char*)lib_last);            /* then the page of the caller as well */
  work_after(atof(v[2])); return 0; }
C
gcc -O2 -g -fPIC -shared -fomit-frame-pointer l.c -o libl.so && gcc -O2 -g -fomit-frame-pointer p.c -o p -L. -ll -Wl,-rpath,"$W" || exit 2
chk() { s=$(share a.plumb "$2"); within "$s" $(($3-6)) $(($3+6)) && pass "$1: $2 $s% (true $3)" || { bad "$1: $2 $s% (true $3)"; top3 a.plumb; }; }
for cap in auto perf; do $PLUMB record --capture $cap -o a.plumb -- ./p 0.3 0.4 >/dev/null 2>err
  chk $cap 'main;work_before;lib_run;lib_first' 27; chk $cap 'main;work_after;lib_run;lib_second' 36; chk $cap 'main;work_after;lib_run;lib_first' 36; done
./p 0.05 3 >out & p=$!; kids=$p; filled out; $PLUMB record -o a.plumb -p $p --duration 0.8 2>err; chk "-p, copied before" 'main;work_after;lib_run;lib_second' 100
for _ in 1 2 3 4 5 6; do $PLUMB stack -p $p >st 2>&1; grep -q lib_second st && break; done; grep -q lib_second st && grep -q lib_run st && grep -q work_after st && grep -q main st && pass "stack" || { bad "stack"; head -8 st; }
$PLUMB report --no-children -s dso,sym --csv a.plumb >r.csv; grep -q 'libl.so.*lib_second' r.csv && pass "report: lib_second is in libl.so" || { bad "report: lib_second isn't in libl.so"; head -4 r.csv; }
kill $p; wait $p 2>/dev/null; finish
