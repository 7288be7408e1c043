#!/bin/bash
# bursts of short processes, and spikes of a system call and of a function, with the numbers that the program made: procs, tracepoints, uprobe, trace, kernel --calls
. "$(dirname "$0")/../lib.sh"; root; need gcc python3; cd "$W" || exit 1
cat > p.c <<'C'
#define _GNU_SOURCE
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ; static volatile unsigned long s;
__attribute__((noinline)) void spiked(long i){ s+=i; }
__attribute__((noinline)) void small_spike(void){ for(int i=0;i<10000;i++) syscall(SYS_getpgrp); s++; }
__attribute__((noinline)) void large_spike(void){ for(int i=0;i<30000;i++) syscall(SYS_getpgrp); s++; }
__attribute__((noinline)) void call_spike(void){ small_spike(); large_spike(); s++; }
__attribute__((noinline)) void fn_spike(void){ for(int i=0;i<20000;i++) spiked(i); s++; }
int main(int c,char**v){ if(c>1&&!strcmp(v[1],"calls")){ for(int k=0;k<3;k++){ usleep(200000); call_spike(); } return 0; }
  if(c>1&&!strcmp(v[1],"fn")){ for(int k=0;k<3;k++){ usleep(200000); fn_spike(); } return 0; }
  if(c>1){ return 0; }
  char*a[]={v[0],"x",0}; for(int k=0;k<4;k++){ usleep(150000); pid_t q[100]; for(int i=0;i<100;i++) posix_spawn(q+i,v[0],0,0,a,environ); for(int i=0;i<100;i++){ int st; waitpid(q[i],&st,0); } } return 0; }
C
gcc -O2 -g -fomit-frame-pointer p.c -o sp || exit 2
lost() { grep -oE '[0-9,]+ lost' err | head -1 | grep -vq '^0 lost'; }
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- ./sp 2>err; $PLUMB procs --json a.plumb >pr.json 2>/dev/null; n=$(pyjson pr.json 'j["processes"]'); [ "$n" = 401 ] && pass "$cap: procs says 401 processes" || { lost && pass "$cap: procs says $n of 401, lost said" || bad "$cap: procs says '$n' of 401, nothing lost said"; }
  c=$(coverage err); within "$c" 95 105 || grep -qi warning err && pass "$cap: coverage $c%" || bad "$cap: coverage $c% without a word: $(head -2 err)"; done
ev() { # EVENT TRUE TOLERANCE CMD...
  local e=$1 t=$2 tol=$3; shift 3; $PLUMB record -e $e -o a.plumb -- "$@" 2>err || { bad "$e: $(head -1 err)"; return; }; n=0; for x in ${e//,/ }; do n=$((n+$(total a.plumb --weights --event "$x"))); done; near "$n" "$t" "$tol" && pass "$e: $n of $t" || { lost && pass "$e: $n of $t, lost said" || { bad "$e: $n of $t, nothing lost said"; head -2 err; }; }; }
ev sched:sched_process_exec 401 1 ./sp; ev sched:sched_process_fork 400 1 ./sp
ev syscalls:sys_enter_getpgrp 120000 2 ./sp calls; s=$(share a.plumb 'main;call_spike;large_spike'); within "$s" 68 82 && pass "three quarters of it: $s%" || { bad "main;call_spike;large_spike $s% (true 75): $(head -1 err)"; top3 a.plumb; }; s=$(share a.plumb 'main;call_spike'); ge "$s" 95 && pass "its stacks: $s%" || { bad "its stacks: main;call_spike $s%"; top3 a.plumb; }
ev "uprobe:$W/sp:spiked" 60000 2 ./sp fn; s=$(share a.plumb 'main;fn_spike;spiked'); ge "$s" 95 && pass "its stacks: $s%" || { bad "its stacks: main;fn_spike;spiked $s%"; top3 a.plumb; }
$PLUMB trace -e getpgrp -- ./sp calls >tr 2>err; n=$(grep -c 'getpgrp(' tr); [ "$n" = 120000 ] && pass "trace: all 120000" || { grep -hqiE '[1-9][0-9,]* (calls )?(were )?lost|lost' err tr && pass "trace: $n of 120000, lost said" || { bad "trace: $n of 120000, lost not said"; head -3 err; }; }
$PLUMB trace --summary --json -e getpgrp -- ./sp calls >ts 2>err; grep -q 120000 ts && pass "trace --summary: 120000" || { grep -qi lost ts err && pass "trace --summary: lost said" || { bad "trace --summary lacks 120000"; head -c 300 ts; }; }
finish
