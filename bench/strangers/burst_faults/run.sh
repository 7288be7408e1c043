#!/bin/bash
# short spikes of page faults after quiet time, from threads and a child, with the number by getrusage: samples times weight near it, or lost said; also -F, -c, stat, kernel --calls
. "$(dirname "$0")/../lib.sh"; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long s;
__attribute__((noinline)) void spike(long pages){ char*m=mmap(0,pages*4096,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); madvise(m,pages*4096,MADV_NOHUGEPAGE); for(long i=0;i<pages;i++) m[i*4096]=1; munmap(m,pages*4096); s++; }
__attribute__((noinline)) void short_spike(void){ spike(5000); s++; }
__attribute__((noinline)) void long_spike(void){ spike(15000); s++; }
static void *th(void*a){ usleep(50000); long_spike(); usleep(100000); short_spike(); return 0; }
int main(void){ for(int k=0;k<3;k++){ usleep(250000); short_spike(); long_spike(); } pthread_t t; pthread_create(&t,0,th,0); pthread_join(t,0);
  pid_t q=fork(); if(!q){ usleep(100000); short_spike(); long_spike(); _exit(0); } int st; waitpid(q,&st,0);
  struct rusage a,b; getrusage(RUSAGE_SELF,&a); getrusage(RUSAGE_CHILDREN,&b); FILE*f=fopen("truth","w"); fprintf(f,"%ld\n",a.ru_minflt+b.ru_minflt+a.ru_majflt+b.ru_majflt); return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o p -lpthread || exit 2
lost() { grep -oE '[0-9,]+ lost' err | head -1 | grep -vq '^0 lost'; }
for o in "-e page-faults" "-e page-faults -F 4000" "-e page-faults -c 100" "-e page-faults --capture perf" "-e cpu-clock,page-faults"; do
  $PLUMB record $o -o a.plumb -- ./p 2>err; t=$(cat truth); n=$(total a.plumb --event "$(echo "$o" | grep -oE '(page|minor)-faults')" --weights); near "$n" "$t" 4 && pass "$o: $n of $t" || { lost && pass "$o: $n of $t, lost said" || { bad "$o: $n of $t, nothing lost said"; head -2 err; }; }
  case $o in *49*) ;; *) s=$(share a.plumb 'long_spike' --event "$(echo "$o" | grep -oE '(page|minor)-faults')"); within "$s" 68 82 && pass "$o: long_spike $s% (true 75)" || { lost && pass "$o: long_spike $s% (true 75), lost said"; } || { bad "$o: long_spike $s% (true 75)"; head -2 err; };; esac
done
if [ "$(id -u)" = 0 ]; then $PLUMB kernel --calls --json -- ./p >k.json 2>err; n=$(pyjson k.json 'j["events"]["minor_faults"]+j["events"]["major_faults"]'); near "$n" "$(cat truth)" 2 && pass "kernel --calls: $n" || bad "kernel --calls: '$n' of $(cat truth)"; fi
$PLUMB stat --json -o st.json -- ./p 2>err; n=$(pyjson st.json 'round(j["metrics"]["minor_faults"]["median"]+j["metrics"]["major_faults"]["median"])'); near "$n" "$(cat truth)" 2 && pass "stat: $n" || bad "stat: '$n' of $(cat truth)"
finish
