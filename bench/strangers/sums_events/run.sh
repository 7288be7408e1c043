#!/bin/bash
# several events in one recording, and a perf.data with two: sums of readers, with filters, against the occurrences that are said
. "$(dirname "$0")/../lib.sh"; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void busy(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<20000;i++) s+=i; }
__attribute__((noinline)) void touch_few(char*m){ for(int i=0;i<1000;i++) m[i*4096L]=1; madvise(m,1000*4096L,MADV_DONTNEED); s++; }
__attribute__((noinline)) void touch_many(char*m){ for(int i=0;i<4000;i++) m[i*4096L]=1; madvise(m,4000*4096L,MADV_DONTNEED); s++; }
int main(void){ char*m=mmap(0,4000*4096L,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); madvise(m,4000*4096L,MADV_NOHUGEPAGE);
  pid_t q=fork(); for(int i=0;i<(q?5:3);i++){ busy(0.05); touch_few(m); touch_many(m); }
  FILE*f=fopen(q?"parent":"child","w"); struct rusage r; getrusage(RUSAGE_SELF,&r); fprintf(f,"%ld %d\n",r.ru_minflt+r.ru_majflt,getpid()); fclose(f); if(q){ int st; waitpid(q,&st,0); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o ev || exit 2
$PLUMB record -e cpu-clock,page-faults,cs --timeline -o a.plumb -- ./ev 2>err || { bad "record: $(head -1 err)"; finish; }
read -r pf pp <parent; read -r cf cp <child
n=$(total a.plumb --event page-faults); near "$n" $((pf+cf)) 3 && pass "page-faults: $n, the program says $((pf+cf))" || bad "page-faults: $n, the program says $((pf+cf))"
a=$(total a.plumb --event page-faults --pid "$cp"); b=$(total a.plumb --event page-faults --pid "$pp"); near $((a+b)) "$n" 1 && pass "both processes: $a + $b of $n" || bad "both processes: $a + $b of $n"
one() { python3 "$here/../sums.py" "$PLUMB" "$@" || fail=1; }
one a.plumb page-faults; one a.plumb page-faults --focus touch_few; one a.plumb page-faults --time 0.1-0.3; one a.plumb cpu-clock --pid "$cp"; one a.plumb cpu-clock
if command -v perf >/dev/null && perf record -q --call-graph dwarf,8192 -e cpu-clock -F 499 -o pd ./ev >/dev/null 2>&1; then one pd cpu-clock; one pd cpu-clock --focus touch_many; fi
finish
