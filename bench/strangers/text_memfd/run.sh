#!/bin/bash
# the main program's text is replaced by a memfd with the same bytes (as hugify with shmem does), in a static program and a non-PIE one
. "$(dirname "$0")/../lib.sh"; root; need gcc; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void hot(void){ for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline)) void mid(double d){ volatile char pad[200]; pad[0]=1; double e=cpu()+d; while(cpu()<e) hot(); s+=pad[0]; }
__attribute__((noinline)) void early(double d){ mid(d); s++; }
__attribute__((noinline)) void late(double d){ mid(d); s++; }
int main(int c,char**v){ early(atof(v[1]));
  FILE*f=fopen("/proc/self/maps","r"); char line[512]; unsigned long a=0,b=0; char perm[8];
  while(fgets(line,512,f)){ unsigned long x,y; if(sscanf(line,"%lx-%lx %7s",&x,&y,perm)==3 && perm[2]=='x' && x<=(unsigned long)main && (unsigned long)main<y){a=x;b=y;} }
  fclose(f); int fd=memfd_create("text",0); if(write(fd,(void*)a,b-a)!=(long)(b-a)) return 3;
  if(mmap((void*)a,b-a,PROT_READ|PROT_EXEC,(c>3?MAP_SHARED:MAP_PRIVATE)|MAP_FIXED,fd,0)==MAP_FAILED) return 4;
  close(fd); puts("copied"); fflush(stdout); late(atof(v[2])); return 0; }
C
gcc -O2 -g -fomit-frame-pointer -no-pie p.c -o nopie || exit 2
gcc -O2 -g -fomit-frame-pointer -static p.c -o static 2>/dev/null || { note "no static libc"; cp nopie static; }
for x in nopie static; do for cap in auto perf; do
  $PLUMB record --capture $cap -o a.plumb -- ./$x 0.3 0.6 shared >/dev/null 2>err
  for k in "main;early;mid 33" "main;late;mid 67"; do set -- $k; s=$(share a.plumb "$1"); within "$s" $(($2-6)) $(($2+6)) && pass "$x $cap: $1 $s% (true $2)" || { bad "$x $cap: $1 $s% (true $2)"; top3 a.plumb; sed -n 2,5p err; }; done; done
  ./$x 0.05 3 >out & p=$!; kids=$p; filled out; $PLUMB record -o a.plumb -p $p --duration 0.8 2>err; s=$(share a.plumb 'main;late;mid'); ge "$s" 90 && pass "$x -p: $s%" || { bad "$x -p: main;late;mid $s%"; top3 a.plumb; sed -n 2,5p err; }
  $PLUMB stack -p $p >st 2>&1; grep -q late st && grep -q main st && pass "$x stack" || { bad "$x stack"; head -8 st; }
  kill $p; wait $p 2>/dev/null; rm -f out; done
finish
