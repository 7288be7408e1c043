#!/bin/bash
# perf maps of programs in a PID and mount namespace: in the container's own /tmp, named by the container's process number, of running and of ended processes
. "$(dirname "$0")/../lib.sh"; root; need unshare gcc; cd "$W" || exit 1
cat > jit.c <<'C'
/* makes code at run time, says its name in /tmp/perf-PID.map, with the number that getpid gives */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long s;
static double cpu(void){struct timespec t;clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t);return t.tv_sec+t.tv_nsec*1e-9;}
__attribute__((noinline)) void native_part(double d){ double e=cpu()+d; while(cpu()<e) for(int i=0;i<50000;i++) s+=i; }
__attribute__((noinline)) void jit_part(double d, void (*f)(long)){ double e=cpu()+d; while(cpu()<e) f(200000); s++; }
int main(int c,char**v){ unsigned char code[]={0x48,0xff,0xcf,0x75,0xfb,0xc3}; /* dec rdi; jnz; ret */
  char*m=mmap(0,4096,PROT_READ|PROT_WRITE|PROT_EXEC,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); memcpy(m+64,code,sizeof code);
  char n[64]; sprintf(n,"/tmp/perf-%d.map",getpid()); FILE*f=fopen(n,"w"); fprintf(f,"%lx 40 %s\n",(long)m+64,v[1]); fclose(f);
  double d=atof(v[2]); for(int i=0;i<d*50;i++){ native_part(0.006); jit_part(0.014,(void*)(m+64)); } return 0; }
C
gcc -O2 -g -fomit-frame-pointer jit.c -o jit || exit 2
U="unshare -p -f -m --mount-proc --propagation private"; $U true 2>/dev/null || skip "no namespaces here"
echo 'mount -t tmpfs t /tmp; exec "$@"' >in.sh; cp jit in.sh /var/tmp/ 2>/dev/null; D=$(mktemp -d /var/tmp/nsXXXXXX); mv /var/tmp/jit /var/tmp/in.sh "$D"; 
# a map of another program in the host's /tmp that has the container's process number must not be taken
for i in 1 2 3; do [ -e /tmp/perf-$i.map ] || { echo "0 ffffffffffff WRONG_host_map" >/tmp/perf-$i.map; made="$made /tmp/perf-$i.map"; }; done
case_cleanup() { rm -rf "$D"; rm -f $made; }
chk() { s=$(share a.plumb "$2" $3); w=$(share a.plumb WRONG $3); within "$s" 63 76 && [ "$w" = 0.0 ] && pass "$1: $s% in the named code (true 70)" || { bad "$1: $s% in the named code (true 70), $w% by the host's map"; top3 $3 a.plumb; sed -n 2,5p err; }; }
for cap in bpf perf; do $PLUMB record --capture $cap -o a.plumb -- $U sh "$D/in.sh" "$D/jit" jitted_in_ns 0.8 2>err; chk "command, ends ($cap)" 'main;jit_part;jitted_in_ns' "--comm jit"; done
$U sh "$D/in.sh" "$D/jit" jitted_live 6 & u=$!; kids=$u; sleep 1; p=$(pgrep -f "^$D/jit jitted_live" | head -1); kids="$kids $p"
$PLUMB record -o a.plumb -p "$p" --duration 1 2>err; chk "-p from the host" 'main;jit_part;jitted_live' ""
$PLUMB record -o a.plumb -a --duration 1 2>err; chk "-a" 'main;jit_part;jitted_live' "--pid $p"
for _ in $(seq 12); do $PLUMB stack -p "$p" >st 2>&1; grep -q jitted_live st && break; done; grep -q jitted_live st && pass "stack" || { bad "stack"; head -8 st; }
$PLUMB report --sort pid,sym --csv a.plumb | grep jitted_live | grep -q "$p" && pass "report: the host's process number" || bad "report --sort pid: not $p: $($PLUMB report --sort pid,sym --csv a.plumb | grep jitted_live | head -1)"
kill $p; wait $u 2>/dev/null
# ten processes that end at once, each the number 1 or 2 of its own container, each with its own name for the same address
echo "for i in 0 1 2 3 4 5 6 7 8 9; do $U sh $D/in.sh $D/jit jit_nr_\$i 0.1; done" >ten.sh
$PLUMB record -o a.plumb -- setarch -R sh ten.sh 2>err; n=$($PLUMB fold --comm jit a.plumb | grep -oE 'jit_nr_[0-9]' | sort -u | wc -l); s=$(share a.plumb 'jit_part;jit_nr_' --comm jit); [ "$n" = 10 ] && within "$s" 60 80 && pass "ten short containers: all 10 names, $s% (true 70)" || { bad "ten short containers: $n of 10 names, $s% (true 70)"; top3 --comm jit a.plumb; cat err; }
finish
